// Operators that work on dimensions in any order.
#include <algorithm>

#include "engine/passes/layout.h"

namespace wb::engine {
namespace {

// The dimensions that a reduction leaves, in the order of memory.
bool same_rest(std::uint32_t mask, const Permutation& permutation) {
  int last = -1;
  for (int d = 0; d < permutation.rank; ++d) {
    const int from = permutation.at[d];
    if ((mask >> from & 1U) != 0) continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

int place_of(int dimension, const Permutation& permutation) { return permutation.inverse().at[dimension]; }

}  // namespace

Agnostic agnostic(const Draft& draft, const Node& node, const Permutation& permutation) {
  const Attributes& a = node.attributes;
  const auto has_rank = [&](ValueId id) { return draft.value(id).shape.rank == permutation.rank; };
  if (!node.post.empty() && node.op != Op::Pointwise) return Agnostic::No;
  switch (node.op) {
    case Op::Pointwise: {
      // Operands of fewer dimensions were given leading ones before.
      const bool all = std::ranges::all_of(node.inputs, [&](ValueId id) {
        return has_rank(id) || (draft.value(id).shape.numel() == 1 && draft.value(id).dynamic == 0);
      });
      return all && has_rank(node.outputs[0]) ? Agnostic::Yes : Agnostic::No;
    }
    case Op::Quantize:
      if (draft.value(node.outputs[0]).quantization.kind != Quantization::Kind::PerTensor) return Agnostic::No;
      return has_rank(node.inputs[0]) ? Agnostic::Yes : Agnostic::No;
    case Op::Dequantize:
      if (draft.value(node.inputs[0]).quantization.kind != Quantization::Kind::PerTensor) return Agnostic::No;
      return has_rank(node.inputs[0]) ? Agnostic::Yes : Agnostic::No;
    case Op::Concat:
    case Op::Slice:
    case Op::Pad:
    case Op::Softmax:
    case Op::Convert:
    case Op::Copy:
    case Op::Gather: return has_rank(node.inputs[0]) ? Agnostic::Yes : Agnostic::No;
    case Op::Reduce:
    case Op::ArgReduce: {
      if (!has_rank(node.inputs[0])) return Agnostic::No;
      if (a.keep) return Agnostic::Yes;
      return same_rest(node.op == Op::Reduce ? a.mask : 1U << a.axis, permutation) ? Agnostic::InputOnly : Agnostic::No;
    }
    default: return Agnostic::No;
  }
}

bool follows_order(const Draft& draft, const Node& node, std::size_t input) {
  if (node.op == Op::Gather) return input == 0;
  const Value& value = draft.value(node.inputs[input]);
  return node.op != Op::Pointwise || value.shape.numel() != 1 || value.dynamic != 0;
}

void permute_attributes(Node& node, const Permutation& permutation, int rank) {
  Attributes& a = node.attributes;
  if (permutation.rank != rank || permutation.is_identity()) return;
  switch (node.op) {
    case Op::Concat:
    case Op::Slice:
    case Op::Softmax:
    case Op::Gather:
    case Op::ArgReduce: a.axis = place_of(a.axis, permutation); break;
    case Op::Reduce: a.mask = permutation.apply_bits(static_cast<std::uint8_t>(a.mask)); break;
    case Op::Pad: {
      std::int64_t before[kMaxRank] = {};
      std::int64_t after[kMaxRank] = {};
      for (int d = 0; d < rank; ++d) {
        before[d] = a.before[permutation.at[d]];
        after[d] = a.after[permutation.at[d]];
      }
      std::copy_n(before, kMaxRank, a.before);
      std::copy_n(after, kMaxRank, a.after);
      break;
    }
    default: break;
  }
}

bool moves_nothing(const Permutation& permutation, const Value& value) {
  int last = -1;
  for (int d = 0; d < permutation.rank; ++d) {
    const int from = permutation.at[d];
    if (value.shape.sizes[from] == 1 && (value.dynamic >> from & 1U) == 0) continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

}  // namespace wb::engine
