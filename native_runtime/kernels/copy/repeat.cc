// repeat and roll.
#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

struct RepeatState {
  bool ready = false;
  CopyPlan copy;
};

// Each output dimension is (repetition, element): the source stands still along the first.
struct Repeat {
  using State = RepeatState;
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "tlt"));
    return expect_same_dtype(context, 0, 2);
  }
  static Error plan(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    Tensor& out = context.tensor(2);
    const auto repeats = context.arg(1).payload.int_list.get();
    if (repeats.size() < self.rank || repeats.size() > kMaxRank) {
      return context.fail(Error::InvalidArgument, "argument 1 (repeats): %zu entries for rank %d", repeats.size(),
                          self.rank);
    }
    Shape shape;
    shape.rank = static_cast<int>(repeats.size());
    const int added = shape.rank - self.rank;
    for (int d = 0; d < shape.rank; ++d) {
      const std::int64_t own = d < added ? 1 : self.sizes[d - added];
      if (repeats[d] < 0 || repeats[d] > INT32_MAX || repeats[d] * own > INT32_MAX) {
        return context.fail(Error::InvalidArgument, "argument 1 (repeats): entry %d is %lld", d,
                            static_cast<long long>(repeats[d]));
      }
      shape.sizes[d] = static_cast<std::int32_t>(repeats[d] * own);
    }
    WB_TRY(context.resize(out, shape.span()));
    Region region;
    for (int d = 0; d < shape.rank; ++d) {
      const std::int64_t own = d < added ? 1 : self.sizes[d - added];
      region.add(repeats[d], 0, own * out.strides[d]);
      if (d >= added) region.add(own, self.strides[d - added], out.strides[d]);
    }
    plan_copy(region, element_size(self.dtype), &state.copy);
    return Error::Ok;
  }
  static Error run(KernelContext& context, State& state) {
    run_copy(state.copy, context.tensor(0).data, context.tensor(2).data);
    return Error::Ok;
  }
};

// out[(i + shift) mod size] = self[i]: each rolled dimension has two pieces. Without dims, self is rolled as if flat.
struct Roll {
  struct State {
    bool ready = false;
  };
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "tllt"));
    return expect_same_dtype(context, 0, 3);
  }
  static Error plan(KernelContext& context, State& /*state*/) {
    const Tensor& self = context.tensor(0);
    const auto shifts = context.arg(1).payload.int_list.get();
    const auto dims = context.arg(2).payload.int_list.get();
    std::uint32_t mask = 0;
    WB_TRY(get_dims(context, 2, self.rank, false, &mask));
    if (dims.size() != shifts.size() && !(dims.empty() && shifts.size() == 1)) {
      return context.fail(Error::InvalidArgument, "%zu shifts for %zu dims", shifts.size(), dims.size());
    }
    if (dims.empty() && !(self.is_contiguous() && context.tensor(3).is_contiguous())) {
      return context.fail(Error::NotSupported, "without dims, a contiguous tensor is needed");
    }
    if (dims.size() > 8) return context.fail(Error::NotSupported, "more than 8 rolled dimensions");
    return context.resize(context.tensor(3), self.shape());
  }
  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& self = context.tensor(0);
    const Tensor& out = context.tensor(3);
    const auto shifts = context.arg(1).payload.int_list.get();
    const auto dims = context.arg(2).payload.int_list.get();
    if (self.numel() == 0) return Error::Ok;
    const auto element = static_cast<std::int64_t>(element_size(self.dtype));
    const auto* from = static_cast<const std::byte*>(self.data);
    auto* to = static_cast<std::byte*>(out.data);
    std::int64_t shift[kMaxRank] = {};
    if (dims.empty()) {
      const std::int64_t size = self.numel();
      const std::int64_t by = ((shifts[0] % size) + size) % size;
      copy_run(from, to + by * element, size - by, element);
      copy_run(from + (size - by) * element, to, by, element);
      return Error::Ok;
    }
    for (std::size_t k = 0; k < dims.size(); ++k) {
      const int d = wrap_dim(dims[k], self.rank);
      const std::int64_t size = self.rank == 0 ? 1 : self.sizes[d];
      shift[d] = ((shifts[k] % size) + size) % size;
    }
    for (unsigned piece = 0; piece < 1U << dims.size(); ++piece) {
      Region region = pair_tensors(self, out);
      std::int64_t source = 0;
      std::int64_t target = 0;
      for (std::size_t k = 0; k < dims.size() && self.rank > 0; ++k) {
        const int d = wrap_dim(dims[k], self.rank);
        const std::int64_t rest = self.sizes[d] - shift[d];
        const bool second = (piece >> k & 1U) != 0;
        region.sizes[d] = second ? shift[d] : rest;
        source += second ? rest * self.strides[d] : 0;
        target += second ? 0 : shift[d] * out.strides[d];
      }
      CopyPlan copy;
      plan_copy(region, static_cast<std::size_t>(element), &copy);
      run_copy(copy, from + source * element, to + target * element);
    }
    return Error::Ok;
  }

 private:
  static void copy_run(const std::byte* from, std::byte* to, std::int64_t n, std::int64_t element) {
    CopyPlan copy;
    Region region;
    region.add(n, 1, 1);
    plan_copy(region, static_cast<std::size_t>(element), &copy);
    run_copy(copy, from, to);
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(copy_repeat, planned<Repeat>("aten::repeat.out"), planned<Roll>("aten::roll.out"))
