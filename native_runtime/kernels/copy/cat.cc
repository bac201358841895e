// cat and stack: tensors side by side along a dimension.
#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

struct Piece {
  std::int64_t offset;  // bytes in the output
  CopyPlan copy;
};

struct CatState {
  bool ready = false;
  Piece* pieces = nullptr;
};

// cat leaves out 1-d tensors without elements, whatever the others' rank.
bool is_skipped(const Tensor& tensor) { return tensor.rank == 1 && tensor.sizes[0] == 0; }

Error check_list(KernelContext& context, CatState& state) {
  WB_TRY(check_args(context, "Lit"));
  const TensorListRef& list = context.arg(0).payload.tensor_list;
  if (list.size == 0) return context.fail(Error::InvalidArgument, "argument 0 (tensors): the list is empty");
  const ScalarType out = context.tensor(2).dtype;
  for (std::uint32_t k = 0; k < list.size; ++k) {
    const ScalarType type = list.items[k]->tensor().dtype;
    if (!can_convert(type, out)) {
      return context.fail(Error::InvalidType, "argument 0: entry %u: no conversion from %s to %s", k, name_of(type),
                          name_of(out));
    }
  }
  state.pieces = static_cast<Piece*>(context.allocate(sizeof(Piece) * list.size));
  return state.pieces == nullptr ? Error::MemoryAllocationFailed : Error::Ok;
}

Error mismatch(const KernelContext& context, std::uint32_t k) {
  return context.fail(Error::InvalidArgument, "argument 0: entry %u: its sizes don't match those of the others", k);
}

void plan_piece(const Tensor& tensor, const Tensor& out, const Region& region, std::int64_t offset, Piece* piece) {
  piece->offset = offset * static_cast<std::int64_t>(element_size(out.dtype));
  plan_convert(region, tensor.dtype, out.dtype, &piece->copy);
}

Error run_pieces(KernelContext& context, CatState& state) {
  auto* out = static_cast<std::byte*>(context.tensor(2).data);
  const TensorListRef& list = context.arg(0).payload.tensor_list;
  for (std::uint32_t k = 0; k < list.size; ++k) {
    run_copy(state.pieces[k].copy, list.items[k]->tensor().data, out + state.pieces[k].offset);
  }
  return Error::Ok;
}

struct Cat {
  using State = CatState;
  static Error check(KernelContext& context, State& state) { return check_list(context, state); }
  static Error plan(KernelContext& context, State& state) {
    const TensorListRef& list = context.arg(0).payload.tensor_list;
    Tensor& out = context.tensor(2);
    const Tensor* model = &list.items[0]->tensor();
    for (std::uint32_t k = 0; k < list.size; ++k) {
      if (!is_skipped(list.items[k]->tensor())) {
        model = &list.items[k]->tensor();
        break;
      }
    }
    if (model->rank == 0) return context.fail(Error::InvalidArgument, "argument 0: 0-d tensors can't be joined");
    int dim = 0;
    WB_TRY(get_dim(context, 1, model->rank, &dim));
    Shape shape;
    shape.assign(*model);
    std::int64_t total = 0;
    for (std::uint32_t k = 0; k < list.size; ++k) {
      const Tensor& tensor = list.items[k]->tensor();
      if (is_skipped(tensor)) continue;
      if (tensor.rank != model->rank) return mismatch(context, k);
      for (int d = 0; d < tensor.rank; ++d) {
        if (d != dim && tensor.sizes[d] != model->sizes[d]) return mismatch(context, k);
      }
      total += tensor.sizes[dim];
    }
    if (total > INT32_MAX) return context.fail(Error::InvalidArgument, "the sizes add up to %lld", (long long)total);
    shape.sizes[dim] = static_cast<std::int32_t>(total);
    WB_TRY(context.resize(out, shape.span()));
    std::int64_t at = 0;
    for (std::uint32_t k = 0; k < list.size; ++k) {
      const Tensor& tensor = list.items[k]->tensor();
      Region region;
      if (is_skipped(tensor)) {
        region.add(0, 1, 1);
        plan_piece(tensor, out, region, 0, &state.pieces[k]);
        continue;
      }
      for (int d = 0; d < tensor.rank; ++d) region.add(tensor.sizes[d], tensor.strides[d], out.strides[d]);
      plan_piece(tensor, out, region, at * out.strides[dim], &state.pieces[k]);
      at += tensor.sizes[dim];
    }
    return Error::Ok;
  }
  static Error run(KernelContext& context, State& state) { return run_pieces(context, state); }
};

struct Stack {
  using State = CatState;
  static Error check(KernelContext& context, State& state) { return check_list(context, state); }
  static Error plan(KernelContext& context, State& state) {
    const TensorListRef& list = context.arg(0).payload.tensor_list;
    Tensor& out = context.tensor(2);
    const Tensor& model = list.items[0]->tensor();
    if (model.rank == kMaxRank) return context.fail(Error::InvalidArgument, "argument 0: rank %d", model.rank);
    int dim = 0;
    WB_TRY(get_dim(context, 1, model.rank + 1, &dim));
    Shape shape;
    shape.rank = model.rank + 1;
    for (int d = 0; d < shape.rank; ++d) {
      shape.sizes[d] = d == dim ? static_cast<std::int32_t>(list.size) : model.sizes[d < dim ? d : d - 1];
    }
    for (std::uint32_t k = 0; k < list.size; ++k) {
      if (!same_sizes(list.items[k]->tensor(), model)) return mismatch(context, k);
    }
    WB_TRY(context.resize(out, shape.span()));
    for (std::uint32_t k = 0; k < list.size; ++k) {
      const Tensor& tensor = list.items[k]->tensor();
      Region region;
      for (int d = 0; d < tensor.rank; ++d) {
        region.add(tensor.sizes[d], tensor.strides[d], out.strides[d < dim ? d : d + 1]);
      }
      plan_piece(tensor, out, region, k * out.strides[dim], &state.pieces[k]);
    }
    return Error::Ok;
  }
  static Error run(KernelContext& context, State& state) { return run_pieces(context, state); }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(copy_cat, planned<Cat>("aten::cat.out"), planned<Stack>("aten::stack.out"))
