// Inputs of a method: checked against what was planned, then used in place or copied.
#include <cstring>

#include "executor/method.h"

namespace wb {
namespace {

bool dense_in_order(const CallerTensor& given, const Tensor& expected) {
  std::int64_t step = 1;
  for (int i = expected.rank - 1; i >= 0; --i) {
    const std::size_t d = expected.dim_order[i];
    if (given.sizes[d] != 1 && given.strides[d] != step) return false;
    step *= given.sizes[d];
  }
  return true;
}

// Element by element in the memory order of the target. Layouts that reach this are rare, and inputs small.
void copy_strided(const CallerTensor& given, const Tensor& target) {
  const std::size_t element = element_size(target.dtype);
  const auto* source = static_cast<const std::byte*>(given.data);
  auto* out = static_cast<std::byte*>(target.data);
  const std::int64_t total = target.numel();
  std::int64_t index[kMaxRank] = {};
  for (std::int64_t n = 0; n < total; ++n) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < target.rank; ++d) offset += index[d] * given.strides[d];
    std::memcpy(out + n * static_cast<std::int64_t>(element), source + offset * static_cast<std::int64_t>(element),
                element);
    for (int i = target.rank - 1; i >= 0; --i) {
      const int d = target.dim_order[i];
      if (++index[d] < target.sizes[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

Error Method::check_input(std::size_t index, Tag tag) {
  if (index >= plan_.inputs.size()) {
    diagnostic_.add("input %zu: the method has %zu inputs", index, plan_.inputs.size());
    return Error::InvalidArgument;
  }
  const EValue& value = plan_.values[plan_.inputs[index]];
  if (value.tag == tag) return Error::Ok;
  diagnostic_.add("input %zu: expected %s, found %s", index, name_of(value.tag), name_of(tag));
  return Error::InvalidArgument;
}

Error Method::check_shape(std::size_t index, const CallerTensor& given, const fb::Tensor& bound) {
  const std::uint32_t rank = count(bound.sizes());
  if (given.sizes.size() != rank || given.strides.size() != rank) {
    diagnostic_.add("input %zu: expected rank %u, found %zu", index, rank, given.sizes.size());
    return Error::InvalidArgument;
  }
  const bool fixed = bound.shape_dynamism() == fb::TensorShapeDynamism::STATIC;
  for (std::uint32_t d = 0; d < rank; ++d) {
    const std::int64_t expected = bound.sizes()->Get(d);
    if (fixed ? given.sizes[d] == expected : given.sizes[d] >= 0 && given.sizes[d] <= expected) continue;
    diagnostic_.add("input %zu: size of dimension %u: expected %s%lld, found %lld", index, d, fixed ? "" : "at most ",
                    static_cast<long long>(expected), static_cast<long long>(given.sizes[d]));
    return Error::InvalidArgument;
  }
  return Error::Ok;
}

Error Method::set_input(std::size_t index, const CallerTensor& given) {
  WB_TRY(check_input(index, Tag::Tensor));
  const std::uint32_t value = plan_.inputs[index];
  Tensor& tensor = plan_.values[value].tensor();
  if (given.dtype != tensor.dtype) {
    diagnostic_.add("input %zu: expected %s, found %s", index, name_of(tensor.dtype), name_of(given.dtype));
    return Error::InvalidArgument;
  }
  const fb::Tensor& bound = *serialized_->values()->Get(value)->val_as_Tensor();
  WB_TRY(check_shape(index, given, bound));
  for (std::size_t d = 0; d < tensor.rank; ++d) tensor.sizes[d] = static_cast<std::int32_t>(given.sizes[d]);
  strides_from_dim_order(tensor.shape(), tensor.dim_order, tensor.strides);
  const std::size_t nbytes = tensor.nbytes();
  if (nbytes == 0) return Error::Ok;
  const bool in_order = dense_in_order(given, tensor);
  const bool planned = bound.allocation_info() != nullptr;
  const bool aligned = reinterpret_cast<std::uintptr_t>(given.data) % element_size(tensor.dtype) == 0;
  if (in_order && !planned && aligned && given.writable) {
    tensor.data = const_cast<void*>(given.data);
    return Error::Ok;
  }
  tensor.data = plan_.staging[index];
  if (in_order) {
    std::memcpy(tensor.data, given.data, nbytes);
  } else {
    copy_strided(given, tensor);
  }
  return Error::Ok;
}

Error Method::set_scalar(std::size_t index, const EValue& given) {
  WB_TRY(check_input(index, given.tag));
  const std::uint32_t position = plan_.inputs[index];
  EValue& value = plan_.values[position];
  const bool same = given.scalar<double>() == value.scalar<double>();
  // A number that no instruction reads was made part of the program when the model was exported.
  if ((plan_.flags[position] & kReferenced) == 0 && !same) {
    diagnostic_.add("input %zu: the program was compiled for the value %g, found %g", index, value.scalar<double>(),
                    given.scalar<double>());
    return Error::InvalidArgument;
  }
  value = given;
  return Error::Ok;
}

Error Method::set_input(std::size_t index, std::int64_t number) {
  EValue value;
  value.set(number);
  return set_scalar(index, value);
}

Error Method::set_input(std::size_t index, double number) {
  EValue value;
  value.set(number);
  return set_scalar(index, value);
}

Error Method::set_input(std::size_t index, bool truth) {
  EValue value;
  value.set(truth);
  return set_scalar(index, value);
}

Error Method::set_input_none(std::size_t index) { return check_input(index, Tag::None); }

Error Method::set_input(std::size_t index, std::string_view text) {
  WB_TRY(check_input(index, Tag::String));
  const std::string_view expected = plan_.values[plan_.inputs[index]].string();
  if (text == expected) return Error::Ok;
  diagnostic_.add("input %zu: the program was compiled for the text %.*s", index, static_cast<int>(expected.size()),
                  expected.data());
  return Error::InvalidArgument;
}

}  // namespace wb
