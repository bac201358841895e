// aten::convolution: 1-D and 2-D, grouped, dilated, transposed, of every dim order.
#include <algorithm>

#include "kernels/convolution/methods.h"

namespace wb::kernels::WB_ISA {
namespace {

constexpr std::uint32_t kInput = 0;
constexpr std::uint32_t kWeight = 1;
constexpr std::uint32_t kBias = 2;
constexpr std::uint32_t kOut = 9;

struct ConvState : DenseState {
  Lane lane = Lane::F32;
  ConvGeometry geometry;
  ConvPlan plan;
  bool copy_input = false;      // to contiguous order: its pixels have no single distance
  bool copy_out = false;        // likewise
  void* weight_copy = nullptr;  // memory for constant weights in contiguous order
  bool weight_ready = false;
};

// out[i] = in[...] for a 4-D tensor in memory, into contiguous order.
template <typename T>
void to_contiguous(const T* from, const std::int64_t (&sizes)[4], const Strides4& s, T* to) {
  for (std::int64_t a = 0; a < sizes[0]; ++a) {
    for (std::int64_t b = 0; b < sizes[1]; ++b) {
      for (std::int64_t y = 0; y < sizes[2]; ++y) {
        const T* row = from + a * s.n + b * s.c + y * s.h;
        for (std::int64_t x = 0; x < sizes[3]; ++x) *to++ = row[x * s.w];
      }
    }
  }
}

template <typename T>
void from_contiguous(const T* from, const std::int64_t (&sizes)[4], const Strides4& s, T* to) {
  for (std::int64_t a = 0; a < sizes[0]; ++a) {
    for (std::int64_t b = 0; b < sizes[1]; ++b) {
      for (std::int64_t y = 0; y < sizes[2]; ++y) {
        T* row = to + a * s.n + b * s.c + y * s.h;
        for (std::int64_t x = 0; x < sizes[3]; ++x) row[x * s.w] = *from++;
      }
    }
  }
}

Strides4 contiguous(std::int64_t c, std::int64_t h, std::int64_t w) { return {c * h * w, h * w, w, 1}; }

bool uniform(const Strides4& s, std::int64_t h, std::int64_t w) { return h <= 1 || s.h == w * s.w; }

// Order of the out tensor's dimensions, before its sizes are set: channels innermost?
bool channels_inner(const Tensor& out) { return out.dim_order[out.rank - 1] == 1; }

// The last two dimensions are neighbours in memory, in order.
bool pixels_together(const Tensor& out) {
  if (out.rank == 3) return true;
  for (int i = 0; i + 1 < out.rank; ++i) {
    if (out.dim_order[i] == 2) return out.dim_order[i + 1] == 3;
  }
  return false;
}

template <typename T>
const T* contiguous_weight(const KernelContext& context, ConvState& state, Scratch& scratch) {
  const ConvGeometry& g = state.geometry;
  const T* weight = staged_input<T>(context.tensor(kWeight), state.lane, scratch);
  if (g.weight_contiguous()) return weight;
  T* copy = state.weight_copy != nullptr ? static_cast<T*>(state.weight_copy)
                                         : scratch.take<T>(static_cast<std::size_t>(context.tensor(kWeight).numel()));
  if (state.weight_copy == nullptr || !state.weight_ready) {
    const Tensor& tensor = context.tensor(kWeight);
    to_contiguous(weight, {tensor.size(0), tensor.size(1), g.kh, g.kw}, g.weight, copy);
    state.weight_ready = true;
  }
  return copy;
}

template <typename T>
void dispatch(const ConvState& state, const ConvGeometry& g, const ConvData<T>& data, std::byte* scratch) {
  switch (state.plan.method) {
    case ConvMethod::Pointwise: return pointwise_convolution(g, data, scratch);
    case ConvMethod::Product: return product_convolution(g, state.plan.slab, data, scratch);
    case ConvMethod::Depthwise: return depthwise_convolution(g, state.plan.slab, data, scratch);
    case ConvMethod::DepthwiseChannels: return depthwise_channels_convolution(g, data, scratch);
    case ConvMethod::Transposed: return transposed_convolution(g, state.plan, data, scratch);
  }
}

template <typename T>
Error run_lane(KernelContext& context, ConvState& state) {
  Tensor& out = context.tensor(kOut);
  ConvGeometry g = state.geometry;
  Scratch scratch(context);
  ConvData<T> data{};
  data.input = staged_input<T>(context.tensor(kInput), state.lane, scratch);
  data.weight = contiguous_weight<T>(context, state, scratch);
  if (context.arg(kBias).is_tensor()) data.bias = staged_input<T>(context.tensor(kBias), state.lane, scratch);
  const StagedOutput<T> staged(out, state.lane, scratch);
  data.out = staged.data();
  if (out.numel() == 0) return Error::Ok;
  if (state.copy_input) {
    T* copy = scratch.take<T>(static_cast<std::size_t>(context.tensor(kInput).numel()));
    to_contiguous(data.input, {g.batch, g.cin, g.h, g.w}, strides4(context.tensor(kInput)), copy);
    data.input = copy;
  }
  g.out = strides4(out);
  if (state.copy_out) {
    data.out = scratch.take<T>(static_cast<std::size_t>(out.numel()));
    g.out = contiguous(g.cout, g.oh, g.ow);
  }
  dispatch(state, g, data, scratch.take<std::byte>(0));
  if (state.copy_out) from_contiguous(data.out, {g.batch, g.cout, g.oh, g.ow}, strides4(out), staged.data());
  staged.store();
  return Error::Ok;
}

struct Convolution {
  using State = ConvState;

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "ttTlllblit"));
    WB_TRY(expect_floating(context, kInput));
    WB_TRY(expect_same_dtype(context, kInput, kWeight));
    WB_TRY(expect_same_dtype(context, kInput, kOut));
    if (context.arg(kBias).is_tensor()) WB_TRY(expect_same_dtype(context, kInput, kBias));
    state.lane = float_lane(context.tensor(kInput).dtype);
    return Error::Ok;
  }

  static Error plan(KernelContext& context, State& state) {
    ConvGeometry& g = state.geometry;
    WB_TRY(read_geometry(context, g));
    const Tensor& input = context.tensor(kInput);
    const Tensor& weight = context.tensor(kWeight);
    const Tensor& out = context.tensor(kOut);
    const std::size_t element = lane_size(state.lane);
    state.shape.assign(input);
    state.shape.sizes[1] = static_cast<std::int32_t>(g.cout);
    state.shape.sizes[input.rank - 1] = static_cast<std::int32_t>(g.ow);
    if (input.rank == 4) state.shape.sizes[2] = static_cast<std::int32_t>(g.oh);
    state.copy_input = g.transposed && !uniform(g.in, g.h, g.w);
    state.copy_out = !pixels_together(out);
    if (state.copy_input) g.in = contiguous(g.cin, g.h, g.w);
    if (!plan_convolution(g, channels_inner(out) && !state.copy_out, element, &state.plan)) {
      return context.fail(Error::NotSupported, "the padded input is too large");
    }
    const auto out_bytes =
        round_scratch(static_cast<std::size_t>(g.batch * g.cout) * static_cast<std::size_t>(g.pixels()) * element);
    state.scratch = state.plan.scratch + staged_bytes(input, state.lane) + staged_bytes(weight, state.lane);
    if (context.arg(kBias).is_tensor()) state.scratch += staged_bytes(context.tensor(kBias), state.lane);
    if (!is_identity(out.dtype, state.lane)) state.scratch += out_bytes;
    if (state.copy_out) state.scratch += out_bytes;
    if (state.copy_input) state.scratch += round_scratch(static_cast<std::size_t>(input.numel()) * element);
    return plan_weight(context, state, element);
  }

  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(kOut), state.shape.span());
  }

  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) { return run_lane<decltype(zero)>(context, state); });
  }

 private:
  // Constant weights are brought to contiguous order once, others each time.
  static Error plan_weight(KernelContext& context, State& state, std::size_t element) {
    if (state.geometry.weight_contiguous() || state.weight_copy != nullptr) return Error::Ok;
    const auto bytes = static_cast<std::size_t>(context.tensor(kWeight).numel()) * element;
    if (context.is_constant(kWeight) && is_static(context)) {
      state.weight_copy = context.allocate(bytes);
      return state.weight_copy == nullptr ? Error::MemoryAllocationFailed : Error::Ok;
    }
    state.scratch += round_scratch(bytes);
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(convolution_convolution, dense<Convolution>("aten::convolution.out"))
