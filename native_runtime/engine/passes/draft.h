// A graph while passes rewrite it, and what has to be remembered of the graph that the front end gave.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph.h"
#include "engine/passes/owned.h"
#include "engine/report.h"

namespace wb::engine {

// Where the result of a front end's node is to be found: how a value that somebody asks for is read although the node
// may have been fused, moved or laid out otherwise.
struct Tap {
  static constexpr std::uint32_t kWhole = 0xffffffffU;

  std::int32_t source = -1;
  std::uint32_t output = 0;  // of the source's node, which one
  ValueId value = kNoValue;
  std::uint32_t post_count = kWhole;  // steps of the program of the value's node that lead to it
  // Dimension i in memory is dimension order[i] of the source's result.
  std::uint8_t rank = 0;
  std::uint8_t order[kMaxRank] = {};
  // It is quantized, but what the source gives are the numbers that its integers stand for.
  bool numbers = false;
  // The value was given other dimensions since: the same elements stand in these, in memory.
  bool reshaped = false;
  Shape shape;
};

// A permutation of dimensions: dimension i of the result is dimension at[i] of what is permuted.
struct Permutation {
  std::uint8_t rank = 0;
  std::uint8_t at[kMaxRank] = {};

  [[nodiscard]] static Permutation identity(int rank);
  [[nodiscard]] static Permutation of(const Node& transpose, int rank);
  [[nodiscard]] Permutation inverse() const;
  // This one first, then `next`.
  [[nodiscard]] Permutation then(const Permutation& next) const;
  [[nodiscard]] bool is_identity() const;
  [[nodiscard]] Shape apply(const Shape& shape) const;
  [[nodiscard]] Quantization apply(const Quantization& quantization) const;
  [[nodiscard]] std::uint8_t apply_bits(std::uint8_t bits) const;
  bool operator==(const Permutation& other) const;
};

class Draft {
 public:
  Draft(const Reporter& report, Graph& graph, Owned& owned);

  Graph& graph;
  const Reporter& report;
  std::vector<Tap> taps;

  // Memory of a constant that a pass makes.
  [[nodiscard]] void* own(std::size_t bytes) { return owned_.allocate(bytes); }

  [[nodiscard]] Value& value(ValueId id) { return graph.values[id]; }
  [[nodiscard]] const Value& value(ValueId id) const { return graph.values[id]; }

  // Who writes and reads values; counted anew by index(). A node that reads a value twice counts once.
  void index();
  // Null also when that node was changed since and writes it no longer.
  [[nodiscard]] Node* producer(ValueId id) const {
    if (id >= producers_.size() || producers_[id] == kNone) return nullptr;
    Node* node = nodes_ + producers_[id];
    for (const ValueId out : node->outputs) {
      if (out == id) return node;
    }
    return nullptr;
  }
  [[nodiscard]] std::uint32_t readers(ValueId id) const { return id < readers_.size() ? readers_[id] : 0; }
  static constexpr std::uint32_t kNone = 0xffffffffU;

  ValueId add_value(const Shape& shape, ScalarType dtype, std::uint8_t dynamic, const Quantization& quantization = {});
  // A further value of the same type, sizes and quantization.
  ValueId add_like(const Value& value);
  // A node that permutes x as `permutation` says; `out` is made unless it is given.
  Node make_transpose(ValueId x, const Permutation& permutation, ValueId out = kNoValue);
  // Drops nodes without outputs (how passes mark what they took away).
  void sweep();
  // Everybody who reads `from` reads `to`; taps of `from` are found at `to`, whose memory holds the dimensions of
  // `from` in the order that `memory` says.
  void replace(ValueId from, ValueId to, const Permutation& memory);
  void move_taps(ValueId from, ValueId to, const Permutation& memory);
  // `to` holds the elements of `from` in other dimensions.
  void move_taps_reshaped(ValueId from, ValueId to);
  // `from` holds the numbers that the integers of `to` stand for: its taps are found there.
  void move_taps_of_numbers(ValueId from, ValueId to);
  // The node that wrote `between` (with so many steps) goes into the program of the one that writes `out`.
  void shift_taps(ValueId out, ValueId between, std::uint32_t steps);

 private:
  std::vector<std::uint32_t> producers_, readers_;
  Node* nodes_ = nullptr;
  Owned& owned_;
};

// The passes, in the order in which they run (passes.cc).
// float16 only where values come in or go out.
Error fold_half(Draft& draft);
// Programs of a front end that an operator takes no epilogue for become nodes.
void split_programs(Draft& draft);
// Nodes that move elements do so between values of the same quantization; what is left becomes Quantize, Dequantize.
Error settle_moves(Draft& draft);
// Dequantize and Quantize nodes go into the nodes round them, which then compute on integers.
void fold_quantized(Draft& draft);
// Nodes that no operator computes on integers get Dequantize and Quantize nodes round them; constants are dequantized
// here and now.
Error legalize_quantized(Draft& draft);
void remove_dead_code(Draft& draft);
// Copies, reshapes and transposes of constants are done here and now.
void fold_constants(Draft& draft);
// Chains of Transpose nodes become one, or none.
void merge_transposes(Draft& draft);
// Chains of Reshape nodes become one, or none.
void merge_reshapes(Draft& draft);
// Products of rows that were made of more dimensions take these as they are.
void unfold_products(Draft& draft);
// Moves a Transpose behind a Reshape if that brings it together with others.
void sink_transposes(Draft& draft);
// Chooses for all values in which order their dimensions stand (layout.h).
void assign_layout(Draft& draft);
// Transpose nodes round attention and matrix products become attributes of these.
void absorb_transposes(Draft& draft);
// Transpose nodes that move nothing become Reshape nodes.
void free_transposes(Draft& draft);
// What is only copied to an output is written there at once.
void forward_outputs(Draft& draft);
void fuse_pad(Draft& draft);
void fuse_pointwise(Draft& draft);

// All of them. `fuse` false: only what the graph needs to run at all.
Error run_passes(Draft& draft, bool fuse);

}  // namespace wb::engine
