// A pointwise program made ready: which function each step calls and where its result goes. Evaluated on rectangles
// that fit into the first-level cache, so that memory is passed once however many steps there are.
#pragma once

#include <cstdint>

#include "engine/graph.h"
#include "engine/operators/common/steps.h"

namespace wb::engine::WB_ISA {

class StepProgram {
 public:
  static constexpr int kMaxSteps = 16;
  static constexpr int kMaxInputs = 24;
  static constexpr std::int64_t kBlock = 1024;  // most elements of a rectangle, if there are temporaries
  static constexpr int kMaxTemporaries = kMaxSteps;

  // `scalars[k]`: where input k is one element, its address, else null; steps with such an operand become cheaper ones.
  // `in_place`: register 0 stands where the result goes, so that further registers may take its place.
  void build(const PointwiseStep* steps, int count, const float* const* scalars, bool in_place);

  [[nodiscard]] int count() const { return count_ - first_; }
  [[nodiscard]] const PointwiseStep& step(int i) const { return steps_[first_ + i]; }
  // Drops the first step, whose result then is register 0's: the caller does it. False when register 0 is used again.
  [[nodiscard]] bool may_drop_first() const;
  void drop_first() { ++first_; }

  [[nodiscard]] int temporaries() const { return temporaries_; }
  // Input k must be a rectangle of the same size (rows may repeat), however many elements it has.
  [[nodiscard]] bool uses_input(int k) const { return (used_inputs_ >> k & 1U) != 0; }

  // memory: temporaries() rectangles of rows x cols.
  void evaluate(Place start, const Place* inputs, float* out, std::int64_t out_row, std::int64_t rows,
                std::int64_t cols, float* memory) const;

 private:
  void fold_scalars(int i, const float* const* scalars);
  void assign_slots(bool in_place);

  int count_ = 0, first_ = 0, temporaries_ = 0;
  std::uint32_t used_inputs_ = 0;
  PointwiseStep steps_[kMaxSteps];
  StepFunction functions_[kMaxSteps];
  std::int8_t arities_[kMaxSteps];
  std::int8_t slots_[kMaxSteps];          // of step i's result: a temporary, or kOut
  std::uint8_t last_use_[kMaxSteps + 1];  // of register r: the last step that reads it
  static constexpr std::int8_t kOut = -1;
};

}  // namespace wb::engine::WB_ISA
