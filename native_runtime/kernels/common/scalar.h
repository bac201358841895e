// Numbers written into tensors.
#pragma once

#include <cstring>

#include "kernels/common/args.h"
#include "kernels/common/convert.h"

namespace wb::kernels::WB_ISA {

// The bits of a number (tag Int, Double or Bool) as an element of the type, which must be computable.
inline void number_bits(const EValue& number, ScalarType type, void* bits) {
  switch (number.tag) {
    case Tag::Double: {
      const double value = number.payload.as_double;
      find_store(type, Lane::F64)(bits, 1, &value, 1);
      break;
    }
    case Tag::Bool: find_store(type, Lane::Bool)(bits, 1, &number.payload.as_bool, 1); break;
    default: {
      const auto value = number.scalar<std::int64_t>();
      find_store(type, Lane::I64)(bits, 1, &value, 1);
    }
  }
}

// data[0, n) = the element in `bits`.
inline void fill_bits(void* data, const void* bits, std::size_t element, std::int64_t n) {
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    T value;
    std::memcpy(&value, bits, sizeof(T));
    T* out = static_cast<T*>(data);
    for (std::int64_t i = 0; i < n; ++i) out[i] = value;
  };
  switch (element) {
    case 1: fill(std::uint8_t{}); break;
    case 2: fill(std::uint16_t{}); break;
    case 4: fill(std::uint32_t{}); break;
    default: fill(std::uint64_t{}); break;
  }
}

inline void fill_number(const Tensor& out, const EValue& number) {
  alignas(8) std::byte bits[8];
  number_bits(number, out.dtype, bits);
  fill_bits(out.data, bits, element_size(out.dtype), out.numel());
}

// A shape from an int[] argument.
inline Error get_sizes(const KernelContext& context, std::uint32_t arg, Shape* shape) {
  const auto sizes = context.arg(arg).payload.int_list.get();
  if (sizes.size() > kMaxRank) return context.fail(Error::InvalidArgument, "argument %u (size): too many entries", arg);
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > INT32_MAX) {
      return context.fail(Error::InvalidArgument, "argument %u (size): %lld", arg, static_cast<long long>(size));
    }
    shape->sizes[shape->rank++] = static_cast<std::int32_t>(size);
  }
  return Error::Ok;
}

}  // namespace wb::kernels::WB_ISA
