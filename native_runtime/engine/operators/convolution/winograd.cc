// 3x3 convolutions of stride 1 by Winograd's transforms. Tiles of the image are transformed some at a time, so that
// what is transformed stays in the second-level cache; then each of the side^2 elements of a tile is a matrix product
// over the channels.
#include <algorithm>

#include "engine/operators/convolution/method.h"
#include "engine/operators/convolution/winograd_transforms.h"
#include "engine/operators/matmul/product.h"

namespace wb::engine::WB_ISA::dense {
namespace {

std::int64_t round_up(std::int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

// The transformed tiles of a block: [side^2][tiles][channels]. Planes do not start at the same place of a page: each
// tile writes to all of them.
struct Planes {
  float* data;
  std::int64_t channels, plane;

  Planes(float* memory, std::int64_t tiles, std::int64_t count)
      : data(memory), channels(round_up(count)), plane(tiles * channels + kWidth) {}
  [[nodiscard]] float* at(std::int64_t element, std::int64_t tile) const {
    return data + element * plane + tile * channels;
  }
  static std::int64_t elements(int side, std::int64_t tiles, std::int64_t count) {
    return side * side * (tiles * round_up(count) + kWidth);
  }
};

template <int M>
struct WinogradMethod {
  using Transforms = Winograd<M>;
  static constexpr int kSide = Transforms::kSide;
  static constexpr int kElements = kSide * kSide;

  static std::int64_t tiles_h(const Geometry& g) { return (g.oh + M - 1) / M; }
  static std::int64_t tiles_w(const Geometry& g) { return (g.ow + M - 1) / M; }
  static std::int64_t tiles(const Geometry& g) { return g.batch * tiles_h(g) * tiles_w(g); }

  static void transform_weight(const MatrixSource& source, const PackedMatrix& matrix, float* to) {
    const std::int64_t plane = matrix.k * matrix.columns();
    Vector taps[kWidth * 9];
    for (std::int64_t column = 0; column < matrix.n; column += kWidth) {
      const auto columns = static_cast<int>(std::min<std::int64_t>(matrix.n - column, kWidth));
      PackedColumn place(matrix, column, to);
      for (std::int64_t first = 0; first < matrix.k; first += kWidth) {
        const auto count = static_cast<int>(std::min<std::int64_t>(matrix.k - first, kWidth));
        gather_taps(source, column, columns, first, count, taps);
        for (int i = 0; i < count; ++i) {
          Vector half[3 * kSide];
          Vector whole[kElements];
#pragma GCC unroll 3
          for (int x = 0; x < 3; ++x) Transforms::template weight<3, 3>(taps + 9 * i + x, half + x);
#pragma GCC unroll 6
          for (int y = 0; y < kSide; ++y) Transforms::template weight<1, 1>(half + 3 * y, whole + kSide * y);
          for (int e = 0; e < kElements; ++e) place.store(first + i, e * plane, whole[e]);
        }
      }
    }
  }

  static Error prepare(PrepareContext& context, Convolution& convolution) {
    const Geometry& g = convolution.g;
    PackedMatrix& matrix = convolution.weights;
    matrix.k = g.cin;
    matrix.n = g.cout;
    convolution.packed = true;
    const MatrixSource source = weight_source(g, context.node.attributes.weight_order, context.operands.inputs[1]);
    const std::uint64_t format = FormatKey(kWinogradFormat).add(M).add(source).add(g.cin).add(g.cout).value();
    const std::size_t bytes = matrix.bytes() * kElements;
    bool ready = false;
    auto* packed = static_cast<float*>(context.setup.allocate_packed(source.data, format, bytes, &ready));
    if (packed == nullptr) {
      return context.setup.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of packed weights", bytes);
    }
    matrix.data = packed;
    if (!ready) transform_weight(source, matrix, packed);
    return Error::Ok;
  }

  static std::int64_t thread_elements(const Geometry& g, std::int64_t block) {
    return kRowScratch + Planes::elements(kSide, block, g.cin) + Planes::elements(kSide, block, g.cout) +
           round_up(g.cin);
  }

  static std::int64_t shape(Convolution& convolution, int threads) {
    const Geometry& g = convolution.g;
    constexpr std::int64_t kBlockBytes = 512 * 1024;
    constexpr std::int64_t kFewest = 24;  // the weights are read once a block
    constexpr std::size_t kSplitBytes = std::size_t{4} << 20;
    const std::int64_t tile_bytes = kElements * (round_up(g.cin) + round_up(g.cout)) * std::int64_t{sizeof(float)};
    const std::int64_t count = std::max<std::int64_t>(tiles(g), 1);
    const std::int64_t most = std::max(kBlockBytes / tile_bytes, kFewest);
    std::int64_t blocks = (count + most - 1) / most;
    // Every thread with tiles of its own reads all weights: large ones are split by output channels instead.
    const std::int64_t panels = convolution.weights.panels();
    const bool by_channels = threads > 1 && panels >= 2 * threads &&
                             (convolution.weights.bytes() * kElements >= kSplitBytes || count < 2 * threads);
    convolution.parts = by_channels ? threads : 1;
    if (!by_channels) blocks = std::min((blocks + threads - 1) / threads * threads, count);
    convolution.block = (count + blocks - 1) / blocks;
    // Not by the block, which may be larger for fewer tiles: what is planned for the bounds has to do for all sizes.
    return threads * thread_elements(g, std::min(most, count));
  }

  struct Work {
    const Convolution& convolution;
    const Finish& finish;
    const float* image;
    float* out;

    // Tiles [first, first + count), output channels of panels [p0, p1).
    void block(std::int64_t first, std::int64_t count, std::int64_t p0, std::int64_t p1, float* scratch) const {
      const Geometry& g = convolution.g;
      float* const rows = scratch;
      float* const zeros = rows + kRowScratch;
      float* const memory = zeros + round_up(g.cin);
      const Planes in(memory, count, g.cin);
      const Planes product(memory + Planes::elements(kSide, count, g.cin), count, g.cout);
      std::fill_n(zeros, round_up(g.cin), 0.0F);
      for (std::int64_t t = 0; t < count; ++t) transform_input(first + t, in.at(0, t), in.plane, zeros);
      Product p;
      p.m = count;
      p.b = convolution.weights;
      p.a.lda = in.channels;
      p.ldc = product.channels;
      for (std::int64_t e = 0; e < kElements; ++e) {
        p.b.data = convolution.weights.data + e * p.b.k * p.b.columns();
        p.a.data = in.at(e, 0);
        p.c = product.at(e, 0);
        product_part(p, 0, count, p0, p1, rows);
      }
      const std::int64_t end = std::min(p1 * kPanel, g.cout);
      for (std::int64_t t = 0; t < count; ++t) {
        transform_output(first + t, p0 * kPanel, end, product.at(0, t), product.plane);
      }
    }

    void transform_input(std::int64_t tile, float* to, std::int64_t plane, const float* zeros) const {
      const Geometry& g = convolution.g;
      const std::int64_t iy = tile / tiles_w(g) % tiles_h(g) * M - g.top;
      const std::int64_t ix = tile % tiles_w(g) * M - g.left;
      const float* base = image + tile / tiles_w(g) / tiles_h(g) * g.h * g.w * g.cin;
      const float* pixels[kElements];
      for (int y = 0; y < kSide; ++y) {
        for (int x = 0; x < kSide; ++x) {
          const bool inside = iy + y >= 0 && iy + y < g.h && ix + x >= 0 && ix + x < g.w;
          pixels[y * kSide + x] = inside ? base + ((iy + y) * g.w + ix + x) * g.cin : zeros;
        }
      }
      std::int64_t c = 0;
      for (; c + kWidth <= g.cin; c += kWidth) {
        input_vector(to + c, plane, [&](int i) __attribute__((always_inline)) { return simd::load(pixels[i] + c); });
      }
      if (c == g.cin) return;
      const auto rest = static_cast<int>(g.cin - c);
      input_vector(to + c, plane, [&](int i) { return simd::load_first(pixels[i] + c, rest); });
    }

    template <typename Load>
    [[gnu::always_inline]] static void input_vector(float* to, std::int64_t plane, Load load) {
      Vector half[kElements];
#pragma GCC unroll 6
      for (int x = 0; x < kSide; ++x) {
        Vector column[kSide];
#pragma GCC unroll 6
        for (int y = 0; y < kSide; ++y) column[y] = load(y * kSide + x);
        Transforms::template input<1, kSide>(column, half + x);
      }
#pragma GCC unroll 6
      for (int y = 0; y < kSide; ++y) {
        Vector row[kSide];
        Transforms::template input<1, 1>(half + y * kSide, row);
#pragma GCC unroll 6
        for (int x = 0; x < kSide; ++x) simd::store(to + (y * kSide + x) * plane, row[x]);
      }
    }

    void transform_output(std::int64_t tile, std::int64_t c, std::int64_t end, const float* from,
                          std::int64_t plane) const {
      const Geometry& g = convolution.g;
      const std::int64_t oy = tile / tiles_w(g) % tiles_h(g) * M;
      const std::int64_t ox = tile % tiles_w(g) * M;
      const auto rows = static_cast<int>(std::min<std::int64_t>(M, g.oh - oy));
      const auto columns = static_cast<int>(std::min<std::int64_t>(M, g.ow - ox));
      const std::int64_t pixel = (tile / tiles_w(g) / tiles_h(g) * g.oh + oy) * g.ow + ox;
      const std::int64_t begin = c;
      for (; c + kWidth <= end; c += kWidth) output_vector(from + c, plane, pixel, rows, columns, c, Whole{});
      if (c < end) output_vector(from + c, plane, pixel, rows, columns, c, static_cast<int>(end - c));
      if (finish.rest == nullptr) return;
      for (int y = 0; y < rows; ++y) {
        const std::int64_t row = pixel + y * g.ow;
        finish.rest->apply(out + row * g.cout + begin, g.cout, row, columns, begin, end - begin);
      }
    }

    template <typename Count>
    [[gnu::always_inline]] void output_vector(const float* from, std::int64_t plane, std::int64_t pixel, int rows,
                                              int columns, std::int64_t c, Count n) const {
      const Geometry& g = convolution.g;
      Vector half[M * kSide];
#pragma GCC unroll 6
      for (int x = 0; x < kSide; ++x) {
        Vector column[kSide];
#pragma GCC unroll 6
        for (int y = 0; y < kSide; ++y) column[y] = simd::load(from + (y * kSide + x) * plane);
        Transforms::template output<1, kSide>(column, half + x);
      }
      const Vector bias = finish.bias != nullptr ? load_some(finish.bias + c, n) : Vector{};
#pragma GCC unroll 4
      for (int y = 0; y < M; ++y) {
        if (y >= rows) break;
        Vector row[M];
        Transforms::template output<1, 1>(half + y * kSide, row);
        const std::int64_t at = (pixel + y * g.ow) * g.cout + c;
#pragma GCC unroll 4
        for (int x = 0; x < M; ++x) {
          if (x >= columns) break;
          Vector v = row[x] + bias;
          if (finish.residual != nullptr) v += load_some(finish.residual + at + x * g.cout, n);
          if (finish.clamp) v = simd::min(simd::splat(finish.high), simd::max(simd::splat(finish.low), v));
          store_some(out + at + x * g.cout, v, n);
        }
      }
    }
  };

  static void run(const RunContext& context, const Convolution& convolution, const Finish& finish) {
    const Geometry& g = convolution.g;
    const Work work{convolution, finish, input_of(context, convolution), context.operands.outputs[0].as<float>()};
    const std::int64_t count = tiles(g);
    const std::int64_t blocks = (count + convolution.block - 1) / convolution.block;
    const std::int64_t parts = convolution.parts;
    const std::int64_t panels = convolution.weights.panels();
    auto* scratch = reinterpret_cast<float*>(context.scratch);
    const std::int64_t own = thread_elements(g, convolution.block);
    const auto task = [&](std::int64_t i, int thread) {
      const std::int64_t first = i / parts * count / blocks;
      const std::int64_t last = (i / parts + 1) * count / blocks;
      work.block(first, last - first, i % parts * panels / parts, (i % parts + 1) * panels / parts,
                 scratch + thread * own);
    };
    constexpr std::int64_t kWorthwhile = 1 << 20;  // multiplications: about 20 us
    if (count * kElements * g.cin * g.cout < 2 * kWorthwhile) {
      for (std::int64_t i = 0; i < blocks * parts; ++i) task(i, 0);
    } else {
      context.pool.parallel(blocks * parts, [&](std::int64_t i, int thread) { task(i, thread); });
    }
  }
};

}  // namespace

const Method kWinograd2Method = {WinogradMethod<2>::prepare, WinogradMethod<2>::shape, WinogradMethod<2>::run};
const Method kWinograd4Method = {WinogradMethod<4>::prepare, WinogradMethod<4>::shape, WinogradMethod<4>::run};

}  // namespace wb::engine::WB_ISA::dense
