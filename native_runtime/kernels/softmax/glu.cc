// glu: the first half of a dimension times the sigmoid of the second.
#include "kernels/layout.h"
#include "kernels/simd.h"

namespace wb::kernels::WB_ISA {
namespace {

struct GluState : DenseState {
  int dim = 0;
  Lane lane = Lane::F32;
};

template <typename T>
void gate(const T* values, const T* gates, std::int64_t n, T* out) {
  const Vec<T> one = splat(T{1});
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(out + i, load(values + i) / (one + exp(-load(gates + i))));
  if (i == n) return;
  const auto rest = static_cast<int>(n - i);
  store_first(out + i, load_first(values + i, rest) / (one + exp(-load_first(gates + i, rest))), rest);
}

struct Glu {
  using State = GluState;

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "tit"));
    WB_TRY(expect_floating(context, 0));
    WB_TRY(expect_same_dtype(context, 0, 2));
    if (context.tensor(0).rank < 1) return context.fail(Error::InvalidArgument, "argument 0: expected rank 1 or more");
    WB_TRY(expect_rank(context, 2, context.tensor(0).rank));
    state.lane = float_lane(context.tensor(0).dtype);
    return Error::Ok;
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    WB_TRY(get_dim(context, 1, self.rank, &state.dim));
    if (self.size(state.dim) % 2 != 0) {
      return context.fail(Error::InvalidArgument, "argument 0: the size %d of dimension %d is odd",
                          self.sizes[state.dim], state.dim);
    }
    state.shape.assign(self);
    state.shape.sizes[state.dim] /= 2;
    state.scratch =
        contiguous_bytes(self, state.lane) + contiguous_output_bytes(context.tensor(2), state.shape, state.lane);
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(2), state.shape.span());
  }

  static Error run(KernelContext& context, State& state) {
    return for_float_lane(state.lane, [&](auto zero) {
      using T = decltype(zero);
      Scratch scratch(context);
      const Tensor& self = context.tensor(0);
      const T* in = contiguous_input<T>(self, state.lane, scratch);
      const ContiguousOutput<T> out(context.tensor(2), state.lane, scratch);
      std::int64_t half = self.size(state.dim) / 2;  // elements of one half of a block
      for (int d = state.dim + 1; d < self.rank; ++d) half *= self.size(d);
      const std::int64_t blocks = half == 0 ? 0 : self.numel() / (2 * half);
      for (std::int64_t b = 0; b < blocks; ++b) {
        gate(in + 2 * b * half, in + (2 * b + 1) * half, half, out.data() + b * half);
      }
      out.store();
      return Error::Ok;
    });
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(softmax_glu, dense<Glu>("aten::glu.out"))
