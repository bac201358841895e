// Python's slices: bounds brought into a dimension.
#pragma once

#include "kernels/common/args.h"

namespace wb::kernels::WB_ISA {

struct Slice {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t length = 0;
};

// The elements start, start + step, ... below end of a dimension of `size`; None is the whole. Arguments first + 0, 1,
// 2 are start, end and step.
inline Error get_slice(const KernelContext& context, std::uint32_t first, std::int64_t size, Slice* slice) {
  const auto bound = [&](std::uint32_t arg, std::int64_t missing) {
    if (context.arg(arg).is_none()) return missing;
    auto value = context.arg(arg).scalar<std::int64_t>();
    if (value < 0) value = value < -size ? 0 : value + size;
    return value > size ? size : value;
  };
  slice->start = bound(first, 0);
  const std::int64_t end = bound(first + 1, size);
  slice->step = context.arg(first + 2).scalar<std::int64_t>();
  if (slice->step < 1) {
    return context.fail(Error::InvalidArgument, "argument %u (step): expected at least 1, found %lld", first + 2,
                        static_cast<long long>(slice->step));
  }
  slice->length = end <= slice->start ? 0 : (end - slice->start - 1) / slice->step + 1;
  if (slice->length <= 1) slice->step = 1;
  return Error::Ok;
}

// The index in argument `arg` brought to [0, size).
inline Error get_index(const KernelContext& context, std::uint32_t arg, std::int64_t size, std::int64_t* index) {
  const auto value = context.arg(arg).scalar<std::int64_t>();
  if (value < -size || value >= size) {
    return context.fail(Error::InvalidArgument, "argument %u (index): %lld is out of range for size %lld", arg,
                        static_cast<long long>(value), static_cast<long long>(size));
  }
  *index = value < 0 ? value + size : value;
  return Error::Ok;
}

}  // namespace wb::kernels::WB_ISA
