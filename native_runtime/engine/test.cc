// Runs the tests of the core: prints what fails, ends with 1 if anything did.
#include <new>

#include "engine/test_support.h"

namespace wb::engine::test {

int failures = 0;
std::size_t allocations = 0;

void test_execute();
void test_passes();
void test_plan();
void test_pool();
void test_taps();
void test_bad_graphs(std::uint64_t seeds);
void test_quantized();

TestHost::TestHost() {
  host_.self = this;
  host_.allocate = [](void* self, std::size_t bytes, std::size_t alignment) {
    void* memory = std::aligned_alloc(alignment < 8 ? 8 : alignment, (bytes / 64 + 1) * 64);
    if (memory == nullptr) return memory;
    std::memset(memory, 0, bytes);
    static_cast<TestHost*>(self)->memory_.push_back(memory);
    return memory;
  };
  host_.request_scratch = [](void*, std::size_t) {};
  host_.resize = [](void*, Tensor& tensor, const std::int32_t* sizes, int rank) {
    std::size_t bytes = element_size(tensor.dtype);
    for (int d = 0; d < rank; ++d) bytes *= static_cast<std::size_t>(sizes[d]);
    if (rank != tensor.rank || bytes > tensor.capacity) return Error::InvalidArgument;
    for (int d = 0; d < rank; ++d) tensor.sizes[d] = sizes[d];
    return Error::Ok;
  };
  host_.vreport = [](void* self, const char* format, std::va_list args) {
    char text[512];
    std::vsnprintf(text, sizeof text, format, args);
    std::string& all = static_cast<TestHost*>(self)->text;
    all += all.empty() ? "" : "; ";
    all += text;
  };
}

TestHost::~TestHost() {
  for (void* memory : memory_) std::free(memory);
}

TestTensor::TestTensor(const Shape& shape, ScalarType dtype) {
  data.resize(static_cast<std::size_t>(shape.numel()) * element_size(dtype) + 1);
  tensor.data = data.data();
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.dim_order = order;
  tensor.capacity = data.size() - 1;
  tensor.dtype = dtype;
  tensor.rank = shape.rank;
  value.tag = Tag::Tensor;
  value.payload.tensor = &tensor;
  resize(shape);
}

void TestTensor::resize(const Shape& shape) {
  for (int d = 0; d < shape.rank; ++d) sizes[d] = static_cast<std::int32_t>(shape.sizes[d]);
}

ValueId Builder::input(const Shape& shape, ScalarType dtype, std::uint8_t dynamic) {
  const ValueId id = temporary(shape, dtype, dynamic);
  graph.values[id].kind = ValueKind::Input;
  graph.values[id].external = graph.inputs++;
  return id;
}

ValueId Builder::constant(const Shape& shape, std::vector<float> data) {
  const ValueId id = temporary(shape);
  graph.values[id].kind = ValueKind::Constant;
  constants_.push_back(std::make_unique<float[]>(data.size() + 1));
  std::memcpy(constants_.back().get(), data.data(), data.size() * sizeof(float));
  graph.values[id].data = constants_.back().get();
  return id;
}

ValueId Builder::integers(const Shape& shape, ScalarType dtype, const std::vector<float>& values,
                          std::vector<float> scales) {
  // Room for the widest of them, and for floats that a damaged type takes them for.
  std::vector<float> memory(values.size() + 1);
  auto* bytes = reinterpret_cast<std::byte*>(memory.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto integer = static_cast<std::int32_t>(values[i] * (dtype == ScalarType::Int ? 2000 : 127));
    const auto byte = static_cast<std::int8_t>(integer);
    if (dtype == ScalarType::Int) {
      std::memcpy(bytes + i * sizeof integer, &integer, sizeof integer);
    } else {
      std::memcpy(bytes + i, &byte, 1);
    }
  }
  const ValueId id = constant(shape, std::move(memory));
  const ValueId kept = constant(shape_of({static_cast<std::int64_t>(scales.size())}), scales);
  Value& value = graph.values[id];
  value.dtype = dtype;
  value.quantization.kind = Quantization::Kind::PerChannel;
  value.quantization.scales = static_cast<const float*>(graph.values[kept].data);
  return id;
}

ValueId Builder::temporary(const Shape& shape, ScalarType dtype, std::uint8_t dynamic) {
  Value value;
  value.shape = shape;
  value.dtype = dtype;
  value.dynamic = dynamic;
  graph.values.push_back(value);
  return static_cast<ValueId>(graph.values.size() - 1);
}

void Builder::output(ValueId id) {
  graph.values[id].kind = ValueKind::Output;
  graph.values[id].external = graph.outputs++;
}

Node& Builder::node(Op op, std::vector<ValueId> inputs, ValueId out) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = {out};
  node.sources = {next_source_++};
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back();
}

ValueId Builder::pointwise(Fn fn, std::vector<ValueId> inputs, const Shape& shape, float a, float b) {
  const ValueId out = temporary(shape);
  PointwiseStep step;
  step.fn = fn;
  step.a = a;
  step.b = b;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    step.operands[i] = static_cast<std::uint8_t>(kInputRegister + i);
  }
  node(Op::Pointwise, std::move(inputs), out).post = {step};
  return out;
}

ValueId Builder::transpose(ValueId x, std::initializer_list<int> permutation) {
  Shape out;
  std::uint8_t order[kMaxRank] = {};
  for (const int from : permutation) {
    order[out.rank] = static_cast<std::uint8_t>(from);
    out.sizes[out.rank++] = shape(x).sizes[from];
  }
  const ValueId y = temporary(out);
  std::memcpy(node(Op::Transpose, {x}, y).attributes.permutation, order, sizeof order);
  return y;
}

ValueId Builder::reshape(ValueId x, const Shape& shape) {
  const ValueId y = temporary(shape);
  Attributes& a = node(Op::Reshape, {x}, y).attributes;
  a.rank = shape.rank;
  for (int d = 0; d < shape.rank; ++d) a.sizes[d].value = shape.sizes[d];
  return y;
}

}  // namespace wb::engine::test

void* operator new(std::size_t bytes) {
  ++wb::engine::test::allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

// wb_engine_test [number of bad graphs]
int main(int argc, char** argv) {
  wb::engine::test::test_execute();
  wb::engine::test::test_plan();
  wb::engine::test::test_passes();
  wb::engine::test::test_taps();
  wb::engine::test::test_quantized();
  wb::engine::test::test_bad_graphs(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000);
  wb::engine::test::test_pool();
  if (wb::engine::test::failures == 0) std::printf("ok\n");
  return wb::engine::test::failures == 0 ? 0 : 1;
}
