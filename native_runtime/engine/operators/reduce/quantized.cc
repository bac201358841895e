#include "engine/operators/reduce/quantized.h"

#include <bit>

#include "engine/names.h"
#include "engine/operators/common/sums.h"
#include "engine/operators/common/work.h"

namespace wb::engine::WB_ISA {
namespace {

constexpr std::int64_t kMostSummed = 1 << 22;  // so that a sum of bytes fits into 32 bits
constexpr std::int64_t kColumns = 512;

bool is_bytes(ScalarType type) { return type == ScalarType::Char || type == ScalarType::Byte; }

// [outer, count, inner] -> [outer, inner]
struct Blocks {
  std::int64_t outer = 1, count = 1, inner = 1;

  Blocks(const Shape& shape, std::uint32_t mask) {
    const int first = std::countr_zero(mask);
    const int last = std::bit_width(mask);
    for (int d = 0; d < shape.rank; ++d) (d < first ? outer : d < last ? count : inner) *= shape.sizes[d];
  }
};

bool are_neighbours(std::uint32_t mask) {
  return mask != 0 && mask >> std::countr_zero(mask) == (1U << std::popcount(mask)) - 1U;
}

template <typename Q>
void run_rows(const Q* x, const Blocks& blocks, std::int64_t begin, std::int64_t end, const SumsTo& to, float divisor) {
  for (std::int64_t r = begin; r < end; ++r) {
    const Q* p = x + r * blocks.count;
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < blocks.count; ++i) sum += p[i];
    to.store(&sum, 1, blocks.count, divisor, r);
  }
}

template <typename Q>
void run_columns(const Q* x, const Blocks& blocks, std::int64_t block, const SumsTo& to, float divisor) {
  const std::int64_t pieces = (blocks.inner + kColumns - 1) / kColumns;
  const std::int64_t at = block % pieces * kColumns;
  const std::int64_t n = std::min(kColumns, blocks.inner - at);
  const std::int64_t outer = block / pieces;
  alignas(64) std::int32_t sums[kColumns] = {};
  const Q* p = x + outer * blocks.count * blocks.inner + at;
  for (std::int64_t i = 0; i < blocks.count; ++i) add_bytes(sums, p + i * blocks.inner, n);
  to.store(sums, n, blocks.count, divisor, outer * blocks.inner + at);
}

template <typename Q>
void run(const RunContext& context) {
  const TensorView& in = context.operands.inputs[0];
  const Blocks blocks(in.shape, context.node.attributes.mask);
  const bool mean = context.node.attributes.reduce == ReduceFn::Mean;
  const float divisor = mean ? static_cast<float>(blocks.count) : 1.0F;
  const SumsTo to(*in.quantization, context.operands.outputs[0]);
  const Q* x = in.as<const Q>();
  const std::int64_t work = in.shape.numel() / 2;
  if (blocks.inner == 1) {
    split(context.pool, blocks.outer, work,
          [&](std::int64_t begin, std::int64_t end, int /*thread*/) { run_rows(x, blocks, begin, end, to, divisor); });
    return;
  }
  const std::int64_t pieces = (blocks.inner + kColumns - 1) / kColumns;
  split(context.pool, blocks.outer * pieces, work, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t block = begin; block < end; ++block) run_columns(x, blocks, block, to, divisor);
  });
}

}  // namespace

bool quantized_reduce(const Graph& graph, const Node& node) {
  const Value& in = graph.values[node.inputs[0]];
  const Value& out = graph.values[node.outputs[0]];
  const Attributes& a = node.attributes;
  const auto whole = [](const Value& value) {
    return value.quantization.kind == Quantization::Kind::PerTensor && value.quantization.bits == 8 &&
           is_bytes(value.dtype);
  };
  if (!node.post.empty() || !whole(in) || !(whole(out) || out.dtype == ScalarType::Float)) return false;
  if ((a.reduce != ReduceFn::Mean && a.reduce != ReduceFn::Sum) || !are_neighbours(a.mask)) return false;
  std::int64_t count = 1;
  for (int d = 0; d < in.shape.rank; ++d) {
    if ((a.mask >> d & 1U) != 0) count *= in.shape.sizes[d];
  }
  return count > 0 && count <= kMostSummed && in.dynamic == 0;
}

Error quantized_reduce_prepare(PrepareContext& context) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const bool writes = out.dtype == ScalarType::Float || (is_bytes(out.dtype) && out.quantization != nullptr);
  if (is_bytes(in.dtype) && writes && are_neighbours(context.node.attributes.mask)) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "reduction of quantized %s to %s", name_of(in.dtype),
                            name_of(out.dtype));
}

void quantized_reduce_run(const RunContext& context) {
  if (context.operands.inputs[0].dtype == ScalarType::Char) {
    run<std::int8_t>(context);
  } else {
    run<std::uint8_t>(context);
  }
}

}  // namespace wb::engine::WB_ISA
