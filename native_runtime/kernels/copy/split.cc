// split and unbind: one tensor cut into a list along a dimension.
#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

struct Part {
  std::int64_t offset;  // bytes in the input
  CopyPlan copy;
};

struct SplitState {
  bool ready = false;
  Part* parts = nullptr;
};

enum class Kind : std::uint8_t { Size, Sizes, Unbind };

// Arguments: self, (split size | sizes), dim, out[]; unbind: self, dim, out[].
template <Kind kind>
struct Split {
  using State = SplitState;
  static constexpr std::uint32_t kDim = kind == Kind::Unbind ? 1 : 2;
  static constexpr std::uint32_t kOut = kDim + 1;

  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, kind == Kind::Size ? "tiiL" : kind == Kind::Sizes ? "tliL" : "tiL"));
    const TensorListRef& outs = context.arg(kOut).payload.tensor_list;
    const ScalarType type = context.tensor(0).dtype;
    for (std::uint32_t k = 0; k < outs.size; ++k) {
      if (outs.items[k]->tensor().dtype != type) {
        return context.fail(Error::InvalidType, "argument %u: entry %u: expected %s, found %s", kOut, k, name_of(type),
                            name_of(outs.items[k]->tensor().dtype));
      }
    }
    state.parts = static_cast<Part*>(context.allocate(sizeof(Part) * (outs.size + 1)));
    return state.parts == nullptr ? Error::MemoryAllocationFailed : Error::Ok;
  }

  static Error length_of(const KernelContext& context, std::uint32_t k, std::int64_t left, std::int64_t* length) {
    if constexpr (kind == Kind::Unbind) {
      *length = 1;
    } else if constexpr (kind == Kind::Sizes) {
      const auto sizes = context.arg(1).payload.int_list.get();
      *length = k < sizes.size() ? sizes[k] : -1;
    } else {
      const auto size = context.arg(1).scalar<std::int64_t>();
      *length = size < left || size < 0 ? size : left;
    }
    if (*length < 0 || *length > left) {
      return context.fail(Error::InvalidArgument, "output %u: a part of size %lld where %lld elements are left", k,
                          static_cast<long long>(*length), static_cast<long long>(left));
    }
    return Error::Ok;
  }

  static Error plan(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    if (self.rank == 0) return context.fail(Error::InvalidArgument, "argument 0: a 0-d tensor can't be split");
    int dim = 0;
    WB_TRY(get_dim(context, kDim, self.rank, &dim));
    const TensorListRef& outs = context.arg(kOut).payload.tensor_list;
    std::int64_t at = 0;
    for (std::uint32_t k = 0; k < outs.size; ++k) {
      std::int64_t length = 0;
      WB_TRY(length_of(context, k, self.sizes[dim] - at, &length));
      Tensor& out = outs.items[k]->tensor();
      Shape shape;
      std::int64_t steps[kMaxRank];
      for (int d = 0; d < self.rank; ++d) {
        if (d == dim && kind == Kind::Unbind) continue;
        steps[shape.rank] = self.strides[d];
        shape.sizes[shape.rank++] = d == dim ? static_cast<std::int32_t>(length) : self.sizes[d];
      }
      WB_TRY(context.resize(out, shape.span()));
      Region region;
      for (int d = 0; d < shape.rank; ++d) region.add(shape.sizes[d], steps[d], out.strides[d]);
      state.parts[k].offset = at * self.strides[dim] * static_cast<std::int64_t>(element_size(self.dtype));
      plan_copy(region, element_size(self.dtype), &state.parts[k].copy);
      at += length;
    }
    if (at != self.sizes[dim]) {
      return context.fail(Error::InvalidArgument, "%u outputs take %lld of %d elements", outs.size,
                          static_cast<long long>(at), self.sizes[dim]);
    }
    return Error::Ok;
  }

  static Error run(KernelContext& context, State& state) {
    const auto* self = static_cast<const std::byte*>(context.tensor(0).data);
    const TensorListRef& outs = context.arg(kOut).payload.tensor_list;
    for (std::uint32_t k = 0; k < outs.size; ++k) {
      run_copy(state.parts[k].copy, self + state.parts[k].offset, outs.items[k]->tensor().data);
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(copy_split, planned<Split<Kind::Size>>("aten::split_copy.Tensor_out"),
           planned<Split<Kind::Sizes>>("aten::split_with_sizes_copy.out"),
           planned<Split<Kind::Unbind>>("aten::unbind_copy.int_out"))
