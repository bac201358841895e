// Hands over values of the front end's graph while a program runs. What fusion hides is computed once more, with fewer
// steps of the node's program, into memory of its own; the run itself is not changed.
#pragma once

#include "engine/program.h"

namespace wb::engine {

class TapReader {
 public:
  TapReader(BackendExecuteContext& context, Program& program);

  void before_all();
  // Values inside of a step's program: computed first, for the step may write over its operands.
  void before(std::uint32_t step);
  void after(std::uint32_t step);

 private:
  void compute(const StepTap& tap);
  void hand_over(const StepTap& tap, std::byte* data, ScalarType dtype);

  BackendExecuteContext& context_;
  Program& program_;
  std::size_t next_;  // in program.step_taps; its size when nobody asks
};

}  // namespace wb::engine
