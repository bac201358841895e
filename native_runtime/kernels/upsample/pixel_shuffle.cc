// pixel_shuffle: out[..., c, y r + i, x r + j] = self[..., (c r + i) r + j, y, x], and its inverse. Only moves bytes.
#include "kernels/layout.h"

namespace wb::kernels::WB_ISA {
namespace {

template <bool Inverse>
struct PixelShuffle {
  using State = DenseState;

  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "tit"));
    WB_TRY(expect_same_dtype(context, 0, 2));
    const Tensor& self = context.tensor(0);
    if (self.rank < 3) return context.fail(Error::InvalidArgument, "argument 0: expected rank 3 or more");
    return expect_rank(context, 2, self.rank);
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    const std::int64_t r = context.arg(1).payload.as_int;
    const int c = self.rank - 3;
    if (r < 1 || r > 32767) {
      return context.fail(Error::InvalidArgument, "argument 1: a factor of %lld", static_cast<long long>(r));
    }
    const bool divides = Inverse ? self.size(c + 1) % r == 0 && self.size(c + 2) % r == 0 : self.size(c) % (r * r) == 0;
    const std::int64_t most = INT32_MAX;
    const bool fits =
        Inverse ? self.size(c) <= most / (r * r) : self.size(c + 1) <= most / r && self.size(c + 2) <= most / r;
    if (!divides || !fits) {
      return context.fail(Error::InvalidArgument, "argument 0: the sizes do not go with a factor of %lld",
                          static_cast<long long>(r));
    }
    state.shape.assign(self);
    const auto factor = static_cast<std::int32_t>(r);
    for (int d = c; d < self.rank; ++d) {
      const std::int32_t by = d == c ? factor * factor : factor;
      state.shape.sizes[d] = Inverse == (d == c) ? self.sizes[d] * by : self.sizes[d] / by;
    }
    return Error::Ok;
  }

  static Error resize(KernelContext& context, State& state) {
    return context.resize(context.tensor(2), state.shape.span());
  }

  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& self = context.tensor(0);
    Tensor& out = context.tensor(2);
    if (out.numel() == 0) return Error::Ok;
    // `deep` has the channels, `wide` the pixels.
    const Tensor& deep = Inverse ? out : self;
    const Tensor& wide = Inverse ? self : out;
    const std::int64_t r = context.arg(1).payload.as_int;
    const int c = self.rank - 3;
    Region region;
    const auto add = [&](std::int64_t size, std::int64_t deep_step, std::int64_t wide_step) {
      region.add(size, Inverse ? wide_step : deep_step, Inverse ? deep_step : wide_step);
    };
    for (int d = 0; d < c; ++d) add(deep.size(d), deep.strides[d], wide.strides[d]);
    add(wide.size(c), deep.strides[c] * r * r, wide.strides[c]);
    add(deep.size(c + 1), deep.strides[c + 1], wide.strides[c + 1] * r);
    add(r, deep.strides[c] * r, wide.strides[c + 1]);
    add(deep.size(c + 2), deep.strides[c + 2], wide.strides[c + 2] * r);
    add(r, deep.strides[c], wide.strides[c + 2]);
    CopyPlan plan;
    plan_copy(region, element_size(self.dtype), &plan);
    run_copy(plan, self.data, out.data);
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(upsample_pixel_shuffle, dense<PixelShuffle<false>>("aten::pixel_shuffle.out"),
           dense<PixelShuffle<true>>("aten::pixel_unshuffle.out"))
