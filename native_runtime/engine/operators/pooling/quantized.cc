#include "engine/operators/pooling/quantized.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/names.h"
#include "engine/operators/common/sums.h"
#include "engine/operators/common/work.h"

namespace wb::engine::WB_ISA {
namespace {

// Channels whose sums or maxima stand in the first cache while a window is read.
constexpr std::int64_t kChannels = 1024;
// So that a sum of bytes fits into 32 bits.
constexpr std::int64_t kMostTaps = 1 << 22;

bool is_bytes(ScalarType type) { return type == ScalarType::Char || type == ScalarType::Byte; }

template <typename Q>
void largest(Q* __restrict best, const Q* __restrict x, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c) best[c] = x[c] > best[c] ? x[c] : best[c];
}

// f(first of `n` channels) for each element of the window.
template <typename Q, typename F>
void each_tap(const Pooling& pool, const Q* image, const Taps& y, const Taps& x, F&& f) {
  const std::int64_t line = pool.columns.size * pool.channels;
  for (std::int64_t i = 0; i < y.count; ++i) {
    const Q* row = image + (y.first + i * pool.rows.dilation) * line;
    for (std::int64_t j = 0; j < x.count; ++j) f(row + (x.first + j * pool.columns.dilation) * pool.channels);
  }
}

template <typename Q>
void largest_of_window(const Pooling& pool, const Q* image, const Taps& y, const Taps& x, Q* out) {
  std::fill_n(out, pool.channels, std::numeric_limits<Q>::min());
  each_tap(pool, image, y, x, [&](const Q* p) { largest(out, p, pool.channels); });
}

template <typename Q>
void average_of_window(const Pooling& pool, const Q* image, const Taps& y, const Taps& x, const SumsTo& to,
                       std::int64_t at) {
  alignas(64) std::int32_t sums[kChannels];
  const float divisor = pool.divisor_of(y, x);
  for (std::int64_t begin = 0; begin < pool.channels; begin += kChannels) {
    const std::int64_t n = std::min(kChannels, pool.channels - begin);
    std::fill_n(sums, n, 0);
    each_tap(pool, image, y, x, [&](const Q* p) { add_bytes(sums, p + begin, n); });
    to.store(sums, n, y.count * x.count, divisor, at + begin);
  }
}

template <typename Q>
void run(const RunContext& context, const Pooling& pool) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const SumsTo to(*in.quantization, out);
  const std::int64_t image = pool.rows.size * pool.columns.size * pool.channels;
  const std::int64_t line = pool.out_w * pool.channels;
  const std::int64_t work = pool.batch * pool.out_h * line * pool.rows.kernel * pool.columns.kernel / 4;
  split(context.pool, pool.batch * pool.out_h, work, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Q* from = in.as<const Q>() + i / pool.out_h * image;
      const Taps y(pool.rows, i % pool.out_h);
      for (std::int64_t ox = 0; ox < pool.out_w; ++ox) {
        const Taps x(pool.columns, ox);
        const std::int64_t at = i * line + ox * pool.channels;
        if (pool.average) {
          average_of_window(pool, from, y, x, to, at);
        } else {
          largest_of_window(pool, from, y, x, out.as<Q>() + at);
        }
      }
    }
  });
}

}  // namespace

bool quantized_pool(const Graph& graph, const Node& node) {
  const Value& in = graph.values[node.inputs[0]];
  const Value& out = graph.values[node.outputs[0]];
  const Window& w = node.attributes.window;
  const auto whole = [](const Value& value) {
    return value.quantization.kind == Quantization::Kind::PerTensor && value.quantization.bits == 8 &&
           is_bytes(value.dtype);
  };
  if (!node.post.empty() || !whole(in) || w.kernel_h > kMostTaps / w.kernel_w) return false;
  if (node.op == Op::AvgPool) return whole(out) || out.dtype == ScalarType::Float;
  return in.dtype == out.dtype && same_quantization(in.quantization, out.quantization);
}

Error quantized_pool_prepare(PrepareContext& context) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const bool average = context.node.op == Op::AvgPool;
  const bool writes = average ? out.dtype == ScalarType::Float || (is_bytes(out.dtype) && out.quantization != nullptr)
                              : out.dtype == in.dtype && out.quantization != nullptr;
  if (is_bytes(in.dtype) && writes) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "pooling of quantized %s to %s", name_of(in.dtype),
                            name_of(out.dtype));
}

void quantized_pool_run(const RunContext& context, const Pooling& pool) {
  if (context.operands.inputs[0].dtype == ScalarType::Char) {
    run<std::int8_t>(context, pool);
  } else {
    run<std::uint8_t>(context, pool);
  }
}

}  // namespace wb::engine::WB_ISA
