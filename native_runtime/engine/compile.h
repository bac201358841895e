// The stages of compile().
#pragma once

#include "core/backend.h"
#include "engine/engine.h"
#include "engine/program.h"

namespace wb::engine {

// Is the environment variable "1"?
[[nodiscard]] bool is_set(const char* variable);

// Infers the sizes of all values from the bounds of the inputs; `graph` must be verified. A value that the graph says
// may be bigger gets the bound that was inferred, one that must be bigger is an error.
Error infer_bounds(const Reporter& report, Graph& graph);

// Looks up and prepares the operators of program.graph, plans the memory and makes the views. The program is sized for
// the bounds afterwards.
Error make_steps(BackendInitContext& context, Program& program, ProgramSetup& setup);
Error make_placements(const Reporter& report, Program& program);
void make_step_taps(Program& program);

}  // namespace wb::engine
