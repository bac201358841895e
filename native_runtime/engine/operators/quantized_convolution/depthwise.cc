// Depthwise convolutions of integers, directly: each channel is a lane.
#include <algorithm>

#include "engine/operators/matmul/constants.h"
#include "engine/operators/quantized_convolution/depthwise_rows.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

constexpr std::uint64_t kDepthwiseFormat = 17;
constexpr std::int64_t kWorthwhile = 1 << 16;  // multiplications: about 2 us

std::int64_t weight_bytes(const Geometry& g) {
  return channel_blocks(g.cin) * tap_groups(g) * g.kw * kSpreadVectors * kDotBytes;
}

// Calls f(place in the arrays of blocks, channel) for each lane that has a channel.
template <typename F>
void for_lanes(std::int64_t channels, F&& f) {
  for (std::int64_t b = 0; b < channel_blocks(channels); ++b) {
    for (int v = 0; v < kSpreadVectors; ++v) {
      for (int i = 0; i < kFloats; ++i) {
        const std::int64_t channel = block_channel(channels, b) + spread_channel(v, i);
        if (channel < channels) f((b * kSpreadVectors + v) * kFloats + i, channel);
      }
    }
  }
}

// Tap (ky, kx) of the channel at lane `at`.
std::int64_t tap_place(const Geometry& g, std::int64_t at, std::int64_t ky, std::int64_t kx) {
  const std::int64_t block = at / kSpreadChannels;
  const std::int64_t step = (block * tap_groups(g) + ky / kDotDepth) * g.kw + kx;
  return step * kSpreadVectors * kDotBytes + at % kSpreadChannels * kDotDepth + ky % kDotDepth;
}

Error pack(PrepareContext& context, const Geometry& g, DepthwiseBlocks* blocks) {
  const WeightOrder& order = context.node.attributes.weight_order;
  const TensorView& weight = context.operands.inputs[1];
  const std::uint64_t format = dense::FormatKey(kDepthwiseFormat)
                                   .add(g.cout)
                                   .add(g.kh)
                                   .add(g.kw)
                                   .add(order.cout)
                                   .add(order.h)
                                   .add(order.w)
                                   .value();
  const auto bytes = static_cast<std::size_t>(weight_bytes(g));
  bool ready = false;
  auto* to = static_cast<std::int8_t*>(context.setup.allocate_packed(weight.data, format, bytes, &ready));
  if (to == nullptr) {
    return context.setup.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of packed weights", bytes);
  }
  blocks->weights = to;
  if (ready) return Error::Ok;
  std::fill_n(to, bytes, std::int8_t{0});
  const auto* from = weight.as<const std::int8_t>();
  for_lanes(g.cin, [&](std::int64_t at, std::int64_t channel) {
    for (std::int64_t ky = 0; ky < g.kh; ++ky) {
      for (std::int64_t kx = 0; kx < g.kw; ++kx) {
        to[tap_place(g, at, ky, kx)] = from[channel * order.cout + ky * order.h + kx * order.w];
      }
    }
  });
  return Error::Ok;
}

// What columns have, as lanes.
template <typename T>
Error spread_columns(Setup& setup, std::int64_t channels, const T* from, const T** to) {
  const std::size_t bytes = static_cast<std::size_t>(channel_blocks(channels) * kSpreadChannels) * sizeof(T);
  auto* memory = static_cast<T*>(setup.allocate(bytes));
  if (memory == nullptr) return setup.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of a state", bytes);
  std::fill_n(memory, bytes / sizeof(T), T{0});
  for_lanes(channels, [&](std::int64_t at, std::int64_t channel) { memory[at] = from[channel]; });
  *to = memory;
  return Error::Ok;
}

Error prepare(PrepareContext& context, Convolution& convolution) {
  const Geometry& g = convolution.g;
  const Operands& operands = context.operands;
  Setup& setup = context.setup;
  DepthwiseBlocks& blocks = convolution.blocks;
  WB_TRY(pack(context, g, &blocks));
  // Sums of the taps, as those of columns of a product.
  Weights weights;
  weights.matrix.n = g.cout;
  weights.matrix.k = g.taps();
  auto* sums = static_cast<std::int32_t*>(setup.allocate(static_cast<std::size_t>(g.cout) * sizeof(std::int32_t)));
  const std::size_t padding = static_cast<std::size_t>(g.cin + kSpreadChannels);
  auto* pixel = static_cast<std::uint8_t*>(setup.allocate(padding));
  if (sums == nullptr || pixel == nullptr) {
    return setup.fail(Error::MemoryAllocationFailed, "no memory for a state");
  }
  for_lanes(g.cin, [&](std::int64_t at, std::int64_t channel) {
    std::int32_t sum = 0;
    for (std::int64_t t = 0; t < g.taps(); ++t) sum += blocks.weights[tap_place(g, at, t / g.kw, t % g.kw)];
    sums[channel] = sum;
  });
  weights.columns.sums = sums;
  std::fill_n(pixel, padding, static_cast<std::uint8_t>(operands.inputs[0].quantization->zero_point));
  convolution.padding = pixel;
  const LeftSide left(operands.inputs[0]);
  WB_TRY(prepare_columns(setup, left, {*operands.inputs[1].quantization}, bias_of(operands), operands.outputs[0],
                         &weights));
  WB_TRY(spread_columns(setup, g.cin, weights.columns.start, &blocks.start));
  WB_TRY(spread_columns(setup, g.cin, weights.columns.scale, &blocks.scale));
  WB_TRY(spread_columns(setup, g.cin, weights.columns.bias, &blocks.bias));
  if (weights.columns.direct_scale == nullptr) return Error::Ok;
  blocks.direct_inverse = weights.columns.direct_inverse;
  WB_TRY(spread_columns(setup, g.cin, weights.columns.direct_scale, &blocks.direct_scale));
  return spread_columns(setup, g.cin, weights.columns.direct_bias, &blocks.direct_bias);
}

// Of a thread: pointers to the rows of the kernel.
std::int64_t thread_bytes(const Geometry& g) {
  return (g.kh * static_cast<std::int64_t>(sizeof(const std::uint8_t*)) + 63) / 64 * 64;
}

std::int64_t shape(const Convolution& convolution, int threads) { return threads * thread_bytes(convolution.g); }

void run(const RunContext& context, const Convolution& convolution, const Finish& finish) {
  const Geometry& g = convolution.g;
  const TensorView& x = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const LeftSide left(x);
  const std::int64_t in_row = g.w * g.cin;
  const std::int64_t out_row = g.ow * g.cout * static_cast<std::int64_t>(element_size(out.dtype));
  const DepthwiseBlocks& blocks = convolution.blocks;
  const bool direct = finish.rest == nullptr && finish.store.bytes && blocks.direct_scale != nullptr &&
                      blocks.direct_inverse == finish.store.inverse;
  const auto rows = [&](std::int64_t first, std::int64_t last, int thread) {
    auto* const pointers = reinterpret_cast<const std::uint8_t**>(context.scratch + thread * thread_bytes(g));
    for (std::int64_t i = first; i < last; ++i) {
      const auto* base = x.as<const std::uint8_t>() + i / g.oh * g.h * in_row;
      for (std::int64_t ky = 0; ky < g.kh; ++ky) {
        const std::int64_t y = i % g.oh * g.sh - g.top + ky * g.dh;
        pointers[ky] = y >= 0 && y < g.h ? base + y * in_row : nullptr;
      }
      const DepthwiseRow row{convolution, pointers, left.form.flip, finish, direct, i * g.ow};
      depthwise_row(row, out.as<std::byte>() + i * out_row);
    }
  };
  const std::int64_t count = g.batch * g.oh;
  const std::int64_t threads = context.pool.threads();
  const std::int64_t most = g.pixels() * g.cout * g.taps() / kWorthwhile;
  const std::int64_t parts = std::min(std::min(most, 4 * threads), count);
  if (threads == 1 || parts < 2) {
    rows(0, count, 0);
    return;
  }
  context.pool.parallel(parts,
                        [&](std::int64_t i, int thread) { rows(i * count / parts, (i + 1) * count / parts, thread); });
}

}  // namespace

const ConvolutionMethod kDepthwiseMethod = {prepare, shape, run};

}  // namespace wb::engine::WB_ISA::quantized
