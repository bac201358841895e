// What the tests of the core share: graphs in a few lines, a host, calls.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"
#include "engine/engine.h"
#include "engine/graph.h"

namespace wb::engine::test {

extern int failures;
extern std::size_t allocations;  // calls of operator new

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      ++::wb::engine::test::failures;                                           \
      std::printf("%s:%d: expected %s\n", __FILE_NAME__, __LINE__, #condition); \
    }                                                                           \
  } while (false)

inline Shape shape_of(std::initializer_list<std::int64_t> sizes) {
  Shape shape;
  for (const std::int64_t size : sizes) shape.sizes[shape.rank++] = size;
  return shape;
}

class NoData final : public NamedData {
 public:
  [[nodiscard]] Result<std::span<const std::byte>> get(std::string_view /*key*/) const override {
    return Error::NotFound;
  }
};

// A host that keeps the last text and frees all memory at its end.
class TestHost {
 public:
  TestHost();
  ~TestHost();
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;

  [[nodiscard]] BackendInitContext init() {
    BackendInitContext context;
    context.host = &host_;
    context.named_data = &data_;
    return context;
  }
  [[nodiscard]] BackendExecuteContext run(EventSink* trace = nullptr) {
    BackendExecuteContext context;
    context.host = &host_;
    context.trace = trace;
    return context;
  }
  [[nodiscard]] const Host& host() const { return host_; }
  std::string text;

 private:
  Host host_;
  NoData data_;
  std::vector<void*> memory_;
};

// A tensor that owns its memory; `sizes` are its bounds.
struct TestTensor {
  explicit TestTensor(const Shape& shape, ScalarType dtype = ScalarType::Float);
  TestTensor(const TestTensor&) = delete;
  TestTensor& operator=(const TestTensor&) = delete;

  void resize(const Shape& shape);
  [[nodiscard]] float* floats() { return reinterpret_cast<float*>(data.data()); }

  std::vector<std::byte> data;
  std::int32_t sizes[kMaxRank] = {};
  std::int64_t strides[kMaxRank] = {};
  std::uint8_t order[kMaxRank] = {0, 1, 2, 3, 4, 5, 6, 7};
  Tensor tensor;
  EValue value;
};

// Builds graphs node by node. Constants are kept by the builder.
class Builder {
 public:
  ValueId input(const Shape& shape, ScalarType dtype = ScalarType::Float, std::uint8_t dynamic = 0);
  ValueId constant(const Shape& shape, std::vector<float> data);
  // Integers (of `values` in [-1, 1)) with a scale for each index of the first dimension.
  ValueId integers(const Shape& shape, ScalarType dtype, const std::vector<float>& values, std::vector<float> scales);
  ValueId temporary(const Shape& shape, ScalarType dtype = ScalarType::Float, std::uint8_t dynamic = 0);
  // Makes a temporary an output.
  void output(ValueId id);

  Node& node(Op op, std::vector<ValueId> inputs, ValueId out);
  ValueId pointwise(Fn fn, std::vector<ValueId> inputs, const Shape& shape, float a = 0, float b = 0);
  ValueId transpose(ValueId x, std::initializer_list<int> permutation);
  ValueId reshape(ValueId x, const Shape& shape);
  [[nodiscard]] const Shape& shape(ValueId id) const { return graph.values[id].shape; }

  Graph graph;

 private:
  std::vector<std::unique_ptr<float[]>> constants_;
  std::int32_t next_source_ = 0;
};

// Numbers that repeat for a seed, in [-1, 1).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2654435761U + 88172645463325252U) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }
  float value() { return static_cast<float>(next() >> 40) / static_cast<float>(1 << 23) - 1.0F; }
  std::vector<float> values(std::int64_t count) {
    std::vector<float> result(static_cast<std::size_t>(count));
    for (float& value : result) value = this->value();
    return result;
  }

 private:
  std::uint64_t state_;
};

}  // namespace wb::engine::test
