// view and reshape: the elements in logical order under other sizes.
#include <cstring>

#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

struct ReshapeState {
  bool ready = false;
  bool elementwise = false;
  CopyPlan copy;
};

// The sizes in argument 1, with -1 inferred.
Error target_shape(const KernelContext& context, const Tensor& self, Shape* shape) {
  const auto sizes = context.arg(1).payload.int_list.get();
  const std::int64_t numel = self.numel();
  std::int64_t known = 1;
  int inferred = -1;
  bool valid = sizes.size() <= kMaxRank;
  for (std::size_t d = 0; valid && d < sizes.size(); ++d) {
    if (sizes[d] == -1 && inferred < 0) {
      inferred = static_cast<int>(d);
      shape->sizes[d] = -1;
      continue;
    }
    valid = sizes[d] >= 0 && sizes[d] <= INT32_MAX && (sizes[d] == 0 || known <= INT64_MAX / INT32_MAX);
    if (!valid) break;
    known *= sizes[d];
    shape->sizes[d] = static_cast<std::int32_t>(sizes[d]);
  }
  shape->rank = static_cast<int>(sizes.size());
  if (valid && inferred >= 0 && known > 0 && numel % known == 0) {
    valid = numel / known <= INT32_MAX;
    shape->sizes[inferred] = static_cast<std::int32_t>(numel / known);
    known = numel;
  }
  if (!valid || known != numel || (inferred >= 0 && shape->sizes[inferred] < 0)) {
    return context.fail(Error::InvalidArgument, "argument 1 (size): the sizes don't hold %lld elements",
                        static_cast<long long>(numel));
  }
  return Error::Ok;
}

// Splits the dimensions of both sides into common factors, from the inside. False when there are none, as for 4 x 6
// seen as 6 x 4.
bool refine(const Tensor& self, const Tensor& out, Region* region) {
  int a = self.rank - 1;
  int b = out.rank - 1;
  std::int64_t left_a = 1;  // what remains of the current dimension
  std::int64_t left_b = 1;
  std::int64_t step_a = 0;
  std::int64_t step_b = 0;
  while (true) {
    while (left_a == 1 && a >= 0) left_a = self.sizes[a], step_a = self.strides[a], --a;
    while (left_b == 1 && b >= 0) left_b = out.sizes[b], step_b = out.strides[b], --b;
    if (left_a == 1 || left_b == 1) return left_a == left_b;
    const std::int64_t size = left_a < left_b ? left_a : left_b;
    if (left_a % size != 0 || left_b % size != 0 || region->rank == kMaxRegion) return false;
    region->add(size, step_a, step_b);
    left_a /= size;
    left_b /= size;
    step_a *= size;
    step_b *= size;
  }
}

std::int64_t memory_index(const Tensor& tensor, std::int64_t logical) {
  std::int64_t at = 0;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    at += logical % tensor.sizes[d] * tensor.strides[d];
    logical /= tensor.sizes[d];
  }
  return at;
}

struct Reshape {
  using State = ReshapeState;
  static Error check(KernelContext& context, ReshapeState& /*state*/) {
    WB_TRY(check_args(context, "tlt"));
    return expect_same_dtype(context, 0, 2);
  }
  static Error plan(KernelContext& context, ReshapeState& state) {
    const Tensor& self = context.tensor(0);
    Tensor& out = context.tensor(2);
    Shape shape;
    WB_TRY(target_shape(context, self, &shape));
    WB_TRY(context.resize(out, shape.span()));
    Region region;
    state.elementwise = false;
    if (self.numel() == 0 || (self.is_contiguous() && out.is_contiguous())) {
      region.add(self.numel(), 1, 1);
    } else if (!refine(self, out, &region)) {
      state.elementwise = true;
      return Error::Ok;
    }
    plan_copy(region, element_size(self.dtype), &state.copy);
    return Error::Ok;
  }
  static Error run(KernelContext& context, ReshapeState& state) {
    const Tensor& self = context.tensor(0);
    const Tensor& out = context.tensor(2);
    if (!state.elementwise) {
      run_copy(state.copy, self.data, out.data);
      return Error::Ok;
    }
    const std::size_t size = element_size(self.dtype);
    const std::int64_t numel = self.numel();
    for (std::int64_t i = 0; i < numel; ++i) {
      std::memcpy(static_cast<std::byte*>(out.data) + memory_index(out, i) * static_cast<std::int64_t>(size),
                  static_cast<const std::byte*>(self.data) + memory_index(self, i) * static_cast<std::int64_t>(size),
                  size);
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(view_reshape, planned<Reshape>("aten::view_copy.out"), planned<Reshape>("aten::_unsafe_view.out"),
           planned<Reshape>("aten::_reshape_copy.out"))
