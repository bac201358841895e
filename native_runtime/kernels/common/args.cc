// Argument checks.
#include "kernels/common/args.h"

#include <cstring>

namespace wb::kernels::WB_ISA {
namespace {

bool matches(char letter, Tag tag) {
  const bool number = tag == Tag::Int || tag == Tag::Double || tag == Tag::Bool;
  switch (letter) {
    case 't': return tag == Tag::Tensor;
    case 'T': return tag == Tag::Tensor || tag == Tag::None;
    case 'L': return tag == Tag::TensorList;
    case 'O': return tag == Tag::OptionalTensorList || tag == Tag::TensorList;
    case 'i': return tag == Tag::Int;
    case 'I': return tag == Tag::Int || tag == Tag::None;
    case 'b': return tag == Tag::Bool;
    case 'B': return tag == Tag::Bool || tag == Tag::None;
    case 'f':
    case 's': return number;
    case 'F':
    case 'S': return number || tag == Tag::None;
    case 'l': return tag == Tag::IntList;
    case 'M': return tag == Tag::IntList || tag == Tag::None;
    case 'd': return tag == Tag::DoubleList || tag == Tag::None;
    case 'z': return tag == Tag::String;
    case 'Z': return tag == Tag::String || tag == Tag::None;
    default: return letter == '*';
  }
}

const char* describe(char letter) {
  switch (letter) {
    case 't': return "Tensor";
    case 'T': return "Tensor or None";
    case 'L': return "Tensor[]";
    case 'O': return "Tensor?[]";
    case 'i': return "int";
    case 'I': return "int or None";
    case 'b': return "bool";
    case 'B': return "bool or None";
    case 'f':
    case 's': return "a number";
    case 'F':
    case 'S': return "a number or None";
    case 'l': return "int[]";
    case 'M': return "int[] or None";
    case 'd': return "float[] or None";
    case 'z': return "str";
    default: return "str or None";
  }
}

Error check_tensor(const KernelContext& context, std::uint32_t i, const Tensor& tensor) {
  if (tensor.rank > kMaxRank || !is_valid(tensor.dtype)) {
    return context.fail(Error::InvalidProgram, "argument %u: a tensor of rank %d and dtype %s", i, tensor.rank,
                        name_of(tensor.dtype));
  }
  return Error::Ok;
}

Error check_list(const KernelContext& context, std::uint32_t i, bool optional) {
  const TensorListRef& list = context.arg(i).payload.tensor_list;
  for (std::uint32_t k = 0; k < list.size; ++k) {
    const EValue& item = *list.items[k];
    if (item.is_none() && optional) continue;
    if (!item.is_tensor()) {
      return context.fail(Error::InvalidType, "argument %u: entry %u: expected Tensor, found %s", i, k,
                          name_of(item.tag));
    }
    WB_TRY(check_tensor(context, i, item.tensor()));
  }
  return Error::Ok;
}

bool is_static_list(const TensorListRef& list) {
  for (std::uint32_t k = 0; k < list.size; ++k) {
    if (list.items[k]->is_tensor() && list.items[k]->tensor().dynamism != ShapeDynamism::Static) return false;
  }
  return true;
}

int category(ScalarType type) { return is_floating(type) ? 2 : type == ScalarType::Bool ? 0 : 1; }

}  // namespace

Error check_args(const KernelContext& context, const char* signature) {
  const auto expected = static_cast<std::uint32_t>(std::strlen(signature));
  if (context.count() != expected) {
    return context.fail(Error::InvalidProgram, "expected %u arguments, found %u", expected, context.count());
  }
  for (std::uint32_t i = 0; i < expected; ++i) {
    const EValue& arg = context.arg(i);
    if (!matches(signature[i], arg.tag)) {
      return context.fail(Error::InvalidType, "argument %u: expected %s, found %s", i, describe(signature[i]),
                          name_of(arg.tag));
    }
    if (arg.is_tensor()) WB_TRY(check_tensor(context, i, arg.tensor()));
    if (signature[i] == 'L' || signature[i] == 'O') WB_TRY(check_list(context, i, signature[i] == 'O'));
  }
  return Error::Ok;
}

Error get_dim(const KernelContext& context, std::uint32_t arg, int rank, int* dim) {
  const auto value = context.arg(arg).scalar<std::int64_t>();
  *dim = wrap_dim(value, rank);
  if (*dim >= 0) return Error::Ok;
  return context.fail(Error::InvalidArgument, "argument %u (dim): %lld is out of range for rank %d", arg,
                      static_cast<long long>(value), rank);
}

Error get_dims(const KernelContext& context, std::uint32_t arg, int rank, bool empty_is_all, std::uint32_t* mask) {
  *mask = 0;
  const EValue& value = context.arg(arg);
  const std::span<const std::int64_t> dims =
      value.is_none() ? std::span<const std::int64_t>() : value.payload.int_list.get();
  if (dims.empty() && empty_is_all) *mask = (1U << rank) - 1;
  for (const std::int64_t entry : dims) {
    const int dim = wrap_dim(entry, rank);
    if (dim < 0) {
      return context.fail(Error::InvalidArgument, "argument %u (dims): %lld is out of range for rank %d", arg,
                          static_cast<long long>(entry), rank);
    }
    if ((*mask >> dim & 1U) != 0) {
      return context.fail(Error::InvalidArgument, "argument %u (dims): %d appears twice", arg, dim);
    }
    *mask |= 1U << dim;
  }
  return Error::Ok;
}

Error expect_dtype(const KernelContext& context, std::uint32_t arg, ScalarType type) {
  if (context.tensor(arg).dtype == type) return Error::Ok;
  return context.fail(Error::InvalidType, "argument %u: expected %s, found %s", arg, name_of(type),
                      name_of(context.tensor(arg).dtype));
}

Error expect_same_dtype(const KernelContext& context, std::uint32_t a, std::uint32_t b) {
  if (context.tensor(a).dtype == context.tensor(b).dtype) return Error::Ok;
  return context.fail(Error::InvalidType, "argument %u: expected %s as in argument %u, found %s", b,
                      name_of(context.tensor(a).dtype), a, name_of(context.tensor(b).dtype));
}

Error expect_computable(const KernelContext& context, std::uint32_t arg) {
  if (is_computable(context.tensor(arg).dtype)) return Error::Ok;
  return context.fail(Error::NotSupported, "argument %u: no kernel for dtype %s", arg,
                      name_of(context.tensor(arg).dtype));
}

Error expect_index_dtype(const KernelContext& context, std::uint32_t arg) {
  const ScalarType type = context.tensor(arg).dtype;
  if (type == ScalarType::Long || type == ScalarType::Int) return Error::Ok;
  return context.fail(Error::InvalidType, "argument %u: expected int64 or int32 indices, found %s", arg, name_of(type));
}

bool is_static(const KernelContext& context) {
  for (std::uint32_t i = 0; i < context.count(); ++i) {
    const EValue& arg = context.arg(i);
    switch (arg.tag) {
      case Tag::Tensor:
        if (arg.tensor().dynamism != ShapeDynamism::Static) return false;
        break;
      case Tag::TensorList:
      case Tag::OptionalTensorList:
        if (!is_static_list(arg.payload.tensor_list)) return false;
        break;
      default:
        if (!context.is_constant(i)) return false;
    }
  }
  return true;
}

Error broadcast(const KernelContext& context, const Tensor* const* operands, int count, Shape* shape) {
  shape->rank = 0;
  for (int k = 0; k < count; ++k) {
    if (operands[k]->rank > shape->rank) shape->rank = operands[k]->rank;
  }
  for (int d = 0; d < shape->rank; ++d) {
    std::int32_t size = 1;
    for (int k = 0; k < count; ++k) {
      const int own = d - (shape->rank - operands[k]->rank);
      if (own < 0 || operands[k]->sizes[own] == 1) continue;
      const std::int32_t found = operands[k]->sizes[own];
      if (size != 1 && size != found) {
        return context.fail(Error::InvalidArgument, "operand %d: size %d at dimension %d can't be broadcast to %d", k,
                            found, d, size);
      }
      size = found;
    }
    shape->sizes[d] = size;
  }
  return Error::Ok;
}

bool same_sizes(const Tensor& a, const Tensor& b) {
  if (a.rank != b.rank) return false;
  for (int d = 0; d < a.rank; ++d) {
    if (a.sizes[d] != b.sizes[d]) return false;
  }
  return true;
}

bool same_layout(const Tensor& a, const Tensor& b) {
  if (!same_sizes(a, b)) return false;
  for (int d = 0; d < a.rank; ++d) {
    if (a.sizes[d] > 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

ScalarType promote(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (is_floating(a)) {
    if (a == ScalarType::Double || b == ScalarType::Double) return ScalarType::Double;
    return ScalarType::Float;  // also of float16 with bfloat16
  }
  const auto is_unsigned = [](ScalarType type) {
    return type == ScalarType::Byte || type == ScalarType::UInt16 || type == ScalarType::UInt32 ||
           type == ScalarType::UInt64;
  };
  const std::size_t size_a = element_size(a);
  const std::size_t size_b = element_size(b);
  if (is_unsigned(a) == is_unsigned(b)) return size_a > size_b ? a : b;
  const ScalarType signed_type = is_unsigned(a) ? b : a;
  const std::size_t size_unsigned = is_unsigned(a) ? size_a : size_b;
  if (element_size(signed_type) > size_unsigned) return signed_type;
  return size_unsigned == 1 ? ScalarType::Short : size_unsigned == 2 ? ScalarType::Int : ScalarType::Long;
}

ScalarType ResultType::get() const {
  ScalarType result = ScalarType::Bool;
  bool any = false;
  for (int priority = 0; priority < kPriorities; ++priority) {
    if (!present_[priority]) continue;
    const ScalarType type = types_[priority];
    if (!any || category(type) > category(result)) result = type;
    any = true;
  }
  return result;
}

extern const KernelTable table_common_args;
const KernelTable table_common_args = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
