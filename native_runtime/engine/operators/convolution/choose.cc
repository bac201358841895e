#include "engine/operators/convolution/choose.h"

#include <algorithm>
#include <cmath>

#include "engine/operators/convolution/winograd_tiles.h"
#include "engine/operators/matmul/product.h"

namespace wb::engine::WB_ISA::dense {
namespace {

// Cycles, measured on Zen 4 with 512-bit vectors; on others the ratios, which decide, are about the same.
constexpr double kTileCycles = 50;          // to begin and end a tile of a product
constexpr double kTransformCycles = 9;      // per element and vector of channels, there or back
constexpr double kWeightBytesPerCycle = 9;  // read from memory: 30 GB/s
constexpr double kHidden = 0.8;             // of the shorter one of reading and computing
constexpr double kAgain = 0.3;              // of reading weights another time: by then they are in a cache
constexpr double kCopyCycles = 0.15;        // to copy a vector of image rows
// To transform a vector of weights in a run: nearly all of it is writing its side^2 elements.
template <int M>
constexpr double kWeightCycles = M == 2 ? 70 : 124;
// The price of a byte that stays resident: 30 us for a megabyte. Winograd's weights, transformed, are 16 / 9 and 36 / 9
// of the convolution's. For resnet18 (one core, packed weights in MB, run in ms): all of them transformed while packing
// 153, 16.9; in each run 45, 18.0; priced, 51, 17.6: those of the 14 x 14 and 7 x 7 images are transformed in each run.
constexpr double kBytePrice = 0.1;

double vectors(std::int64_t n) { return static_cast<double>((n + kWidth - 1) / kWidth); }
double weight_bytes(const Geometry& g, double taps) {
  return taps * static_cast<double>(g.cin_group() * g.cout) * sizeof(float);
}

// Of `count` products of m x k and k x n whose right-hand sides are near.
double product_cycles(double count, double m, std::int64_t k, std::int64_t n) {
  const double tiles = (m / kTileRows + 1) * vectors(n) / kTileVectors;
  return count * (m * static_cast<double>(k) * vectors(n) + tiles * kTileCycles);
}

// With what it costs to read the weights, `times`, and to keep them.
double with_weights(double compute, double bytes, double times) {
  const double read = bytes / kWeightBytesPerCycle * (1 + kAgain * (times - 1));
  return std::max(compute, read) + (1 - kHidden) * std::min(compute, read) + bytes * kBytePrice;
}

double direct_cycles(const Geometry& g) {
  const auto pixels = static_cast<double>(g.pixels());
  const double multiply = product_cycles(1, pixels, g.depth(), g.cout);
  return with_weights(multiply + pixels * static_cast<double>(g.depth()) * kCopyCycles,
                      weight_bytes(g, static_cast<double>(g.taps())), 1);
}

template <int M>
double winograd_cycles(const Geometry& g, bool taps) {
  constexpr double kElements = Winograd<M>::kSide * Winograd<M>::kSide;
  const auto tiles = static_cast<double>(g.batch * ((g.oh + M - 1) / M) * ((g.ow + M - 1) / M));
  const double multiply = product_cycles(kElements, tiles, g.cin, g.cout) +
                          tiles * kElements * (vectors(g.cin) + vectors(g.cout)) * kTransformCycles;
  const double blocks = std::ceil(tiles / static_cast<double>(most_winograd_tiles<M>(g)));
  const double transform = taps ? blocks * static_cast<double>(g.cin) * vectors(g.cout) * kWeightCycles<M> : 0;
  return with_weights(multiply + transform, weight_bytes(g, taps ? 9 : kElements), blocks);
}

}  // namespace

Candidates candidate_methods(const Geometry& g, bool constant_weight) {
  Candidates found;
  if (g.cin_group() == 1 && g.groups > 1) {
    found.add(&kDepthwiseMethod, 0);
    return found;
  }
  found.add(&kProductMethod, direct_cycles(g));
  const bool small = g.kh == 3 && g.kw == 3 && g.sh == 1 && g.sw == 1 && g.dh == 1 && g.dw == 1 && g.groups == 1;
  if (!small || !constant_weight) return found;
  found.add(&kWinograd2Method, winograd_cycles<2>(g, false));
  found.add(&kWinograd4Method, winograd_cycles<4>(g, false));
  found.add(&kWinograd2TapsMethod, winograd_cycles<2>(g, true));
  found.add(&kWinograd4TapsMethod, winograd_cycles<4>(g, true));
  return found;
}

}  // namespace wb::engine::WB_ISA::dense
