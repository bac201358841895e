// Vectors of the widest registers that the instruction set has, on GCC's vector extension: arithmetic operators work
// on them as they are. Multiplication and addition are never fused silently (-ffp-contract=off); where an operation may
// be fused, say so with fma().
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(WB_ISA_neon)
#include <arm_neon.h>
#endif

#ifndef WB_ISA
#error "this header is compiled once per instruction set"
#endif

namespace wb::kernels::WB_ISA {

#if defined(WB_ISA_avx512)
inline constexpr int kVectorBytes = 64;
inline constexpr int kVectorRegisters = 32;
#elif defined(WB_ISA_avx2)
inline constexpr int kVectorBytes = 32;
inline constexpr int kVectorRegisters = 16;
#elif defined(WB_ISA_neon)
inline constexpr int kVectorBytes = 16;
inline constexpr int kVectorRegisters = 32;
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kVectorRegisters = 16;
#endif

template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};
template <typename T>
using Vec = typename VectorOf<T>::Type;
template <typename T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <typename T>
[[gnu::always_inline]] inline Vec<T> load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::Unaligned*>(p);
}
template <typename T>
[[gnu::always_inline]] inline void store(T* p, Vec<T> v) {
  *reinterpret_cast<typename VectorOf<T>::Unaligned*>(p) = v;
}
template <typename T>
[[gnu::always_inline]] inline Vec<T> splat(T x) {
  return x - Vec<T>{};  // x - 0 is x, also for -0
}

#if defined(WB_ISA_avx2)
// All bits set in the first n lanes.
[[gnu::always_inline]] inline __m256i first_lanes(int n) {
  alignas(32) static constexpr std::int32_t kOnes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnes + 8 - n));
}
#endif

// The first n < kLanes elements; the other lanes are zero.
template <typename T>
[[gnu::always_inline]] inline Vec<T> load_first(const T* p, int n) {
#if defined(WB_ISA_avx512)
  if constexpr (std::is_same_v<T, float>) {
    return reinterpret_cast<Vec<float>>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1U), p));
  } else if constexpr (std::is_same_v<T, double>) {
    return reinterpret_cast<Vec<double>>(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << n) - 1U), p));
  }
#elif defined(WB_ISA_avx2)
  if constexpr (std::is_same_v<T, float>) return (Vec<float>)_mm256_maskload_ps(p, first_lanes(n));
#endif
  Vec<T> v{};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
template <typename T>
[[gnu::always_inline]] inline void store_first(T* p, Vec<T> v, int n) {
#if defined(WB_ISA_avx512)
  if constexpr (std::is_same_v<T, float>) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1U << n) - 1U), reinterpret_cast<__m512>(v));
    return;
  } else if constexpr (std::is_same_v<T, double>) {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1U << n) - 1U), reinterpret_cast<__m512d>(v));
    return;
  }
#elif defined(WB_ISA_avx2)
  if constexpr (std::is_same_v<T, float>) {
    _mm256_maskstore_ps(p, first_lanes(n), (__m256)v);
    return;
  }
#endif
  for (int i = 0; i < n; ++i) p[i] = v[i];
}

// a b + c, rounded once where the instruction set can.
template <typename V>
[[gnu::always_inline]] inline V fma(V a, V b, V c) {
#if defined(WB_ISA_avx512)
  if constexpr (std::is_same_v<V, Vec<float>>) return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  if constexpr (std::is_same_v<V, Vec<double>>) return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(WB_ISA_avx2)
  if constexpr (std::is_same_v<V, Vec<float>>) return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  if constexpr (std::is_same_v<V, Vec<double>>) return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(WB_ISA_neon)
  if constexpr (std::is_same_v<V, Vec<float>>) return (V)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
  if constexpr (std::is_same_v<V, Vec<double>>) return (V)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#endif
  return a * b + c;
}

// Lane by lane; b where a is NaN.
template <typename V>
[[gnu::always_inline]] inline V max(V a, V b) {
  return a > b ? a : b;
}
template <typename V>
[[gnu::always_inline]] inline V min(V a, V b) {
  return a < b ? a : b;
}

template <typename T>
[[gnu::always_inline]] inline T sum_lanes(Vec<T> v) {
  T parts[kLanes<T>];
  std::memcpy(parts, &v, sizeof(v));
  for (int width = kLanes<T> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) parts[i] += parts[i + width];
  }
  return parts[0];
}
template <typename T>
[[gnu::always_inline]] inline T max_lanes(Vec<T> v) {
  T best = v[0];
  for (int i = 1; i < kLanes<T>; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

// e^x. Error below 2 ulp for x in [-87.3, 88.7]; 0 below (no subnormal results), +inf above; NaN stays.
[[gnu::always_inline]] inline Vec<float> exp(Vec<float> x) {
  using V = Vec<float>;
  using I = Vec<std::int32_t>;
  const V magic = splat(12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  const V high = splat(88.72284F);
  const V low = splat(-87.33655F);
  const V t = x > high ? high : x < low ? low : x;
  const V shifted = fma(t, splat(1.44269504F), magic);
  const V n = shifted - magic;
  const V r = fma(n, splat(2.12194440e-4F), fma(n, splat(-0.693359375F), t));
  V p = splat(1.9875691500e-4F);  // Cephes, expf
  p = fma(p, r, splat(1.3981999507e-3F));
  p = fma(p, r, splat(8.3334519073e-3F));
  p = fma(p, r, splat(4.1665795894e-2F));
  p = fma(p, r, splat(1.6666665459e-1F));
  p = fma(p, r, splat(5.0000001201e-1F));
  p = fma(p * r, r, r) + splat(1.0F);
  // 2^n as 2 * 2^(n-1): n reaches 128.
  const I exponent = (I)shifted - (I)magic;
  const V scale = (V)((exponent + 126) << 23);
  const V result = p * scale * splat(2.0F);
  const V inf = splat(__builtin_huge_valf());
  return x > high ? inf : x < low ? V{} : x == x ? result : x;
}
[[gnu::always_inline]] inline Vec<double> exp(Vec<double> x) {
  Vec<double> y{};
  for (int i = 0; i < kLanes<double>; ++i) y[i] = __builtin_exp(x[i]);
  return y;
}

}  // namespace wb::kernels::WB_ISA
