#include "engine/operators/common/program.h"

#include <utility>

namespace wb::engine::WB_ISA {
namespace {

// The function of one operand that does the same when the other one is the number s; Identity if there is none.
Fn with_scalar(Fn fn, bool scalar_first, float a, float s, float* parameter) {
  *parameter = s;
  switch (fn) {
    case Fn::Add: return Fn::AddScalar;
    case Fn::Mul: return Fn::MulScalar;
    case Fn::Sub:
      if (scalar_first) return Fn::ReverseSubScalar;
      *parameter = -s;
      return Fn::AddScalar;
    case Fn::Div: return scalar_first ? Fn::ReverseDivScalar : Fn::Identity;
    case Fn::AddScaled: *parameter = s * a; return scalar_first ? Fn::Identity : Fn::AddScalar;
    case Fn::Pow: return scalar_first ? Fn::Identity : Fn::PowScalar;
    default: return Fn::Identity;
  }
}

}  // namespace

void StepProgram::fold_scalars(int i, const float* const* scalars) {
  PointwiseStep& step = steps_[i];
  if (arity_of(step.fn) != 2) return;
  for (const int k : {1, 0}) {
    if (step.operands[k] < kInputRegister) continue;
    const float* scalar = scalars[step.operands[k] - kInputRegister];
    if (scalar == nullptr) continue;
    float parameter = 0;
    const Fn fn = with_scalar(step.fn, k == 0, step.a, *scalar, &parameter);
    if (fn == Fn::Identity) continue;
    step.fn = fn;
    step.a = parameter;
    step.operands[0] = step.operands[1 - k];
    return;
  }
}

void StepProgram::build(const PointwiseStep* steps, int count, const float* const* scalars, bool in_place) {
  count_ = count;
  first_ = 0;
  used_inputs_ = 0;
  for (int r = 0; r <= count; ++r) last_use_[r] = 0;
  for (int i = 0; i < count; ++i) {
    steps_[i] = steps[i];
    fold_scalars(i, scalars);
    functions_[i] = step_function(steps_[i].fn);
    arities_[i] = static_cast<std::int8_t>(arity_of(steps_[i].fn));
    for (int k = 0; k < arities_[i]; ++k) {
      const std::uint8_t operand = steps_[i].operands[k];
      if (operand >= kInputRegister) {
        used_inputs_ |= 1U << (operand - kInputRegister);
      } else {
        last_use_[operand] = static_cast<std::uint8_t>(i);
      }
    }
  }
  assign_slots(in_place);
}

void StepProgram::assign_slots(bool in_place) {
  int holder[kMaxTemporaries] = {};  // the register that stands in a temporary; 0: none
  int in_out = 0;                    // the register that stands where the result goes
  temporaries_ = 0;
  for (int i = 0; i < count_; ++i) {
    const bool last = i + 1 == count_;
    if (last || (in_place && last_use_[in_out] <= i)) {
      slots_[i] = kOut;
      in_out = i + 1;
      continue;
    }
    int slot = 0;
    while (slot + 1 < kMaxTemporaries && holder[slot] != 0 && last_use_[holder[slot]] > i) ++slot;
    holder[slot] = i + 1;
    slots_[i] = static_cast<std::int8_t>(slot);
    if (slot >= temporaries_) temporaries_ = slot + 1;
  }
}

bool StepProgram::may_drop_first() const { return count() > 0 && last_use_[first_] <= first_; }

void StepProgram::evaluate(Place start, const Place* inputs, float* out, std::int64_t out_row, std::int64_t rows,
                           std::int64_t cols, float* memory) const {
  for (int i = first_; i < count_; ++i) {
    const PointwiseStep& step = steps_[i];
    StepArguments arguments{out, out_row, {}, rows, cols, step.a, step.b};
    if (slots_[i] != kOut) {
      arguments.out = memory + slots_[i] * rows * cols;
      arguments.out_row = cols;
    }
    for (int k = 0; k < arities_[i]; ++k) {
      const int operand = step.operands[k];
      if (operand >= kInputRegister) {
        arguments.in[k] = inputs[operand - kInputRegister];
      } else if (operand <= first_) {
        arguments.in[k] = start;
      } else if (slots_[operand - 1] == kOut) {
        arguments.in[k] = {out, out_row};
      } else {
        arguments.in[k] = {memory + slots_[operand - 1] * rows * cols, cols};
      }
    }
    functions_[i](arguments);
  }
}

}  // namespace wb::engine::WB_ISA
