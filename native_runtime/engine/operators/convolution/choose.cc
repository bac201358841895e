#include "engine/operators/convolution/choose.h"

#include <algorithm>

#include "engine/operators/convolution/winograd_transforms.h"
#include "engine/operators/matmul/product.h"

namespace wb::engine::WB_ISA::dense {
namespace {

// Cycles, measured on Zen 4 with 512-bit vectors; on others the ratios, which decide, are about the same.
constexpr double kTileCycles = 50;           // to begin and end a tile of a product
constexpr double kTransformCycles = 9;       // per element and vector of channels, there or back
constexpr double kWeightBytesPerCycle = 12;  // read from memory, beside the multiplications
// F(4 x 4) has 2.25 times the weights of F(2 x 2): it has to be worth them.
constexpr double kWorthWeights = 0.85;
constexpr double kCopyCycles = 0.15;  // to copy a vector of image rows

double vectors(std::int64_t n) { return static_cast<double>((n + kWidth - 1) / kWidth); }

// Of `count` products of m x k and k x n.
double product_cycles(double count, double m, std::int64_t k, std::int64_t n) {
  const double tiles = (m / kTileRows + 1) * vectors(n) / kTileVectors;
  const double multiply = m * static_cast<double>(k) * vectors(n) + tiles * kTileCycles;
  const double weights = static_cast<double>(k * n) * sizeof(float) / kWeightBytesPerCycle;
  return count * (multiply + weights);
}

double direct_cycles(const Geometry& g) {
  const auto pixels = static_cast<double>(g.pixels());
  return product_cycles(1, pixels, g.depth(), g.cout) + pixels * static_cast<double>(g.depth()) * kCopyCycles;
}

template <int M>
double winograd_cycles(const Geometry& g) {
  constexpr double kElements = Winograd<M>::kSide * Winograd<M>::kSide;
  const auto tiles = static_cast<double>(g.batch * ((g.oh + M - 1) / M) * ((g.ow + M - 1) / M));
  return product_cycles(kElements, tiles, g.cin, g.cout) +
         tiles * kElements * (vectors(g.cin) + vectors(g.cout)) * kTransformCycles;
}

}  // namespace

const Method* choose_method(const Geometry& g, bool constant_weight) {
  if (g.cin_group() == 1 && g.groups > 1) return &kDepthwiseMethod;
  const bool small = g.kh == 3 && g.kw == 3 && g.sh == 1 && g.sw == 1 && g.dh == 1 && g.dw == 1 && g.groups == 1;
  if (!small || !constant_weight) return &kProductMethod;
  const double direct = direct_cycles(g);
  const double two = winograd_cycles<2>(g);
  const double four = winograd_cycles<4>(g);
  if (direct <= std::min(two, four)) return &kProductMethod;
  return four < kWorthWeights * two ? &kWinograd4Method : &kWinograd2Method;
}

}  // namespace wb::engine::WB_ISA::dense
