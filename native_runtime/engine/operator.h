// What an operator of the engine provides: one row of a table, compiled once per instruction set (operators/<family>/).
// The core (compile, plan, execute) is compiled once and calls through the rows of the active instruction set.
//
//   prepare   once, with the upper bounds of all sizes: chooses a method, packs constants, keeps a state
//   shape     whenever sizes changed (at least once): what depends on them; says how much scratch memory a run needs,
//             never more than for the upper bounds
//   run       an execution; allocates nothing, cannot fail. Splits its work by context.pool
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/error.h"
#include "engine/graph.h"
#include "engine/pool.h"

namespace wb::engine {

// A value of a node at run time. A missing optional one has rank 0 and no data.
struct TensorView {
  void* data = nullptr;
  Shape shape;
  ScalarType dtype = ScalarType::Float;
  const Quantization* quantization = nullptr;  // null: the elements are the numbers themselves
  bool constant = false;
  bool present = false;

  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data);
  }
};

// What prepare and shape may ask of the core.
class Setup {
 public:
  // 64-byte aligned memory that lives as long as the program; null when there is none.
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  // The same, for packed weights: counted as such, and shared: a second call with the same key (data pointer of the
  // constant and a number for the format) gives the same memory, *ready tells that it is packed already.
  [[nodiscard]] virtual void* allocate_packed(const void* constant, std::uint64_t format, std::size_t bytes,
                                              bool* ready) = 0;
  // This part of a constant is packed. Whoever reads it again finds it, but may have to wait for it.
  virtual void packed_part(const void* data, std::size_t bytes) {
    (void)data;
    (void)bytes;
  }
  // Shall methods be measured where several suit?
  [[nodiscard]] virtual bool trial() const = 0;
  // What a trial measured for a method of a layer, ns. What is returned counts.
  [[nodiscard]] virtual std::uint64_t measured(const char* layer, const char* method, std::uint64_t ns) {
    (void)layer;
    (void)method;
    return ns;
  }
  // Where the choice for layers of this kind is noted: null at first. No place: nothing is noted.
  [[nodiscard]] virtual const void** choice(std::uint64_t kind) {
    (void)kind;
    return nullptr;
  }
  __attribute__((format(printf, 3, 4))) virtual Error fail(Error error, const char* format, ...) = 0;

 protected:
  ~Setup() = default;
};

struct Operands {
  const TensorView* inputs = nullptr;
  const TensorView* outputs = nullptr;
  const TensorView* post_inputs = nullptr;
  std::uint32_t input_count = 0, output_count = 0, post_input_count = 0;
};

struct PrepareContext {
  Setup& setup;
  const Node& node;
  Operands operands;  // upper bounds; data only of constants
  void* state = nullptr;
  int threads = 1;
  // Result: bit i says that run does not read input i, because it was packed. The pages of a constant that nobody
  // reads are given back.
  std::uint64_t packed_inputs = 0;
};

struct ShapeContext {
  Setup& setup;
  const Node& node;
  Operands operands;  // present sizes; data only of constants
  void* state = nullptr;
  int threads = 1;
  std::size_t scratch = 0;  // result: bytes of scratch memory, all threads together
};

// What a run can find wrong after all: data that are indices. The run goes on with what is valid (nothing is read or
// written out of bounds); the core asks once it is over and fails the execution. The first one stays.
struct RunFault {
  std::atomic<bool> raised{false};
  std::int64_t found = 0, limit = 0;  // the index; valid ones are in [-limit, limit) or [0, limit)
  const Node* node = nullptr;

  void raise(const Node& where, std::int64_t index, std::int64_t count) {
    if (raised.exchange(true)) return;
    found = index;
    limit = count;
    node = &where;
  }
};

struct RunContext {
  const Node& node;
  Operands operands;
  void* state = nullptr;
  std::byte* scratch = nullptr;  // 64-byte aligned
  Pool& pool;
  // Steps of node.post to apply: all of them, but fewer when an intermediate value is tapped.
  std::uint32_t post_count = 0;
  RunFault* fault = nullptr;  // may be null
};

struct Operator {
  Op op;
  Error (*prepare)(PrepareContext& context);
  Error (*shape)(ShapeContext& context);
  void (*run)(const RunContext& context);
  // May the epilogue of such a node hold this step? Null: the node takes no epilogue.
  bool (*fuses)(const Node& node, const PointwiseStep& step) = nullptr;
  // Has it a method for such a node, whose values are quantized in part or all? Null: it has none for any.
  bool (*quantized)(const Graph& graph, const Node& node) = nullptr;
};

// The row of the active instruction set (kernels/select.h); null when the operator is not built in.
[[nodiscard]] const Operator* find_operator(Op op);

}  // namespace wb::engine

// Ends every file of operators/<family>/<stem>.cc: its rows. A file without rows says WB_ENGINE_OPERATORS(stem).
#define WB_ENGINE_OPERATORS(stem, ...)                                                        \
  namespace wb::engine::WB_ISA {                                                              \
  extern const ::wb::engine::OperatorTable operators_##stem;                                  \
  namespace {                                                                                 \
  constexpr ::wb::engine::Operator rows_##stem[] = {__VA_ARGS__};                             \
  }                                                                                           \
  const ::wb::engine::OperatorTable operators_##stem = {rows_##stem, std::size(rows_##stem)}; \
  }

namespace wb::engine {
struct OperatorTable {
  const Operator* rows;
  std::size_t count;
};
}  // namespace wb::engine
