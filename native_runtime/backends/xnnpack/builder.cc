#include "backends/xnnpack/builder.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <limits>

#include "backends/xnnpack/nodes/kinds.h"

namespace wb::xnnpack {

using engine::Op;
using engine::ValueKind;

namespace {

bool is_byte(ScalarType type) { return type == ScalarType::Char || type == ScalarType::Byte; }

}  // namespace

std::string text_of(const Extent& extent) {
  std::string text = "[";
  for (int d = 0; d < extent.rank(); ++d) {
    if (d != 0) text += ", ";
    if (extent.is_dynamic(d)) text += "<=";
    text += std::to_string(extent.size(d));
  }
  return text + "]";
}

Error Builder::fail(Error error, const char* format, ...) const {
  char text[400];
  std::va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return context_.fail(error, "node %u (%s): %s", node_index_, node_kind_, text);
}

const Builder::Known* Builder::find(std::uint32_t id) const {
  const auto at = std::lower_bound(known_.begin(), known_.end(), Known{id, 0});
  return at == known_.end() || at->id != id ? nullptr : &*at;
}

Result<ValueId> Builder::input(const char* name, std::uint32_t id) const {
  const Known* known = find(id);
  if (known == nullptr) return fail(Error::InvalidProgram, "%s: there is no value with the id %u", name, id);
  if (states_[known->index] != State::Filled) {
    return fail(Error::InvalidProgram, "%s: value %u is read before a node writes it", name, id);
  }
  return known->index;
}

Result<ValueId> Builder::optional_input(const char* name, std::uint32_t id) const {
  return id == kNoId ? Result<ValueId>(engine::kNoValue) : input(name, id);
}

Result<ValueId> Builder::output(const char* name, std::uint32_t id, const Extent& extent, ScalarType dtype) {
  const Known* known = find(id);
  if (known == nullptr) return fail(Error::InvalidProgram, "%s: there is no value with the id %u", name, id);
  if (states_[known->index] != State::Empty) {
    return fail(Error::InvalidProgram, "%s: value %u is an input, a constant or was written before", name, id);
  }
  engine::Value& value = graph.values[known->index];
  // What is computed from integers that stand for numbers may be numbers or such integers.
  const bool numbers = value.quantization.present() || is_byte(dtype);
  if (value.dtype != dtype && !numbers) {
    return fail(Error::InvalidProgram, "%s: value %u: expected %s, found %s", name, id, name_of(dtype),
                name_of(value.dtype));
  }
  std::int64_t numel = 1;
  for (int d = 0; d < extent.rank(); ++d) {
    if (extent.size(d) < 0 || (extent.size(d) != 0 && numel > engine::kMaxElements / extent.size(d))) {
      return fail(Error::InvalidProgram, "%s: value %u of sizes %s is too large", name, id, text_of(extent).c_str());
    }
    numel *= extent.size(d);
  }
  // Bounds of dynamic sizes come from symbolic reasoning ahead of time; what follows from the inputs' bounds counts.
  // Of an image that is quantized at run time, ExecuTorch says the sizes in PyTorch's order.
  const bool image = rounded_dims(known->index) != 0 && value.shape.rank == extent.shape.rank;
  const bool fits = image || extent.dynamic != 0 ? value.shape.rank == extent.shape.rank : value.shape == extent.shape;
  if (!fits) {
    return fail(Error::InvalidProgram, "%s: value %u: expected the sizes %s, which follow from the inputs, found %s",
                name, id, text_of(extent).c_str(), text_of({value.shape, 0}).c_str());
  }
  value.shape = extent.shape;
  value.dynamic = extent.dynamic;
  states_[known->index] = State::Filled;
  return known->index;
}

ValueId Builder::temporary(const Extent& extent, ScalarType dtype) {
  engine::Value value;
  value.dtype = dtype;
  value.shape = extent.shape;
  value.dynamic = extent.dynamic;
  graph.values.push_back(value);
  return static_cast<ValueId>(graph.values.size() - 1);
}

ValueId Builder::temporary_like(const Extent& extent, ValueId like) {
  const ValueId id = temporary(extent, value(like).dtype);
  graph.values[id].quantization = value(like).quantization;
  return id;
}

ValueId Builder::reshaped(ValueId from, std::initializer_list<std::int64_t> sizes) {
  Extent extent;
  for (const std::int64_t size : sizes) extent.append(size, false);
  if (value(from).shape == extent.shape) return from;
  const ValueId id = temporary_like(extent, from);
  graph.values[id].quantization.axis = extent.rank() - 1;
  if (value(from).kind == ValueKind::Constant) {
    graph.values[id].kind = ValueKind::Constant;
    graph.values[id].data = value(from).data;
    return id;
  }
  engine::Attributes attributes;
  attributes.rank = extent.shape.rank;
  for (int d = 0; d < extent.rank(); ++d) attributes.sizes[d].value = extent.size(d);
  emit(Op::Reshape, {from}, id, attributes, false);
  return id;
}

int Builder::declared_rank(std::uint32_t id) const {
  const Known* known = find(id);
  return known == nullptr ? -1 : graph.values[known->index].shape.rank;
}

ScalarType Builder::declared_dtype(std::uint32_t id, ScalarType otherwise) const {
  const Known* known = find(id);
  return known == nullptr ? otherwise : graph.values[known->index].dtype;
}

Error Builder::same_dtype(std::initializer_list<ValueId> values) const {
  const ScalarType first = value(*values.begin()).dtype;
  for (const ValueId id : values) {
    const bool quantized = value(id).quantization.present() || value(*values.begin()).quantization.present();
    if (value(id).dtype == first || quantized) continue;
    return fail(Error::InvalidProgram, "its inputs %u and %u are %s and %s: expected one type", ids_[*values.begin()],
                ids_[id], name_of(first), name_of(value(id).dtype));
  }
  return Error::Ok;
}

Error Builder::expect_rank(const char* name, ValueId id, int rank) const {
  if (value(id).shape.rank == rank) return Error::Ok;
  return fail(Error::InvalidProgram, "%s: expected %d dimensions, found %s", name, rank, text_of(extent(id)).c_str());
}

Error Builder::allow_flags(std::uint32_t flags, std::uint32_t allowed) const {
  if ((flags & ~allowed) == 0) return Error::Ok;
  return fail(Error::NotSupported, "flags 0x%x: of these bits only 0x%x are known", flags, allowed);
}

Error Builder::in_range(const char* name, std::uint32_t value, std::uint32_t low, std::uint32_t high) const {
  if (value >= low && value <= high) return Error::Ok;
  return fail(Error::InvalidProgram, "%s: expected %u to %u, found %u", name, low, high, value);
}

engine::Node Builder::make_node(Op op, std::vector<ValueId>&& inputs, ValueId output) {
  engine::Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  if (source_ >= 0) node.sources = {source_};
  return node;
}

void Builder::push(engine::Node&& node, bool last) {
  if (!last || !bounded_) {
    graph.nodes.push_back(std::move(node));
    return;
  }
  bounded_ = false;
  const ValueId output = node.outputs[0];
  const bool quantized = value(output).quantization.present();
  const ValueId unbounded = temporary(extent(output), quantized ? ScalarType::Float : value(output).dtype);
  node.outputs[0] = unbounded;
  graph.nodes.push_back(std::move(node));
  emit_pointwise(engine::Fn::Clamp, {unbounded}, output, low_, high_);
}

void Builder::emit(Op op, std::vector<ValueId> inputs, ValueId output, const engine::Attributes& attributes,
                   bool last) {
  engine::Node node = make_node(op, std::move(inputs), output);
  node.attributes = attributes;
  push(std::move(node), last);
}

void Builder::emit_pointwise(engine::Fn fn, std::vector<ValueId> inputs, ValueId output, float a, float b, bool last) {
  engine::PointwiseStep step;
  step.fn = fn;
  step.a = a;
  step.b = b;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    step.operands[i] = i == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(engine::kInputRegister + i);
  }
  engine::Node node = make_node(Op::Pointwise, std::move(inputs), output);
  node.post = {step};
  push(std::move(node), last);
}

Error Builder::begin_node(std::uint32_t index, const fb::Node& wire) {
  node_index_ = index;
  node_kind_ = fb::EnumNameOperator(wire.xnode_union_type());
  const std::uint32_t handle = wire.debug_handle();
  source_ = handle == kNoHandle || handle > 0x7fffffffU ? -1 : static_cast<std::int32_t>(handle);
  const fb::OutputMinMax* bounds = wire.output_min_max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  low_ = bounds == nullptr ? -kInfinity : bounds->output_min();
  high_ = bounds == nullptr ? kInfinity : bounds->output_max();
  bounded_ = low_ != -kInfinity || high_ != kInfinity;
  if (std::isnan(low_) || std::isnan(high_)) {
    return fail(Error::InvalidProgram, "the bounds of its result are %g and %g", static_cast<double>(low_),
                static_cast<double>(high_));
  }
  return Error::Ok;
}

Error Builder::read_nodes() {
  const auto* nodes = blob_.graph->xnodes();
  for (std::uint32_t i = 0; i < count(nodes); ++i) {
    const fb::Node& node = *nodes->Get(i);
    WB_TRY(begin_node(i, node));
    const NodeKind* kind = find_kind(node.xnode_union_type());
    if (kind == nullptr) {
      return fail(Error::NotSupported, "nodes of kind %u are not read", static_cast<unsigned>(node.xnode_union_type()));
    }
    if (node.xnode_union() == nullptr) return fail(Error::InvalidProgram, "it has no content");
    if (kind->kind == fb::Operator::Clamp) {
      bounded_ = false;  // its bounds are what it computes
      WB_TRY(build_clamp(*this, *node.xnode_union_as_Clamp(), low_, high_));
      continue;
    }
    bounded_ = bounded_ && kind->bounds;  // elsewhere ExecuTorch's runtime passes over them
    WB_TRY(kind->build(*this, node.xnode_union()));
  }
  for (const External& output : outputs_) {
    if (states_[output.value] == State::Filled) continue;
    return context_.fail(Error::InvalidProgram, "value %u is an output, and no node writes it", ids_[output.value]);
  }
  return Error::Ok;
}

}  // namespace wb::xnnpack
