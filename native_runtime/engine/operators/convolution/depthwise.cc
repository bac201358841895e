// Convolutions with one input channel a group, directly: vectors over channels. With several outputs a channel, the
// input rows are first spread to as many channels as there are outputs.
#include <algorithm>

#include "engine/operators/convolution/depthwise_rows.h"
#include "engine/operators/convolution/method.h"

namespace wb::engine::WB_ISA::dense {
namespace {

std::int64_t round_up(std::int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

// [tap][channel], channels rounded up; then a pixel of zeros.
std::int64_t packed_elements(const Geometry& g) { return (g.taps() + 1) * round_up(g.cout); }

void pack_taps(const Geometry& g, const WeightOrder& order, const TensorView& weight, float* to) {
  const std::int64_t step = round_up(g.cout);
  const auto element = static_cast<std::int64_t>(element_size(weight.dtype));
  std::fill_n(to, packed_elements(g), 0.0F);
  for (std::int64_t c = 0; c < g.cout; ++c) {
    const std::byte* from = weight.as<const std::byte>() + c * order.cout * element;
    for (std::int64_t t = 0; t < g.taps(); ++t) {
      const std::int64_t at = t / g.kw * order.h + t % g.kw * order.w;
      convert_floats(from + at * element, weight.dtype, 1, to + t * step + c);
    }
  }
}

Error prepare(PrepareContext& context, Convolution& convolution) {
  const Geometry& g = convolution.g;
  const WeightOrder& order = context.node.attributes.weight_order;
  const TensorView& weight = context.operands.inputs[1];
  convolution.packed = weight.constant;
  if (!weight.constant) return Error::Ok;
  const std::uint64_t format = FormatKey(kDepthwiseFormat)
                                   .add(g.cout)
                                   .add(g.kh)
                                   .add(g.kw)
                                   .add(order.cout)
                                   .add(order.h)
                                   .add(order.w)
                                   .add(static_cast<std::int64_t>(weight.dtype))
                                   .value();
  const std::size_t bytes = static_cast<std::size_t>(packed_elements(g)) * sizeof(float);
  bool ready = false;
  auto* packed = static_cast<float*>(context.setup.allocate_packed(weight.data, format, bytes, &ready));
  if (packed == nullptr) {
    return context.setup.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of packed weights", bytes);
  }
  convolution.taps = packed;
  if (!ready) pack_taps(g, order, weight, packed);
  return Error::Ok;
}

// Of a thread: pointers to the rows of the kernel, and these rows if they are spread.
std::int64_t thread_elements(const Geometry& g) {
  const std::int64_t pointers = g.kh * static_cast<std::int64_t>(sizeof(const float*) / sizeof(float));
  return round_up(pointers) + (g.cout == g.cin ? 0 : g.kh * round_up(g.w * g.cout));
}

std::int64_t shape(Convolution& convolution, int threads) {
  const Geometry& g = convolution.g;
  return threads * thread_elements(g) + (convolution.packed ? 0 : packed_elements(g));
}

void spread(const float* from, std::int64_t n, std::int64_t times, float* to) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < times; ++j) *to++ = from[i];
  }
}

void run(const RunContext& context, const Convolution& convolution, const Finish& finish) {
  Geometry g = convolution.g;  // as the rows see it
  const std::int64_t times = g.cout_group();
  const std::int64_t in_row = g.w * g.cin;
  const std::int64_t own = thread_elements(g);
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  const float* taps = convolution.taps;
  if (!convolution.packed) {
    float* packed = scratch + context.pool.threads() * own;
    pack_taps(g, context.node.attributes.weight_order, context.operands.inputs[1], packed);
    taps = packed;
  }
  const float* zeros = taps + g.taps() * round_up(g.cout);
  const float* image = input_of(context, convolution);
  auto* out = context.operands.outputs[0].as<float>();
  g.cin = g.cout;
  const auto rows = [&](std::int64_t first, std::int64_t last, int thread) {
    auto* const pointers = reinterpret_cast<const float**>(scratch + thread * own);
    float* const copies = scratch + thread * own + (own - (times == 1 ? 0 : g.kh * round_up(g.w * g.cin)));
    // A residual is added before the clamp: then both wait for the epilogue's loop below.
    const bool late = finish.residual != nullptr;
    const DepthwiseRow row{g, pointers, taps, zeros, finish.bias, finish.clamp && !late, finish.low, finish.high};
    for (std::int64_t i = first; i < last; ++i) {
      const float* base = image + i / g.oh * g.h * in_row;
      for (std::int64_t ky = 0; ky < g.kh; ++ky) {
        const std::int64_t y = i % g.oh * g.sh - g.top + ky * g.dh;
        const bool inside = y >= 0 && y < g.h;
        pointers[ky] = inside ? base + y * in_row : nullptr;
        if (!inside || times == 1) continue;
        float* copy = copies + ky * round_up(g.w * g.cin);
        spread(pointers[ky], in_row, times, copy);
        pointers[ky] = copy;
      }
      float* to = out + i * g.ow * g.cout;
      depthwise_row(row, to);
      finish_rows(finish, late, i * g.ow, g.ow, g.cout, to);
    }
  };
  constexpr std::int64_t kWorthwhile = 1 << 16;  // multiplications: about 5 us
  const std::int64_t count = g.batch * g.oh;
  const std::int64_t most = g.pixels() * g.cout * g.taps() / kWorthwhile;
  const std::int64_t threads = context.pool.threads();
  const std::int64_t parts = std::min(std::min(most, 4 * threads), count) / threads * threads;
  if (threads == 1 || parts < 2) {
    rows(0, count, 0);
    return;
  }
  context.pool.parallel(parts,
                        [&](std::int64_t i, int thread) { rows(i * count / parts, (i + 1) * count / parts, thread); });
}

}  // namespace

const Method kDepthwiseMethod = {"depthwise", prepare, shape, run};

}  // namespace wb::engine::WB_ISA::dense
