// 3x3 convolutions of stride 1 by Winograd's transforms. Tiles of the image are transformed some at a time, so that
// what is transformed stays in the second-level cache; then each of the side^2 elements of a tile is a matrix product
// over the channels, for a panel of output channels at a time. Threads share tiles, or, where the weights are large or
// the tiles few, panels.
#include <algorithm>

#include "engine/operators/convolution/method.h"
#include "engine/operators/convolution/winograd_tiles.h"
#include "engine/operators/convolution/winograd_weights.h"

namespace wb::engine::WB_ISA::dense {
namespace {

constexpr std::int64_t kWorthwhile = 1 << 20;      // multiplications: about 20 us
constexpr std::int64_t kWeightBytes = 192 * 1024;  // of weights that are transformed in a run
constexpr std::size_t kSplitBytes = std::size_t{4} << 20;

std::int64_t round_up(std::int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

template <int M, bool Taps>
struct WinogradMethod {
  using Tiles = WinogradTiles<M>;
  using Weights = WinogradWeights<M>;
  using Transforms = Winograd<M>;
  static constexpr int kSide = Tiles::kSide;
  static constexpr int kElements = Tiles::kElements;

  static Weights weights_of(const Convolution& convolution) {
    Weights weights;
    weights.data = convolution.taps;
    weights.k = convolution.g.cin;
    weights.n = convolution.g.cout;
    weights.taps = Taps;
    return weights;
  }

  static Error prepare(PrepareContext& context, Convolution& convolution) {
    const Geometry& g = convolution.g;
    convolution.packed = true;
    const Weights weights = weights_of(convolution);
    const MatrixSource source = weight_source(g, context.node.attributes.weight_order, context.operands.inputs[1]);
    const std::uint64_t format =
        FormatKey(kWinogradFormat).add(M).add(Taps ? 1 : 0).add(source).add(g.cin).add(g.cout).value();
    bool ready = false;
    auto* packed = static_cast<float*>(context.setup.allocate_packed(source.data, format, weights.bytes(), &ready));
    if (packed == nullptr) {
      return context.setup.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of packed weights",
                                weights.bytes());
    }
    convolution.taps = packed;
    if (ready) return Error::Ok;
    pack_panels(context.setup, source, kWinogradTaps * g.cin, g.cout,
                [&](std::int64_t first, std::int64_t last) { weights.pack(source, first, last, packed); });
    return Error::Ok;
  }

  // Rows of weights that are transformed at a time, and what they take.
  static std::int64_t rows_at_once(std::int64_t k) {
    constexpr std::int64_t most = Taps ? kWeightBytes / (2 * kSide * kPanel * std::int64_t{sizeof(float)}) : kBlockK;
    const std::int64_t parts = std::max<std::int64_t>((k + most - 1) / most, 1);
    return ((k + parts - 1) / parts + 3) / 4 * 4;
  }
  // Elements are not the same place of a page apart: a row is written to all of them.
  static std::int64_t weight_plane(std::int64_t k) { return rows_at_once(k) * kPanel + kWidth; }

  // Elements of memory: an image's part, and what a thread needs for products.
  static std::int64_t image_elements(const Geometry& g, std::int64_t tiles) {
    return Planes::elements(kSide, tiles, g.cin) + round_up(g.cin);
  }
  static std::int64_t product_elements(const Geometry& g, std::int64_t tiles) {
    return Planes::elements(kSide, tiles, kPanel) + (Taps ? 2 * kSide * weight_plane(g.cin) : 0);
  }
  static bool by_panels(const Convolution& convolution, std::int64_t tiles, int threads) {
    const Weights weights = weights_of(convolution);
    return threads > 1 && weights.panels() >= 2 * threads &&
           (Taps || weights.bytes() >= kSplitBytes || tiles < 2 * threads);
  }

  static std::int64_t shape(Convolution& convolution, int threads) {
    const Geometry& g = convolution.g;
    const std::int64_t count = std::max<std::int64_t>(Tiles::count(g), 1);
    const std::int64_t most = most_winograd_tiles<M>(g);
    std::int64_t blocks = (count + most - 1) / most;
    convolution.parts = by_panels(convolution, count, threads) ? threads : 1;
    if (convolution.parts == 1) blocks = std::min((blocks + threads - 1) / threads * threads, count);
    convolution.block = (count + blocks - 1) / blocks;
    // Not by the block, which may be larger for fewer tiles, nor by how threads share: what is planned for the bounds
    // has to do for all sizes.
    const std::int64_t planned = std::min(most, count);
    return threads * (image_elements(g, planned) + product_elements(g, planned));
  }

  struct Work {
    const Convolution& convolution;
    const Finish& finish;
    const float* image;
    float* out;
    Weights weights;

    // Tiles [first, last), the output channels of one of `parts` parts. Each part transforms the tiles anew: that is
    // less work than to get from the cache of another core what its thread has transformed.
    void block(std::int64_t first, std::int64_t last, std::int64_t part, std::int64_t parts, float* memory) const {
      const Geometry& g = convolution.g;
      const std::int64_t count = last - first;
      const Planes in(memory + round_up(g.cin), count, g.cin);
      std::fill_n(memory, round_up(g.cin), 0.0F);  // a pixel of padding
      for (std::int64_t t = 0; t < count; ++t) {
        Tiles::transform_input(g, image, first + t, memory, in.at(0, t), in.plane);
      }
      float* const rest = memory + image_elements(g, count);
      const std::int64_t panels = weights.panels();
      for (std::int64_t p = part * panels / parts; p < (part + 1) * panels / parts; ++p) {
        panel(p, first, count, in, rest);
      }
    }

    // Output channels of a panel, of `count` tiles from `first` on.
    void panel(std::int64_t p, std::int64_t first, std::int64_t count, const Planes& in, float* memory) const {
      const Geometry& g = convolution.g;
      const Planes product(memory, count, kPanel);
      const std::int64_t rows = rows_at_once(g.cin);
      float* const transformed = memory + Planes::elements(kSide, count, kPanel);
      Tile tile;
      tile.lda = in.channels;
      tile.ldb = weights.stored(p);
      tile.ldc = product.channels;
      tile.tail = weights.columns(p) - (weights.stored(p) - 1) / kWidth * kWidth;
      for (std::int64_t k0 = 0; k0 < g.cin; k0 += rows) {
        tile.k = std::min(rows, g.cin - k0);
        tile.accumulate = k0 > 0;
        const Rows part{p, k0, count, in, product, transformed};
        pairs(part, &tile, std::make_index_sequence<kSide / 2>());
      }
      const std::int64_t begin = p * kPanel;
      for (std::int64_t t = 0; t < count; ++t) {
        Tiles::transform_output(g, finish, first + t, begin, begin + weights.columns(p), product.at(0, t),
                                product.plane, out);
      }
    }

    // Rows of a panel's weights from k0 on, and what they are multiplied with.
    struct Rows {
      std::int64_t p, k0, count;
      const Planes& in;
      const Planes& product;
      float* transformed;
    };

    template <std::size_t... Pair>
    void pairs(const Rows& part, Tile* tile, std::index_sequence<Pair...> /*pairs*/) const {
      (pair<Pair>(part, tile), ...);
    }

    // Two rows of elements: so few that their sums stay near while the next rows of weights are transformed.
    template <int Pair>
    void pair(const Rows& part, Tile* tile) const {
      const int stored = weights.stored(part.p);
      const std::int64_t plane = weight_plane(weights.k);
      if (Taps) weights.template transform<Pair>(part.p, part.k0, tile->k, part.transformed, plane);
      const int largest = stored <= kWidth ? kNarrowRows : kTileRows;
      const std::int64_t each = (part.count + largest - 1) / largest;
      const float* const base = weights.data + weights.panel_start(part.p);
      // Meanwhile the weights that come next are brought near: the next element's, or some of the next rows' taps.
      constexpr std::int64_t kLine = 64;
      const std::int64_t bytes = tile->k * stored * std::int64_t{sizeof(float)};
      const std::int64_t touched = Taps ? bytes * kWinogradTaps / kElements / kLine * kLine + kLine : bytes;
      const std::int64_t steps = std::max<std::int64_t>(each * tile->k, 1);
      tile->ahead_step = (touched + steps - 1) / steps;
      const float* const next = base + (part.k0 + tile->k) * kWinogradTaps * stored;  // taps
      for (int i = 0; i < 2 * kSide; ++i) {
        const int e = Transforms::kRows[Pair][i / kSide] * kSide + i % kSide;
        tile->b = Taps ? part.transformed + i * plane : base + (e * weights.k + part.k0) * stored;
        tile->ahead = Taps ? reinterpret_cast<const char*>(next) + (Pair * 2 * kSide + i) * touched
                           : reinterpret_cast<const char*>(tile->b + weights.k * stored);
        for (std::int64_t r = 0; r < each; ++r) {
          const std::int64_t t = r * part.count / each;
          const auto rows = static_cast<int>((r + 1) * part.count / each - t);
          tile->a = part.in.at(e, t) + part.k0;
          tile->c = part.product.at(e, t);
          tile_function_of(rows, stored)(*tile);
          tile->ahead += tile->ahead_step * tile->k;
        }
      }
    }
  };

  static void run(const RunContext& context, const Convolution& convolution, const Finish& finish) {
    const Geometry& g = convolution.g;
    const Work work{convolution, finish, input_of(context, convolution), context.operands.outputs[0].as<float>(),
                    weights_of(convolution)};
    const std::int64_t count = Tiles::count(g);
    const std::int64_t blocks = (count + convolution.block - 1) / convolution.block;
    auto* scratch = reinterpret_cast<float*>(context.scratch);
    const std::int64_t own = image_elements(g, convolution.block) + product_elements(g, convolution.block);
    const std::int64_t parts = convolution.parts;
    const auto task = [&](std::int64_t i, int thread) {
      work.block(i / parts * count / blocks, (i / parts + 1) * count / blocks, i % parts, parts,
                 scratch + thread * own);
    };
    if (count * kElements * g.cin * g.cout < 2 * kWorthwhile) {
      for (std::int64_t i = 0; i < blocks * parts; ++i) task(i, 0);
    } else {
      context.pool.parallel(blocks * parts, [&](std::int64_t i, int thread) { task(i, thread); });
    }
  }
};

template <int M, bool Taps>
constexpr Method method(const char* name) {
  using Winograd = WinogradMethod<M, Taps>;
  return {name, Winograd::prepare, Winograd::shape, Winograd::run};
}

}  // namespace

const Method kWinograd2Method = method<2, false>("winograd 2");
const Method kWinograd4Method = method<4, false>("winograd 4");
const Method kWinograd2TapsMethod = method<2, true>("winograd 2, weights in each run");
const Method kWinograd4TapsMethod = method<4, true>("winograd 4, weights in each run");

}  // namespace wb::engine::WB_ISA::dense
