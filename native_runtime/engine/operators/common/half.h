// float16 to float32 and back, in vectors where the instruction set converts.
#pragma once

#include <cstdint>

#include "kernels/common/types.h"
#include "kernels/simd.h"

namespace wb::engine::WB_ISA {

// n elements; `in` and `out` have the alignment of their elements.
inline void floats_from_halves(const void* in, float* out, std::int64_t n) {
  const auto* halves = static_cast<const kernels::WB_ISA::Half*>(in);
  std::int64_t i = 0;
#if defined(WB_ISA_avx512)
  for (; i + 16 <= n; i += 16) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves + i));
    _mm512_storeu_ps(out + i, _mm512_maskz_cvtph_ps(0xffff, bits));
  }
#elif defined(WB_ISA_avx2)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i))));
  }
#endif
  for (; i < n; ++i) out[i] = static_cast<float>(halves[i]);
}

// Rounded to nearest, ties to even.
inline void halves_from_floats(const float* in, void* out, std::int64_t n) {
  auto* halves = static_cast<kernels::WB_ISA::Half*>(out);
  std::int64_t i = 0;
#if defined(WB_ISA_avx512)
  for (; i + 16 <= n; i += 16) {
    const __m256i bits = _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(halves + i), bits);
  }
#elif defined(WB_ISA_avx2)
  for (; i + 8 <= n; i += 8) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i), bits);
  }
#endif
  for (; i < n; ++i) halves[i] = static_cast<kernels::WB_ISA::Half>(in[i]);
}

}  // namespace wb::engine::WB_ISA
