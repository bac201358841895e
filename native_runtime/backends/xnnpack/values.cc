// Values of the delegate's graph: types, sizes, constants, places among the arguments.
#include <algorithm>

#include "backends/xnnpack/builder.h"

namespace wb::xnnpack {
namespace {

using engine::ValueKind;

constexpr std::uint32_t kInputFlag = 1, kOutputFlag = 2;
constexpr std::uint32_t kMaxExternals = 4096;
constexpr std::uint32_t kMaxValues = 1U << 24;

}  // namespace

Error Builder::read_values() {
  const auto* values = blob_.graph->xvalues();
  const std::uint32_t total = count(values);
  if (total > kMaxValues || blob_.graph->num_externs() > kMaxExternals) {
    return context_.fail(Error::InvalidProgram, "%u values, %u of them external: expected at most %u and %u", total,
                         blob_.graph->num_externs(), kMaxValues, kMaxExternals);
  }
  graph.values.resize(total);
  known_.reserve(total);
  states_.assign(total, State::Empty);
  ids_.assign(total, kNoId);
  for (std::uint32_t i = 0; i < total; ++i) WB_TRY(read_value(i, *values->Get(i)));
  std::sort(known_.begin(), known_.end());
  for (std::size_t i = 1; i < known_.size(); ++i) {
    if (known_[i].id != known_[i - 1].id) continue;
    return context_.fail(Error::InvalidProgram, "two values have the id %u", known_[i].id);
  }
  return number_externals();
}

Error Builder::read_value(std::uint32_t index, const fb::Value& wire) {
  const fb::Tensor* tensor = nullptr;
  switch (wire.xvalue_union_type()) {
    case fb::AnyTensor::Tensor: tensor = wire.xvalue_union_as_Tensor(); break;
    case fb::AnyTensor::QuantizedTensor:
      if (const auto* quantized = wire.xvalue_union_as_QuantizedTensor(); quantized != nullptr) {
        tensor = quantized->tensor_value();
      }
      break;
    default: break;
  }
  if (tensor == nullptr) return context_.fail(Error::InvalidProgram, "value %u of the list holds no tensor", index);
  const bool quantized = wire.xvalue_union_type() == fb::AnyTensor::QuantizedTensor;
  if (quantized != is_quantized(tensor->datatype())) {
    return context_.fail(Error::InvalidProgram, "value %u: type %s %s", tensor->id_out(),
                         fb::EnumNameDataType(tensor->datatype()),
                         quantized ? "with a quantization" : "without a quantization");
  }
  if (tensor->dq_datatype() != fb::DataType::INVALID) {
    return context_.fail(Error::NotSupported,
                         "value %u is to be quantized to %s when it comes in, as older files say: lower the model anew",
                         tensor->id_out(), fb::EnumNameDataType(tensor->dq_datatype()));
  }
  return read_tensor(index, *tensor, quantized ? wire.xvalue_union_as_QuantizedTensor() : nullptr);
}

Error Builder::read_tensor(std::uint32_t index, const fb::Tensor& wire, const fb::QuantizedTensor* quantized) {
  engine::Value& value = graph.values[index];
  if (wire.id_out() == kNoId) return context_.fail(Error::InvalidProgram, "value %u of the list has no id", index);
  switch (wire.datatype()) {
    case fb::DataType::FP32: value.dtype = ScalarType::Float; break;
    case fb::DataType::FP16: value.dtype = ScalarType::Half; break;
    default:
      if (is_quantized(wire.datatype())) {
        value.dtype = dtype_of(wire.datatype());
        break;
      }
      return context_.fail(Error::NotSupported, "value %u: expected FP32, FP16 or a quantized type, found type %d (%s)",
                           wire.id_out(), static_cast<int>(wire.datatype()), fb::EnumNameDataType(wire.datatype()));
  }
  if ((wire.flags() & ~(kInputFlag | kOutputFlag)) != 0 || wire.flags() == (kInputFlag | kOutputFlag)) {
    return context_.fail(Error::InvalidProgram, "value %u: flags 0x%x: expected 0, 1 (input) or 2 (output)",
                         wire.id_out(), wire.flags());
  }
  ids_[index] = wire.id_out();
  known_.push_back({wire.id_out(), index});
  WB_TRY(read_sizes(index, wire, value));
  if (quantized != nullptr) WB_TRY(read_quantization(index, *quantized));
  if (wire.constant_buffer_idx() != 0) return read_constant(index, wire, value);
  return wire.flags() != 0 ? read_external(index, wire, value) : Error::Ok;
}

Error Builder::read_sizes(std::uint32_t index, const fb::Tensor& wire, engine::Value& value) const {
  const std::uint32_t rank = count(wire.dims());
  if (rank > engine::kMaxRank || rank != wire.num_dims()) {
    return context_.fail(Error::InvalidProgram, "value %u: %u sizes, %u dimensions: expected the same, at most %d",
                         ids_[index], rank, wire.num_dims(), engine::kMaxRank);
  }
  std::int64_t numel = 1;
  value.shape.rank = static_cast<std::uint8_t>(rank);
  for (std::uint32_t d = 0; d < rank; ++d) {
    const std::int64_t size = wire.dims()->Get(d);
    if (size != 0 && numel > engine::kMaxElements / size) {
      return context_.fail(Error::InvalidProgram, "value %u: size %lld of dimension %u makes it too large", ids_[index],
                           static_cast<long long>(size), d);
    }
    numel *= size;
    value.shape.sizes[d] = size;
  }
  return Error::Ok;
}

Error Builder::read_constant(std::uint32_t index, const fb::Tensor& wire, engine::Value& value) {
  if (wire.flags() != 0) {
    return context_.fail(Error::InvalidProgram, "value %u is a constant and an argument", ids_[index]);
  }
  const std::size_t width = element_size(value.dtype);
  const std::uint64_t bytes = engine::bytes_of(value);
  auto data = find_constant(context_, blob_, wire.constant_buffer_idx(), bytes, width);
  if (!data.ok()) return context_.fail(data.error(), "the data of value %u", ids_[index]);
  value.kind = ValueKind::Constant;
  value.data = data->data();
  states_[index] = State::Filled;
  return Error::Ok;
}

Error Builder::read_external(std::uint32_t index, const fb::Tensor& wire, engine::Value& value) {
  if (wire.external_id() >= blob_.graph->num_externs()) {
    return context_.fail(Error::InvalidProgram, "value %u: argument %u of %u", ids_[index], wire.external_id(),
                         blob_.graph->num_externs());
  }
  const bool is_input = wire.flags() == kInputFlag;
  value.kind = is_input ? ValueKind::Input : ValueKind::Output;
  (is_input ? inputs_ : outputs_).push_back({wire.external_id(), index});
  if (is_input) states_[index] = State::Filled;
  return Error::Ok;
}

Error Builder::number_externals() {
  const auto by_argument = [](const External& a, const External& b) { return a.argument < b.argument; };
  std::vector<bool> taken(blob_.graph->num_externs());
  for (auto* externals : {&inputs_, &outputs_}) {
    std::sort(externals->begin(), externals->end(), by_argument);
    std::uint32_t number = 0;
    for (const External& external : *externals) {
      if (taken[external.argument]) {
        return context_.fail(Error::InvalidProgram, "two values are argument %u", external.argument);
      }
      taken[external.argument] = true;
      graph.values[external.value].external = number++;
      arguments.push_back(external.argument);
    }
  }
  graph.inputs = static_cast<std::uint32_t>(inputs_.size());
  graph.outputs = static_cast<std::uint32_t>(outputs_.size());
  for (External& input : inputs_) {
    mark_dynamic(input);
    if (is_scalar(input)) add_scalar_input(input);
  }
  return Error::Ok;
}

const Tensor* Builder::argument(std::uint32_t place) const {
  if (place >= context_.arguments.size() || !context_.arguments[place]->is_tensor()) return nullptr;
  return &context_.arguments[place]->tensor();
}

// The blob says upper bounds, and not which sizes may change. The program says of a tensor whether any may; without
// that, and for such a tensor, all may that are not 1.
void Builder::mark_dynamic(const External& input) {
  const Tensor* tensor = argument(input.argument);
  if (tensor != nullptr && tensor->dynamism == ShapeDynamism::Static) return;
  engine::Value& value = graph.values[input.value];
  for (int d = 0; d < value.shape.rank; ++d) {
    if (value.shape.sizes[d] != 1) value.dynamic |= static_cast<std::uint8_t>(1U << d);
  }
}

bool Builder::is_scalar(const External& external) const {
  const Tensor* tensor = argument(external.argument);
  const engine::Shape& shape = graph.values[external.value].shape;
  return tensor != nullptr && tensor->rank == 0 && shape.rank == 1 && shape.sizes[0] == 1;
}

// The value of the blob becomes one that is made of the argument, which is of rank 0.
void Builder::add_scalar_input(External& input) {
  const ValueId value = input.value;
  input.value = temporary_like({}, value);
  graph.values[input.value].kind = ValueKind::Input;
  graph.values[input.value].external = graph.values[value].external;
  graph.values[value].kind = ValueKind::Temporary;
  engine::Attributes attributes;
  attributes.rank = 1;
  attributes.sizes[0].value = 1;
  emit(engine::Op::Reshape, {input.value}, value, attributes);
}

void Builder::finish() {
  source_ = -1;
  bounded_ = false;
  for (const External& output : outputs_) {
    if (!is_scalar(output)) continue;
    const ValueId scalar = temporary_like({}, output.value);
    graph.values[scalar].kind = ValueKind::Output;
    graph.values[scalar].external = graph.values[output.value].external;
    graph.values[output.value].kind = ValueKind::Temporary;
    emit(engine::Op::Reshape, {output.value}, scalar);
  }
}

}  // namespace wb::xnnpack
