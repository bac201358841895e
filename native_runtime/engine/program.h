// A compiled graph. Everything that a run needs has been looked up; what depends on sizes is kept until they change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/operator.h"
#include "engine/passes/draft.h"
#include "engine/passes/views.h"
#include "engine/report.h"

namespace wb::engine {

// Where the memory of a value is.
struct Placement {
  enum class Kind : std::uint8_t { None, Input, Output, Constant, Arena } kind = Kind::None;
  std::uint32_t external = 0;  // Input, Output
  ValueId root = kNoValue;     // the value that the memory was planned for
  std::int64_t offset = 0;     // bytes from where that memory begins
};

// A node and what was prepared for it. Its operands are `views` of the program from `first_view` on: inputs, outputs,
// operands of the epilogue.
struct Step {
  const Operator* op = nullptr;
  std::uint32_t node = 0;
  std::uint32_t first_view = 0;
  std::uint32_t input_count = 0, output_count = 0, post_input_count = 0;
  bool empty = false;  // its results have no element at the present sizes
  void* state = nullptr;
  std::size_t scratch_bytes = 0;
  std::size_t scratch_offset = 0;
  std::string name;  // of its event: "convolution+clamp"
  std::string id;    // its sources: "12+13"

  [[nodiscard]] std::uint32_t view_count() const { return input_count + output_count + post_input_count; }
};

// An input or output of the graph: its value, and the views that show it.
struct External {
  ValueId value = kNoValue;
  const void* data = nullptr;  // what the views hold
  std::vector<std::uint32_t> views;
};

// A result of the front end's graph that can be handed over (draft.h), and when: after step `step`, or before all steps
// if that is kStart.
struct StepTap {
  static constexpr std::uint32_t kStart = 0xffffffffU;

  std::uint32_t tap = 0;
  std::uint32_t step = kStart;
  std::string id;  // its source
};

class Program {
 public:
  explicit Program(int threads) : pool_(threads) {}

  Graph graph;                        // after all passes
  std::vector<Placement> placements;  // per value
  std::vector<Shape> shapes;          // per value, present sizes
  std::vector<Step> steps;
  std::vector<TensorView> views;
  std::vector<ValueId> view_values;  // per view
  std::vector<External> inputs, outputs;
  Owned owned;  // constants that the passes made
  Views memory;
  std::vector<Tap> taps;
  std::vector<StepTap> step_taps;     // by step, those of a part of a program first
  std::vector<std::byte> tap_memory;  // taken when the first execution asks for values
  std::byte* arena = nullptr;
  std::size_t arena_bytes = 0;
  Footprint footprint;
  bool sized = false;  // shapes and views fit together

  [[nodiscard]] Pool& pool() { return pool_; }
  [[nodiscard]] Operands operands(const Step& step) const {
    const TensorView* first = views.data() + step.first_view;
    return {.inputs = first,
            .outputs = first + step.input_count,
            .post_inputs = first + step.input_count + step.output_count,
            .input_count = step.input_count,
            .output_count = step.output_count,
            .post_input_count = step.post_input_count};
  }

  // Infers all sizes from those of the inputs (in `shapes`) and asks the operators what follows. Fails, and leaves
  // `sized` false, when something goes beyond what the program was planned for.
  Error resize(const Host* host);
  void bind(External& external, void* data);
  // Where a value stands at present; null for a constant's or a caller's missing data.
  [[nodiscard]] std::byte* data_of(ValueId id) const;
  void reserve_inputs(std::size_t count) {
    if (shape_pointers_.size() < count) shape_pointers_.resize(count);
  }

 private:
  Error infer_node(const Reporter& report, const Node& node);
  Error shape_step(const Host* host, Step& step);

  Pool pool_;
  std::vector<const Shape*> shape_pointers_;  // room for the inputs of the step that has most
};

// What operators may ask for: memory from the host, counted in the program's footprint.
class ProgramSetup final : public Setup {
 public:
  // `constants` may be null.
  ProgramSetup(const Host* host, Program* program, bool trial, const NamedData* constants = nullptr)
      : host_(host), program_(program), trial_(trial), constants_(constants) {}

  [[nodiscard]] void* allocate(std::size_t bytes) override;
  [[nodiscard]] void* allocate_packed(const void* constant, std::uint64_t format, std::size_t bytes,
                                      bool* ready) override;
  void packed_part(const void* data, std::size_t bytes) override {
    if (constants_ != nullptr) constants_->release({static_cast<const std::byte*>(data), bytes});
  }
  [[nodiscard]] bool trial() const override { return trial_; }
  [[nodiscard]] std::uint64_t measured(const char* layer, const char* method, std::uint64_t ns) override;
  [[nodiscard]] const void** choice(std::uint64_t kind) override { return &choices_[kind]; }
  __attribute__((format(printf, 3, 4))) Error fail(Error error, const char* format, ...) override;

 private:
  struct Packed {
    const void* constant;
    std::uint64_t format;
    std::size_t bytes;
    void* memory;
  };

  [[nodiscard]] void* packed_memory(std::size_t bytes);

  const Host* host_;
  Program* program_;
  bool trial_;
  const NamedData* constants_;
  std::vector<Packed> packed_;
  std::unordered_map<std::uint64_t, const void*> choices_;
  static constexpr std::size_t kUnknown = SIZE_MAX;
  std::size_t constants_left_ = kUnknown;  // bytes of those that are not packed yet, about
  std::byte* slab_ = nullptr;              // what is left of the last one
  std::size_t slab_left_ = 0;
};

}  // namespace wb::engine
