// Makes the engine's graph from the delegate's: values first (values.cc), then nodes in their order (nodes/). What a
// node builder asks of it is checked here: that a value exists, has its content, has the sizes that follow.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "backends/xnnpack/blob.h"
#include "engine/graph.h"

namespace wb::xnnpack {

using engine::ValueId;

// Attributes that count pixels (kernels, strides, paddings) may be this large at most, so that sums and products of two
// of them stay far inside of 64 bits.
inline constexpr std::uint32_t kMaxPixels = 1U << 28;

// What is written for a node without a source.
inline constexpr std::uint32_t kNoHandle = 65535;

// Sizes of a value; bit d of `dynamic`: dimension d may be smaller.
struct Extent {
  engine::Shape shape;
  std::uint8_t dynamic = 0;

  [[nodiscard]] int rank() const { return shape.rank; }
  [[nodiscard]] std::int64_t size(int d) const { return shape.sizes[d]; }
  [[nodiscard]] bool is_dynamic(int d) const { return (dynamic >> d & 1U) != 0; }
  void set(int d, std::int64_t size, bool is_dynamic) {
    shape.sizes[d] = size;
    dynamic = static_cast<std::uint8_t>((dynamic & ~(1U << d)) | (is_dynamic ? 1U << d : 0U));
  }
  void append(std::int64_t size, bool is_dynamic) { set(shape.rank++, size, is_dynamic); }
};

// "[2, 3, <=64]"
[[nodiscard]] std::string text_of(const Extent& extent);

[[nodiscard]] bool is_quantized(fb::DataType type);
// Of the integers.
[[nodiscard]] ScalarType dtype_of(fb::DataType type);

class Builder {
 public:
  Builder(const BackendInitContext& context, const Blob& blob) : context_(context), blob_(blob) {}

  // Both return InvalidProgram for a blob that breaks the rules of its format, NotSupported for what is not read (yet).
  Error read_values();
  Error read_nodes();
  // Arguments of rank 0 stand in the blob as values of sizes [1]: brings outputs to the rank of the argument. Last.
  void finish();

  engine::Graph graph;
  // Of each input and output of the graph: its place among the arguments of the delegate call.
  std::vector<std::uint32_t> arguments;

  // ---- for node builders --------------------------------------------------------------------------------------

  // Names the present node: "node 3 (Conv2d): ...".
  __attribute__((format(printf, 3, 4))) Error fail(Error error, const char* format, ...) const;

  // The value with this id, which must have its content. `name` is the field that holds the id.
  [[nodiscard]] Result<ValueId> input(const char* name, std::uint32_t id) const;
  // The same for a value that may be left out (id kNoId): engine::kNoValue.
  [[nodiscard]] Result<ValueId> optional_input(const char* name, std::uint32_t id) const;
  // The value that the node writes, which has these sizes and this type.
  [[nodiscard]] Result<ValueId> output(const char* name, std::uint32_t id, const Extent& extent, ScalarType dtype);
  // A further value of its own.
  [[nodiscard]] ValueId temporary(const Extent& extent, ScalarType dtype);
  // Of the type and quantization of another.
  [[nodiscard]] ValueId temporary_like(const Extent& extent, ValueId like);
  // Of numbers that come as integers of the type QDINT8, a scale for several dimensions: their number; else 0.
  [[nodiscard]] int rounded_dims(ValueId id) const;
  // The constant or computed value as one with other sizes and the same number of elements.
  [[nodiscard]] ValueId reshaped(ValueId value, std::initializer_list<std::int64_t> sizes);

  [[nodiscard]] const engine::Value& value(ValueId id) const { return graph.values[id]; }
  [[nodiscard]] Extent extent(ValueId id) const { return {value(id).shape, value(id).dynamic}; }
  // The sizes that the blob says of a value, for the few nodes whose result depends on them; rank -1 when there is
  // none.
  [[nodiscard]] int declared_rank(std::uint32_t id) const;
  [[nodiscard]] ScalarType declared_dtype(std::uint32_t id, ScalarType otherwise) const;

  Error same_dtype(std::initializer_list<ValueId> values) const;
  Error expect_rank(const char* name, ValueId id, int rank) const;
  Error allow_flags(std::uint32_t flags, std::uint32_t allowed) const;
  Error in_range(const char* name, std::uint32_t value, std::uint32_t low, std::uint32_t high) const;

  // Adds the node; its sources are filled in. `last`: it computes the wire node's result, to which the bounds apply.
  void emit(engine::Op op, std::vector<ValueId> inputs, ValueId output, const engine::Attributes& attributes = {},
            bool last = true);
  void emit_pointwise(engine::Fn fn, std::vector<ValueId> inputs, ValueId output, float a = 0, float b = 0,
                      bool last = true);

 private:
  enum class State : std::uint8_t { Empty, Filled };

  struct Known {
    std::uint32_t id;
    std::uint32_t index;  // into Graph.xvalues and, the same, into graph.values
    bool operator<(const Known& other) const { return id < other.id; }
  };
  struct External {
    std::uint32_t argument;
    ValueId value;
  };

  Error read_value(std::uint32_t index, const fb::Value& wire);
  Error read_tensor(std::uint32_t index, const fb::Tensor& wire, const fb::QuantizedTensor* quantized);
  Error read_quantization(std::uint32_t index, const fb::QuantizedTensor& wire);
  Error read_channels(std::uint32_t index, const fb::PerChannelQuant& from, engine::Value& value);
  Error read_groups(std::uint32_t index, const fb::PerChannelGroupQuant& from, engine::Value& value);
  Result<const float*> read_scales(std::uint32_t index, const flatbuffers::Vector<float>* inline_scales,
                                   std::uint32_t buffer, std::uint32_t number, std::int64_t expected, bool bfloat16);
  Error read_sizes(std::uint32_t index, const fb::Tensor& wire, engine::Value& value) const;
  Error read_constant(std::uint32_t index, const fb::Tensor& wire, engine::Value& value);
  Error read_external(std::uint32_t index, const fb::Tensor& wire, engine::Value& value);
  Error number_externals();
  void mark_dynamic(const External& input);
  [[nodiscard]] bool is_scalar(const External& external) const;
  void add_scalar_input(External& input);
  Error begin_node(std::uint32_t index, const fb::Node& wire);
  [[nodiscard]] const Known* find(std::uint32_t id) const;
  [[nodiscard]] const Tensor* argument(std::uint32_t place) const;
  engine::Node make_node(engine::Op op, std::vector<ValueId>&& inputs, ValueId output);
  void push(engine::Node&& node, bool last);

  const BackendInitContext& context_;
  const Blob& blob_;
  std::vector<Known> known_;        // sorted by id
  std::vector<State> states_;       // per value of the blob
  std::vector<std::uint32_t> ids_;  // per value of the blob
  std::vector<External> inputs_, outputs_;
  struct Rounded {
    ValueId value;
    int dims;
  };
  std::vector<Rounded> rounded_;

  // the present node
  std::uint32_t node_index_ = 0;
  const char* node_kind_ = "";
  std::int32_t source_ = -1;
  float low_ = 0, high_ = 0;
  bool bounded_ = false;
};

// How a kind of nodes is built. `node` is the union's table; it is not null.
struct NodeKind {
  fb::Operator kind;
  Error (*build)(Builder& builder, const void* node);
  bool bounds = false;  // OutputMinMax applies to it
};

}  // namespace wb::xnnpack
