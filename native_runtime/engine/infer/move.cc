// Operators that move elements.
#include <algorithm>

#include "engine/infer/infer.h"
#include "engine/names.h"

namespace wb::engine {
namespace {

// The size that a rule gives; -1 when it is out of range. kInfer is not handled here.
std::int64_t size_of(const SizeRule& rule, const Shape& x) {
  if (rule.from_input < 0) return rule.value;
  if (rule.from_input >= x.rank) return -1;
  const std::int64_t size = x.sizes[rule.from_input];
  std::int64_t result = 0;
  if (rule.value <= 0) return size;
  return __builtin_mul_overflow(size, rule.value, &result) || result > kMaxElements ? -1 : result;
}

}  // namespace

Error infer_transpose(const InferContext& context) {
  const Shape x = context.in(0);
  Shape out = x;
  std::uint32_t seen = 0;
  for (int d = 0; d < x.rank; ++d) {
    const int from = context.node.attributes.permutation[d];
    if (from >= x.rank || (seen >> from & 1U) != 0) {
      return context.report.fail(Error::InvalidProgram, "the permutation's entry %d is %d, of rank %d", d, from,
                                 x.rank);
    }
    seen |= 1U << from;
    out.sizes[d] = x.sizes[from];
  }
  context.out() = out;
  return Error::Ok;
}

Error infer_reshape(const InferContext& context) {
  const Attributes& a = context.node.attributes;
  const Shape x = context.in(0);
  Shape out;
  out.rank = a.rank;
  std::int64_t known = 1;
  int open = -1;
  bool fits = true;
  for (int d = 0; d < a.rank && fits; ++d) {
    if (a.sizes[d].value == SizeRule::kInfer && a.sizes[d].from_input < 0) {
      fits = open < 0;
      open = d;
      continue;
    }
    out.sizes[d] = size_of(a.sizes[d], x);
    fits = out.sizes[d] >= 0 && !__builtin_mul_overflow(known, out.sizes[d], &known);
  }
  const std::int64_t numel = x.numel();
  if (open >= 0 && fits) {
    fits = known > 0 && numel % known == 0;
    if (fits) out.sizes[open] = numel / known;
  }
  if (!fits || checked_numel(out) != numel) {
    return context.report.fail(Error::InvalidProgram, "%s can't become %s", ShapeText(x).text, ShapeText(out).text);
  }
  context.out() = out;
  return Error::Ok;
}

Error infer_expand(const InferContext& context) {
  const Attributes& a = context.node.attributes;
  const Shape x = context.in(0);
  Shape out;
  out.rank = a.rank;
  for (int d = 0; d < a.rank; ++d) out.sizes[d] = size_of(a.sizes[d], x);
  if (checked_numel(out) < 0 || !broadcasts_to(x, out)) {
    return context.report.fail(Error::InvalidProgram, "%s can't be expanded to %s", ShapeText(x).text,
                               ShapeText(out).text);
  }
  context.out() = out;
  return Error::Ok;
}

Error infer_concat(const InferContext& context) {
  Shape out = context.in(0);
  const int axis = context.node.attributes.axis;
  if (axis < 0 || axis >= out.rank) {
    return context.report.fail(Error::InvalidProgram, "axis %d of inputs of rank %d", axis, out.rank);
  }
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    Shape other = context.in(i);
    const std::int64_t size = other.rank == out.rank ? other.sizes[axis] : 0;
    other.sizes[axis] = out.sizes[axis];
    if (!(other == out)) {
      return context.report.fail(Error::InvalidProgram, "input %zu: %s can't be joined with %s along dimension %d", i,
                                 ShapeText(context.in(i)).text, ShapeText(out).text, axis);
    }
    out.sizes[axis] += size;  // at most 2^32 inputs of at most kMaxElements
  }
  context.out() = out;
  return Error::Ok;
}

Error infer_slice(const InferContext& context) {
  const Attributes& a = context.node.attributes;
  Shape out = context.in(0);
  if (a.axis < 0 || a.axis >= out.rank) {
    return context.report.fail(Error::InvalidProgram, "axis %d of an input of rank %d", a.axis, out.rank);
  }
  std::int64_t& size = out.sizes[a.axis];
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  const std::int64_t count = place(a.end) - place(a.begin);
  size = count <= 0 ? 0 : (count - 1) / a.step + 1;
  context.out() = out;
  return Error::Ok;
}

Error infer_pad(const InferContext& context) {
  const Attributes& a = context.node.attributes;
  const Shape x = context.in(0);
  Shape out = x;
  for (int d = 0; d < x.rank; ++d) {
    out.sizes[d] += a.before[d] + a.after[d];
    const std::int64_t most = std::max(a.before[d], a.after[d]);
    // What is left when rows are cut at one side or both, and what a mirror can show.
    bool fits = out.sizes[d] >= 0 && a.before[d] >= -x.sizes[d] && a.after[d] >= -x.sizes[d];
    if (a.pad_mode == Attributes::PadMode::Reflect) fits = fits && (most <= 0 || most < x.sizes[d]);
    if (a.pad_mode == Attributes::PadMode::Replicate) fits = fits && (most <= 0 || x.sizes[d] > 0);
    if (fits) continue;
    return context.report.fail(Error::InvalidProgram, "dimension %d of %s can't be padded by %lld, %lld", d,
                               ShapeText(x).text, static_cast<long long>(a.before[d]),
                               static_cast<long long>(a.after[d]));
  }
  context.out() = out;
  return Error::Ok;
}

}  // namespace wb::engine
