// Rows of left operands, as they are multiplied.
#pragma once

#include "engine/operators/quantized_matmul/packed.h"

namespace wb::engine::WB_ISA::quantized {

// copy_left may write so many elements past the end, which are written later or don't count.
inline constexpr std::int64_t kLeftSlack = 64;

// How integers as they stand in memory become DotLeft: x ^ flip (then widened), and the number that stands for zero.
struct LeftForm {
  std::uint8_t flip = 0;
  std::int32_t zero = 0;

  LeftForm(ScalarType dtype, std::int32_t zero_point) {
    const bool is_unsigned = dtype == ScalarType::Byte;
    flip = is_unsigned == kDotLeftUnsigned ? 0 : 0x80;
    zero = zero_point + (flip == 0 ? 0 : kDotLeftUnsigned ? 128 : -128);
  }
  // What is stored for it.
  [[nodiscard]] DotLeft stored_zero() const { return static_cast<DotLeft>(zero); }
};

[[gnu::always_inline]] inline DotLeft left_of(std::uint8_t x, std::uint8_t flip) {
  const auto y = static_cast<std::uint8_t>(x ^ flip);
  return kDotLeftUnsigned ? static_cast<DotLeft>(y) : static_cast<DotLeft>(static_cast<std::int8_t>(y));
}

// n integers.
[[gnu::always_inline]] inline void copy_left(const std::uint8_t* from, std::int64_t n, std::uint8_t flip, DotLeft* to) {
#if defined(WB_ISA_avx512)
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(flip));
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), mask));
  if (i == n) return;
  const __mmask64 rest = ~std::uint64_t{0} >> (64 - (n - i));
  _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + i), mask));
#else
  constexpr int kStep = 16;
  using Bytes = std::uint8_t __attribute__((vector_size(kStep)));
  using InMemory = std::uint8_t __attribute__((vector_size(kStep), aligned(1), may_alias));
  using Signed = std::int8_t __attribute__((vector_size(kStep)));
  using Lefts = DotLeft __attribute__((vector_size(kStep * sizeof(DotLeft))));
  using LeftsInMemory =
      DotLeft __attribute__((vector_size(kStep * sizeof(DotLeft)), aligned(alignof(DotLeft)), may_alias));
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    const Bytes bytes = *reinterpret_cast<const InMemory*>(from + i) ^ flip;
    *reinterpret_cast<LeftsInMemory*>(to + i) = __builtin_convertvector((Signed)bytes, Lefts);
  }
  for (; i < n; ++i) to[i] = left_of(from[i], flip);
#endif
}

// n times the same.
[[gnu::always_inline]] inline void fill_left(DotLeft x, std::int64_t n, DotLeft* to) {
#if defined(WB_ISA_avx512)
  for (std::int64_t i = 0; i < n; i += 64) _mm512_storeu_si512(to + i, _mm512_set1_epi8(static_cast<char>(x)));
#else
  for (std::int64_t i = 0; i < n; ++i) to[i] = x;
#endif
}

}  // namespace wb::engine::WB_ISA::quantized
