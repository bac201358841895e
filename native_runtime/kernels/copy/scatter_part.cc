// slice_scatter, select_scatter, diagonal_scatter: a copy of self with a part of it replaced by src.
#include "kernels/common/slice.h"
#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

struct ScatterState {
  bool ready = false;
  std::int64_t offset = 0;  // bytes in the output
  CopyPlan whole;
  CopyPlan part;
};

// The part of the output that src becomes: sizes, steps in the output, offset in elements.
struct Part {
  Shape shape;
  std::int64_t steps[kMaxRank];
  std::int64_t offset = 0;
};

Error plan_scatter(KernelContext& context, const Part& part, const Tensor& out, ScatterState& state) {
  const Tensor& self = context.tensor(0);
  const Tensor& src = context.tensor(1);
  bool same = src.rank == part.shape.rank;
  for (int d = 0; same && d < src.rank; ++d) same = src.sizes[d] == part.shape.sizes[d];
  if (!same) return context.fail(Error::InvalidArgument, "argument 1 (src): its sizes don't match the part of self");
  plan_copy(pair_tensors(self, out), element_size(self.dtype), &state.whole);
  Region region;
  for (int d = 0; d < src.rank; ++d) region.add(src.sizes[d], src.strides[d], part.steps[d]);
  plan_convert(region, src.dtype, out.dtype, &state.part);
  state.offset = part.offset * static_cast<std::int64_t>(element_size(out.dtype));
  return Error::Ok;
}

template <bool kSelect>
struct Scatter {
  using State = ScatterState;
  static constexpr std::uint32_t kOut = kSelect ? 4 : 6;

  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, kSelect ? "ttiit" : "ttiIIit"));
    WB_TRY(expect_same_dtype(context, 0, kOut));
    if (can_convert(context.tensor(1).dtype, context.tensor(kOut).dtype)) return Error::Ok;
    return context.fail(Error::InvalidType, "argument 1 (src): no conversion from %s",
                        name_of(context.tensor(1).dtype));
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    Tensor& out = context.tensor(kOut);
    if (self.rank == 0) return context.fail(Error::InvalidArgument, "argument 0: a 0-d tensor has no part");
    int dim = 0;
    WB_TRY(get_dim(context, 2, self.rank, &dim));
    WB_TRY(context.resize(out, self.shape()));
    Part part;
    Slice slice;
    if constexpr (kSelect) {
      WB_TRY(get_index(context, 3, self.sizes[dim], &slice.start));
    } else {
      WB_TRY(get_slice(context, 3, self.sizes[dim], &slice));
    }
    for (int d = 0; d < self.rank; ++d) {
      if (d == dim && kSelect) continue;
      part.steps[part.shape.rank] = out.strides[d] * (d == dim ? slice.step : 1);
      part.shape.sizes[part.shape.rank++] = d == dim ? static_cast<std::int32_t>(slice.length) : self.sizes[d];
    }
    part.offset = slice.start * out.strides[dim];
    return plan_scatter(context, part, out, state);
  }

  static Error run(KernelContext& context, State& state) {
    auto* out = static_cast<std::byte*>(context.tensor(kOut).data);
    run_copy(state.whole, context.tensor(0).data, out);
    run_copy(state.part, context.tensor(1).data, out + state.offset);
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(copy_scatter_part, planned<Scatter<false>>("aten::slice_scatter.out"),
           planned<Scatter<true>>("aten::select_scatter.out"))
