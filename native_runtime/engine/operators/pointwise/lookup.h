// Bytes through a table of 256.
#pragma once

#include <cstdint>

#include "kernels/simd.h"

namespace wb::engine::WB_ISA {

inline void look_up(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* out, std::int64_t n) {
  std::int64_t i = 0;
#if defined(WB_ISA_avx512)
  // Sixteen tables of 16, each indexed by the low half; what a byte's high half does not choose, a shuffle makes 0: its
  // index then has the highest bit set.
  if (n >= 64) {
    __m512i rows[16];
    for (int r = 0; r < 16; ++r) {
      const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * r));
      rows[r] = _mm512_maskz_broadcast_i32x4(0xffff, row);
    }
    const __m512i sixteen = _mm512_set1_epi8(16);
    const __m512i limit = _mm512_set1_epi8(0x70);
    for (; i + 64 <= n; i += 64) {
      __m512i index = _mm512_loadu_si512(x + i);
      __m512i result = _mm512_setzero_si512();
      for (int r = 0; r < 16; ++r) {
        result = _mm512_or_si512(result, _mm512_shuffle_epi8(rows[r], _mm512_adds_epu8(index, limit)));
        index = _mm512_sub_epi8(index, sixteen);
      }
      _mm512_storeu_si512(out + i, result);
    }
  }
#elif defined(WB_ISA_neon)
  const uint8x16x4_t quarters[4] = {vld1q_u8_x4(table), vld1q_u8_x4(table + 64), vld1q_u8_x4(table + 128),
                                    vld1q_u8_x4(table + 192)};
  for (; i + 16 <= n; i += 16) {
    uint8x16_t index = vld1q_u8(x + i);
    uint8x16_t result = vqtbl4q_u8(quarters[0], index);
    for (int q = 1; q < 4; ++q) {
      index = vsubq_u8(index, vdupq_n_u8(64));
      result = vqtbx4q_u8(result, quarters[q], index);
    }
    vst1q_u8(out + i, result);
  }
#endif
  for (; i < n; ++i) out[i] = table[x[i]];
}

}  // namespace wb::engine::WB_ISA
