#include "engine/operators/quantized_convolution/depthwise_rows.h"

#include <algorithm>
#include <array>
#include <utility>

namespace wb::engine::WB_ISA::quantized {
namespace {

constexpr int kPixels = 4;  // of the largest block

struct Block {
  const DepthwiseRow& row;
  std::int64_t ox;  // first pixel
  std::byte* to;    // its first channel

  [[nodiscard]] const Geometry& g() const { return row.convolution.g; }
  // Channel 0 of the input pixel in column ix of the row that meets kernel row ky.
  [[nodiscard]] const std::uint8_t* pixel(std::int64_t ky, std::int64_t ix) const {
    const bool inside = row.rows[ky] != nullptr && ix >= 0 && ix < g().w;
    return inside ? row.rows[ky] + ix * g().cin : row.convolution.padding;
  }
};

// A block of channels.
struct Channels {
  std::int64_t first;
  int count;
  const std::int8_t* weights;  // [group of taps][column of the kernel][vector]
  const std::int32_t* start;
  const float* scale;
  const float* bias;

  Channels(const Block& block, std::int64_t index)
      : first(block_channel(block.g().cin, index)),
        count(static_cast<int>(std::min<std::int64_t>(block.g().cin, kSpreadChannels))) {
    const DepthwiseBlocks& blocks = block.row.convolution.blocks;
    weights = blocks.weights + index * tap_groups(block.g()) * block.g().kw * kSpreadVectors * kDotBytes;
    start = blocks.start + index * kSpreadChannels;
    const bool direct = block.row.direct;
    scale = (direct ? blocks.direct_scale : blocks.scale) + index * kSpreadChannels;
    bias = (direct ? blocks.direct_bias : blocks.bias) + index * kSpreadChannels;
  }
};

// What the sums of pixel p become, where they are no bytes at once: in the order of the channels.
[[gnu::noinline]] void store_ordered(const Block& block, const Channels& channels, int p,
                                     const Floats (&spread_numbers)[kSpreadVectors]) {
  const Finish& finish = block.row.finish;
  alignas(64) float numbers[kSpreadChannels + kPanelColumns];
  for (int v = 0; v < kSpreadVectors; ++v) {
    for (int i = 0; i < kFloats; ++i) numbers[spread_channel(v, i)] = spread_numbers[v][i];
  }
  const std::int64_t row = block.row.row + block.ox + p;
  if (finish.rest != nullptr) {
    for (int i = 0; i < channels.count; ++i) {
      numbers[i] = std::min(std::max(numbers[i], finish.numbers.low), finish.numbers.high);
    }
    finish.rest->apply(numbers, kSpreadChannels, row, 1, channels.first, channels.count);
  }
  const std::int64_t element = finish.store.bytes ? 1 : static_cast<std::int64_t>(sizeof(float));
  std::byte* to = block.to + (p * block.g().cout + channels.first) * element;
  for (int i = 0; i < channels.count; i += static_cast<int>(kPanelColumns)) {
    store_numbers(finish.store, numbers + i, std::min(channels.count - i, static_cast<int>(kPanelColumns)),
                  to + i * element);
  }
}

template <bool Whole>
[[gnu::always_inline]] inline void store_pixel(const Block& block, const Channels& channels, int p,
                                               const Ints (&sums)[kSpreadVectors]) {
  const Store& s = block.row.finish.store;
  Floats numbers[kSpreadVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kSpreadVectors; ++v) {
    numbers[v] = fma(floats_of(sums[v]), load(channels.scale + v * kFloats), load(channels.bias + v * kFloats));
  }
  if (!block.row.direct) {
    store_ordered(block, channels, p, numbers);
    return;
  }
  std::byte* to = block.to + p * block.g().cout + channels.first;
  const DirectBytes bytes(s);
  Shorts q[kSpreadVectors / 2];
#pragma GCC unroll 2
  for (int v = 0; v < kSpreadVectors; v += 2) q[v / 2] = bytes(numbers[v], numbers[v + 1]);
  if (s.is_signed) {
    store_spread<std::int8_t, Whole>(reinterpret_cast<std::int8_t*>(to), q, channels.count);
  } else {
    store_spread<std::uint8_t, Whole>(reinterpret_cast<std::uint8_t*>(to), q, channels.count);
  }
}

// A square kernel without dilation: each input column is spread once for all outputs that it belongs to. `Inside`: none
// of its taps is padding.
template <int Kernel, int Stride, int Pixels, bool Inside>
struct Square {
  static constexpr int kColumns = (Pixels - 1) * Stride + Kernel;
  static constexpr int kGroups = (Kernel + kDotDepth - 1) / kDotDepth;

  const std::uint8_t* inputs[Kernel][Inside ? 1 : kColumns];  // pixels, of each row the first one if Inside
  std::int64_t step;                                          // from one to the next

  explicit Square(const Block& block) : step(block.g().cin) {
    const std::int64_t ix = block.ox * Stride - block.g().left;
    for (int ky = 0; ky < Kernel; ++ky) {
      for (int i = 0; i < (Inside ? 1 : kColumns); ++i) inputs[ky][i] = block.pixel(ky, ix + i);
    }
  }

  template <int Group, bool Whole>
  [[gnu::always_inline]] void group(const Block& block, const Channels& channels,
                                    Ints (&sums)[Pixels][kSpreadVectors]) const {
    constexpr int kTaps = std::min(Kernel - Group * kDotDepth, kDotDepth);
    const std::int8_t* weights = channels.weights + Group * Kernel * kSpreadVectors * kDotBytes;
    const std::uint8_t* pixels[kTaps];
#pragma GCC unroll 4
    for (int k = 0; k < kTaps; ++k) pixels[k] = inputs[Group * kDotDepth + k][0] + channels.first;
#pragma GCC unroll 20
    for (int i = 0; i < kColumns; ++i) {
      Ints x[kSpreadVectors];
      if constexpr (!Inside) {
#pragma GCC unroll 4
        for (int k = 0; k < kTaps; ++k) pixels[k] = inputs[Group * kDotDepth + k][i] + channels.first;
      }
      spread<kTaps, Whole>(pixels, channels.count, block.row.flip, x);
      if constexpr (Inside) {
#pragma GCC unroll 4
        for (int k = 0; k < kTaps; ++k) pixels[k] += step;
      }
#pragma GCC unroll 5
      for (int kx = 0; kx < Kernel; ++kx) {
        const int offset = i - kx;
        if (offset < 0 || offset % Stride != 0 || offset / Stride >= Pixels) continue;
#pragma GCC unroll 4
        for (int v = 0; v < kSpreadVectors; ++v) {
          const Ints right = dot_right(weights + (kx * kSpreadVectors + v) * kDotBytes);
          sums[offset / Stride][v] = dot(sums[offset / Stride][v], x[v], right);
        }
      }
    }
    if constexpr (Group + 1 < kGroups) group<Group + 1, Whole>(block, channels, sums);
  }

  template <bool Whole>
  void channels(const Block& block, const Channels& channels) const {
    Ints sums[Pixels][kSpreadVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kSpreadVectors; ++v) {
      const Ints start = load(channels.start + v * kFloats);
#pragma GCC unroll 4
      for (int p = 0; p < Pixels; ++p) sums[p][v] = start;
    }
    group<0, Whole>(block, channels, sums);
#pragma GCC unroll 4
    for (int p = 0; p < Pixels; ++p) store_pixel<Whole>(block, channels, p, sums[p]);
  }

  void all(const Block& block) const {
    const std::int64_t blocks = channel_blocks(block.g().cin);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const Channels some(block, b);
      if (some.count == kSpreadChannels) {
        channels<true>(block, some);
      } else {
        channels<false>(block, some);
      }
    }
  }
};

template <int Kernel, int Stride, int Pixels>
void square_block(const Block& block) {
  using Border = Square<Kernel, Stride, Pixels, false>;
  const std::int64_t ix = block.ox * Stride - block.g().left;
  bool inside = ix >= 0 && ix + Border::kColumns <= block.g().w;
  for (int ky = 0; ky < Kernel; ++ky) inside = inside && block.row.rows[ky] != nullptr;
  if (inside) {
    Square<Kernel, Stride, Pixels, true>(block).all(block);
  } else {
    Border(block).all(block);
  }
}

// Any kernel, one pixel.
void any_pixel(const Block& block) {
  const Geometry& g = block.g();
  const std::int64_t ix = block.ox * g.sw - g.left;
  for (std::int64_t b = 0; b < channel_blocks(g.cin); ++b) {
    const Channels channels(block, b);
    Ints sums[kSpreadVectors];
    for (int v = 0; v < kSpreadVectors; ++v) sums[v] = load(channels.start + v * kFloats);
    const std::int8_t* weights = channels.weights;
    for (std::int64_t ky = 0; ky < g.kh; ky += kDotDepth) {
      for (std::int64_t kx = 0; kx < g.kw; ++kx, weights += kSpreadVectors * kDotBytes) {
        const std::uint8_t* pixels[kDotDepth];
        for (int i = 0; i < kDotDepth; ++i) {
          const bool tap = ky + i < g.kh;
          pixels[i] = (tap ? block.pixel(ky + i, ix + kx * g.dw) : block.row.convolution.padding) + channels.first;
        }
        Ints x[kSpreadVectors];
        spread<kDotDepth, false>(pixels, channels.count, block.row.flip, x);
        for (int v = 0; v < kSpreadVectors; ++v) sums[v] = dot(sums[v], x[v], dot_right(weights + v * kDotBytes));
      }
    }
    store_pixel<false>(block, channels, 0, sums);
  }
}

using BlockFunction = void (*)(const Block& block);

template <int Kernel, int Stride, std::size_t... P>
constexpr std::array<BlockFunction, sizeof...(P)> square_blocks(std::index_sequence<P...> /*pixels*/) {
  return {square_block<Kernel, Stride, static_cast<int>(P) + 1>...};
}
template <int Kernel, int Stride>
constexpr auto kSquare = square_blocks<Kernel, Stride>(std::make_index_sequence<kPixels>());

// Functions by pixels - 1; null for a kernel without.
const BlockFunction* square_functions(const Geometry& g) {
  if (g.kh != g.kw || g.sh != g.sw || g.dh != 1 || g.dw != 1) return nullptr;
  if (g.kh == 3 && g.sh == 1) return kSquare<3, 1>.data();
  if (g.kh == 3 && g.sh == 2) return kSquare<3, 2>.data();
  if (g.kh == 5 && g.sh == 1) return kSquare<5, 1>.data();
  if (g.kh == 5 && g.sh == 2) return kSquare<5, 2>.data();
  return nullptr;
}

}  // namespace

void depthwise_row(const DepthwiseRow& row, std::byte* to) {
  const Geometry& g = row.convolution.g;
  const BlockFunction* functions = square_functions(g);
  const std::int64_t largest = functions == nullptr ? 1 : kPixels;
  const std::int64_t blocks = (g.ow + largest - 1) / largest;
  const std::int64_t pixel = g.cout * (row.finish.store.bytes ? 1 : static_cast<std::int64_t>(sizeof(float)));
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t ox = b * g.ow / blocks;
    const std::int64_t pixels = (b + 1) * g.ow / blocks - ox;
    const Block block{row, ox, to + ox * pixel};
    if (functions == nullptr) {
      any_pixel(block);
    } else {
      functions[pixels - 1](block);
    }
  }
}

}  // namespace wb::engine::WB_ISA::quantized
