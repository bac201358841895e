#include "engine/operators/common/quantize.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace wb::engine::WB_ISA {
namespace {

constexpr int kBytes = 4 * kFloats;  // a vector of them

// The range that infinities and the largest numbers are cut to, so that its width is finite.
constexpr float kLargest = FLT_MAX / 2;

}  // namespace

template <typename Q>
void quantize_row(const float* x, std::int64_t n, float scale, std::int32_t zero_point, Q* out) {
  const Quantizer<Q> q(scale, zero_point);
  std::int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    const float* p = x + i;
    store_narrowed(out + i, q(load(p)), q(load(p + kFloats)), q(load(p + 2 * kFloats)), q(load(p + 3 * kFloats)));
  }
  if (i == n) return;
  float rest[kBytes] = {};
  Q bytes[kBytes];
  std::copy_n(x + i, n - i, rest);
  store_narrowed(bytes, q(load(rest)), q(load(rest + kFloats)), q(load(rest + 2 * kFloats)),
                 q(load(rest + 3 * kFloats)));
  std::copy_n(bytes, n - i, out + i);
}

template <typename Q>
void dequantize_row(const Q* x, std::int64_t n, float scale, std::int32_t zero_point, float* out) {
  const Dequantizer number{scale, zero_point};
  std::int64_t i = 0;
  // A load takes up to 16 bytes, never more than a vector of floats has elements.
  for (; i + kFloats <= n; i += kFloats) store(out + i, number(load_widened(x + i)));
  if (i == n) return;
  Q rest[kFloats] = {};
  std::copy_n(x + i, n - i, rest);
  store_first(out + i, number(load_widened(rest)), static_cast<int>(n - i));
}

template void quantize_row(const float*, std::int64_t, float, std::int32_t, std::int8_t*);
template void quantize_row(const float*, std::int64_t, float, std::int32_t, std::uint8_t*);
template void dequantize_row(const std::int8_t*, std::int64_t, float, std::int32_t, float*);
template void dequantize_row(const std::uint8_t*, std::int64_t, float, std::int32_t, float*);

RowQuantization row_of_range(float smallest, float largest) {
  smallest = std::max(std::min(smallest, 0.0F), -kLargest);
  largest = std::min(std::max(largest, 0.0F), kLargest);
  if (smallest == largest) return {};
  const float scale = std::max((largest - smallest) / 255.0F, FLT_MIN);
  const float low = smallest / scale;
  const float high = largest / scale;
  // The end that is met with the smaller error decides.
  const float zero = (-128.0F + low) + (127.0F + high) > 0 ? -128.0F - low : 127.0F - high;
  return {scale, static_cast<std::int32_t>(std::nearbyint(std::clamp(zero, -128.0F, 127.0F)))};
}

RowQuantization find_row(const float* x, std::int64_t n) {
  // Comparisons with NaN are false: it stands for neither end. Four chains, for a comparison takes longer than a load.
  Floats low[4] = {};
  Floats high[4] = {};
  const auto take = [&](int k, Floats v) {
    low[k] = v < low[k] ? v : low[k];
    high[k] = v > high[k] ? v : high[k];
  };
  std::int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    for (int k = 0; k < 4; ++k) take(k, load(x + i + k * kFloats));
  }
  for (; i + kFloats <= n; i += kFloats) take(0, load(x + i));
  if (i < n) take(1, load_first(x + i, static_cast<int>(n - i)));
  for (int k = 1; k < 4; ++k) {
    take(0, low[k]);
    take(0, high[k]);
  }
  const float smallest = across(low[0], [](Floats a, Floats b) { return a < b ? a : b; });
  return row_of_range(smallest, largest_of(high[0]));
}

}  // namespace wb::engine::WB_ISA
