#include "engine/operators/attention/geometry.h"

#include <algorithm>

namespace wb::engine::WB_ISA::attention {
namespace {

constexpr const char* kNames[] = {"query", "key", "value", "output"};

// Leading sizes of an operand, aligned to the right of the node's leading dimensions.
struct Lead {
  int rank = 0;
  std::int64_t sizes[kMaxLead] = {};
  std::int64_t strides[kMaxLead] = {};
};

Error read_heads(Setup& setup, int which, const TensorView& tensor, const HeadOrder& order, HeadsView* view,
                 Lead* lead) {
  const Shape& shape = tensor.shape;
  const int rank = shape.rank;
  const bool inner = order.kind == HeadOrder::Kind::Inner;
  const bool columns = order.kind == HeadOrder::Kind::Columns;
  const int matrix_rank = columns || (!inner && rank == 2) ? 2 : 3;
  if (rank < matrix_rank) {
    return setup.fail(Error::InvalidProgram, "attention: the %s has %d dimensions, at least %d are needed",
                      kNames[which], rank, matrix_rank);
  }
  if (tensor.dtype != ScalarType::Float) {
    return setup.fail(Error::NotSupported, "attention: the %s is of type %d; it must be float32", kNames[which],
                      static_cast<int>(tensor.dtype));
  }
  std::int64_t strides[kMaxRank];
  std::int64_t step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = step;
    step *= shape.sizes[d];
  }
  view->row_stride = strides[rank - 2];
  view->rows = shape.sizes[rank - 2];
  view->columns = shape.sizes[rank - 1];
  if (columns) {
    if (order.count < 1 || order.size < 0 || order.begin < 0 || order.begin > view->columns ||
        (order.size != 0 && order.count > (view->columns - order.begin) / order.size)) {
      return setup.fail(Error::InvalidProgram,
                        "attention: %lld heads of %lld columns from column %lld on don't fit into the %lld columns of "
                        "the %s",
                        static_cast<long long>(order.count), static_cast<long long>(order.size),
                        static_cast<long long>(order.begin), static_cast<long long>(view->columns), kNames[which]);
    }
    view->heads = order.count;
    view->head_stride = order.size;
    view->columns = order.size;
    view->offset = order.begin;
  } else if (inner) {
    view->heads = shape.sizes[rank - 2];
    view->head_stride = strides[rank - 2];
    view->rows = shape.sizes[rank - 3];
    view->row_stride = strides[rank - 3];
  } else if (matrix_rank == 3) {
    view->heads = shape.sizes[rank - 3];
    view->head_stride = strides[rank - 3];
  }
  lead->rank = rank - matrix_rank;
  for (int d = 0; d < lead->rank; ++d) {
    lead->sizes[d] = shape.sizes[d];
    lead->strides[d] = strides[d];
  }
  return Error::Ok;
}

// Broadcasts the leading sizes of the three operands with each other.
Error join_leads(Setup& setup, const Lead (&leads)[4], Geometry* geometry) {
  geometry->lead = std::max({leads[0].rank, leads[1].rank, leads[2].rank});
  for (int d = 0; d < geometry->lead; ++d) geometry->lead_size[d] = 1;
  HeadsView* const views[] = {&geometry->q, &geometry->k, &geometry->v};
  for (int which = 0; which < 3; ++which) {
    const Lead& lead = leads[which];
    for (int d = 0; d < lead.rank; ++d) {
      const int at = geometry->lead - lead.rank + d;
      std::int64_t& size = geometry->lead_size[at];
      if (lead.sizes[d] == 1) continue;
      if (size != 1 && size != lead.sizes[d]) {
        return setup.fail(Error::InvalidArgument,
                          "attention: leading dimension %d of the %s has %lld elements, that of the others %lld", d,
                          kNames[which], static_cast<long long>(lead.sizes[d]), static_cast<long long>(size));
      }
      size = lead.sizes[d];
      views[which]->lead_stride[at] = lead.strides[d];
    }
  }
  geometry->batch = 1;
  for (int d = 0; d < geometry->lead; ++d) geometry->batch *= geometry->lead_size[d];
  return Error::Ok;
}

Error join_heads(Setup& setup, Geometry* geometry) {
  const HeadsView* const views[] = {&geometry->q, &geometry->k, &geometry->v};
  geometry->heads = std::max({views[0]->heads, views[1]->heads, views[2]->heads});
  if (std::min({views[0]->heads, views[1]->heads, views[2]->heads}) == 0) geometry->heads = 0;
  for (int which = 0; which < 3 && geometry->heads != 0; ++which) {
    if (geometry->heads % views[which]->heads != 0) {
      return setup.fail(Error::InvalidArgument, "attention: the %s has %lld heads, which don't divide %lld",
                        kNames[which], static_cast<long long>(views[which]->heads),
                        static_cast<long long>(geometry->heads));
    }
  }
  geometry->queries = geometry->q.rows;
  geometry->keys = geometry->k.rows;
  geometry->key_size = geometry->q.columns;
  geometry->value_size = geometry->v.columns;
  if (geometry->k.columns != geometry->key_size || geometry->v.rows != geometry->keys) {
    return setup.fail(
        Error::InvalidArgument,
        "attention: the keys are %lld x %lld and the values %lld x %lld, the queries %lld x %lld: as many "
        "columns as a query has and as many values as keys are needed",
        static_cast<long long>(geometry->k.rows), static_cast<long long>(geometry->k.columns),
        static_cast<long long>(geometry->v.rows), static_cast<long long>(geometry->v.columns),
        static_cast<long long>(geometry->queries), static_cast<long long>(geometry->key_size));
  }
  return Error::Ok;
}

Error join_output(Setup& setup, const Lead& lead, Geometry* geometry) {
  HeadsView& out = geometry->out;
  bool fits = lead.rank == geometry->lead && out.rows == geometry->queries && out.columns == geometry->value_size &&
              out.heads == geometry->heads;
  for (int d = 0; fits && d < lead.rank; ++d) {
    fits = lead.sizes[d] == geometry->lead_size[d];
    out.lead_stride[d] = lead.strides[d];
  }
  if (fits) return Error::Ok;
  return setup.fail(
      Error::InvalidArgument,
      "attention: the output holds %lld heads of %lld x %lld; the operands give %lld x (%lld x %lld heads "
      "of %lld x %lld)",
      static_cast<long long>(out.heads), static_cast<long long>(out.rows), static_cast<long long>(out.columns),
      static_cast<long long>(geometry->batch), static_cast<long long>(1), static_cast<long long>(geometry->heads),
      static_cast<long long>(geometry->queries), static_cast<long long>(geometry->value_size));
}

Error read_mask(Setup& setup, const TensorView& tensor, Geometry* geometry) {
  MaskView& mask = geometry->mask;
  mask.present = tensor.present;
  if (!tensor.present) return Error::Ok;
  mask.is_bool = tensor.dtype == ScalarType::Bool;
  if (!mask.is_bool && tensor.dtype != ScalarType::Float) {
    return setup.fail(Error::NotSupported, "attention: the mask is of type %d; it must be float32 or bool",
                      static_cast<int>(tensor.dtype));
  }
  const int full_rank = geometry->lead + 3;  // [..., h, l, s]
  const int rank = tensor.shape.rank;
  std::int64_t step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const std::int64_t size = tensor.shape.sizes[d];
    const int at = full_rank - rank + d;
    std::int64_t expected = 1;
    std::int64_t* stride = nullptr;
    if (at == full_rank - 1) {
      expected = geometry->keys;
      stride = &mask.column_stride;
    } else if (at == full_rank - 2) {
      expected = geometry->queries;
      stride = &mask.row_stride;
    } else if (at == full_rank - 3) {
      expected = geometry->heads;
      stride = &mask.head_stride;
    } else if (at >= 0) {
      expected = geometry->lead_size[at];
      stride = &mask.lead_stride[at];
    }
    if (size != 1 && size != expected) {
      return setup.fail(Error::InvalidArgument,
                        "attention: dimension %d of the mask has %lld elements; 1 or %lld can be broadcast", d,
                        static_cast<long long>(size), static_cast<long long>(expected));
    }
    if (size != 1 && stride != nullptr) *stride = step;
    step *= size;
  }
  return Error::Ok;
}

std::int64_t lead_offset(const Geometry& geometry, const std::int64_t* strides, std::int64_t lead) {
  std::int64_t offset = 0;
  for (int d = geometry.lead - 1; d >= 0; --d) {
    offset += lead % geometry.lead_size[d] * strides[d];
    lead /= geometry.lead_size[d];
  }
  return offset;
}

}  // namespace

Error read_geometry(Setup& setup, const Node& node, const Operands& operands, Geometry* geometry) {
  *geometry = Geometry{};
  Lead leads[4];
  HeadsView* const views[] = {&geometry->q, &geometry->k, &geometry->v, &geometry->out};
  for (int which = 0; which < 4; ++which) {
    const TensorView& tensor = which < 3 ? operands.inputs[which] : operands.outputs[0];
    WB_TRY(read_heads(setup, which, tensor, node.attributes.head_orders[which], views[which], &leads[which]));
  }
  WB_TRY(join_leads(setup, leads, geometry));
  WB_TRY(join_heads(setup, geometry));
  WB_TRY(join_output(setup, leads[3], geometry));
  if (operands.input_count < 4) return Error::Ok;
  return read_mask(setup, operands.inputs[3], geometry);
}

std::int64_t offset_of(const Geometry& geometry, const HeadsView& view, std::int64_t lead, std::int64_t head) {
  return view.offset + lead_offset(geometry, view.lead_stride, lead) +
         head * view.heads / geometry.heads * view.head_stride;
}

std::int64_t mask_offset_of(const Geometry& geometry, std::int64_t lead, std::int64_t head) {
  return lead_offset(geometry, geometry.mask.lead_stride, lead) + head * geometry.mask.head_stride;
}

}  // namespace wb::engine::WB_ISA::attention
