// GroupNorm over images whose channels stand side by side: sums down the columns, then over the columns of each group.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/names.h"
#include "engine/operators/common/epilogue.h"
#include "engine/operators/common/work.h"
#include "engine/operators/reduce/columns.h"

namespace wb::engine::WB_ISA {
namespace {

constexpr int kBlock = 4;  // vectors of a column block
// Channels that one thread takes at least, if it can: less would read scattered pieces of cache lines.
constexpr std::int64_t kSlab = 64;

struct Sizes {
  std::int64_t batch = 0, positions = 1, channels = 0, group = 0;  // group: channels of one
  std::int64_t slab = 0;                                           // channels of a part, whole groups

  explicit Sizes(const Shape& shape, std::int64_t groups)
      : batch(shape.sizes[0]), channels(shape.sizes[shape.rank - 1]) {
    for (int d = 1; d + 1 < shape.rank; ++d) positions *= shape.sizes[d];
    group = channels / groups;
    if (group == 0) return;
    slab = (kSlab + group - 1) / group * group;
    // Rather whole vectors, if few more channels make them.
    for (std::int64_t more = slab; more <= 2 * kSlab; more += group) {
      if (more % kFloats != 0) continue;
      slab = more;
      break;
    }
    slab = std::min(channels, slab);
  }
};

// folds[v] of the columns of vector v; `means`: what they fold around.
template <int kVectors>
void sum_block(const float* p, const ColumnRows& rows, int last, const float* means, float* sums) {
  Floats totals[kVectors];
  if (means == nullptr) {
    const SumFold folds[kVectors] = {};
    fold_columns(folds, p, rows, last, totals);
  } else {
    DeviationFold folds[kVectors];
    for (int v = 0; v < kVectors; ++v) folds[v].mean = load(means + v * kFloats);
    fold_columns(folds, p, rows, last, totals);
  }
  for (int v = 0; v < kVectors; ++v) store(sums + v * kFloats, totals[v]);
}

// `means` and `sums` are whole vectors long.
void sum_columns(const float* p, const ColumnRows& rows, std::int64_t cols, const float* means, float* sums) {
  constexpr std::int64_t kColumns = kBlock * kFloats;
  std::int64_t c = 0;
  for (; c + kColumns <= cols; c += kColumns) {
    sum_block<kBlock>(p + c, rows, kFloats, means == nullptr ? nullptr : means + c, sums + c);
  }
  if (c == cols) return;
  const auto vectors = static_cast<int>((cols - c + kFloats - 1) / kFloats);
  const auto last = static_cast<int>(cols - c - (vectors - 1) * kFloats);
  const float* around = means == nullptr ? nullptr : means + c;
  switch (vectors) {
    case 1: return sum_block<1>(p + c, rows, last, around, sums + c);
    case 2: return sum_block<2>(p + c, rows, last, around, sums + c);
    case 3: return sum_block<3>(p + c, rows, last, around, sums + c);
    default: return sum_block<4>(p + c, rows, last, around, sums + c);
  }
}

// Each column's value becomes the sum over the columns of its group, times `factor`.
void sum_groups(float* sums, std::int64_t cols, std::int64_t group, float factor) {
  for (std::int64_t c = 0; c < cols; c += group) {
    float total = 0;
    for (std::int64_t j = 0; j < group; ++j) total += sums[c + j];
    std::fill_n(sums + c, group, total * factor);
  }
}

struct Slab {
  const Sizes& sizes;
  const float *weight, *bias;  // null: 1 and 0
  float eps;
  float *means, *scales, *shifts;  // of each channel of the slab

  void run(const float* p, float* out, std::int64_t cols, std::int64_t channel) const {
    Extents down;
    down.push(sizes.positions, sizes.channels);
    const ColumnRows rows(down);
    const float factor = 1.0F / static_cast<float>(sizes.positions * sizes.group);
    sum_columns(p, rows, cols, nullptr, means);
    sum_groups(means, cols, sizes.group, factor);
    sum_columns(p, rows, cols, means, scales);
    sum_groups(scales, cols, sizes.group, factor);
    for (std::int64_t c = 0; c < cols; ++c) {
      scales[c] = 1.0F / std::sqrt(scales[c] + eps);
      if (weight != nullptr) scales[c] *= weight[channel + c];
      shifts[c] = bias == nullptr ? 0.0F : bias[channel + c];
    }
    for (std::int64_t r = 0; r < sizes.positions; ++r) apply(p + r * sizes.channels, out + r * sizes.channels, cols);
  }

  void apply(const float* p, float* out, std::int64_t cols) const {
    std::int64_t c = 0;
    for (; c + kFloats <= cols; c += kFloats) {
      store(out + c, fma(load(p + c) - load(means + c), load(scales + c), load(shifts + c)));
    }
    if (c < cols) {
      const auto rest = static_cast<int>(cols - c);
      store_first(out + c, fma(load_first(p + c, rest) - load(means + c), load(scales + c), load(shifts + c)), rest);
    }
  }
};

// Floats of scratch memory that a thread needs for one of its three rows.
std::int64_t padded(const Sizes& sizes) { return (sizes.slab + kFloats - 1) / kFloats * kFloats; }

Error group_prepare(PrepareContext& context) {
  for (std::uint32_t k = 0; k < context.operands.input_count; ++k) {
    const TensorView& input = context.operands.inputs[k];
    if (!input.present || input.dtype == ScalarType::Float) continue;
    return context.setup.fail(Error::NotSupported, "group norm: input %u is of %s, expected float32", k,
                              name_of(input.dtype));
  }
  return Error::Ok;
}

Error group_shape(ShapeContext& context) {
  const Sizes sizes(context.operands.inputs[0].shape, context.node.attributes.groups);
  context.scratch = static_cast<std::size_t>(context.threads * 3 * padded(sizes)) * sizeof(float);
  return Error::Ok;
}

void group_run(const RunContext& context) {
  const Operands& operands = context.operands;
  const auto optional = [&](std::uint32_t k) {
    return k < operands.input_count && operands.inputs[k].present ? operands.inputs[k].as<const float>() : nullptr;
  };
  const Sizes sizes(operands.inputs[0].shape, context.node.attributes.groups);
  const auto* in = operands.inputs[0].as<const float>();
  auto* out = operands.outputs[0].as<float>();
  const std::int64_t numel = sizes.batch * sizes.positions * sizes.channels;
  if (numel == 0) return;
  const std::int64_t slabs = (sizes.channels + sizes.slab - 1) / sizes.slab;
  split(context.pool, sizes.batch * slabs, numel * 3, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* memory = reinterpret_cast<float*>(context.scratch) + thread * 3 * padded(sizes);
    const Slab slab{sizes,
                    optional(1),
                    optional(2),
                    static_cast<float>(context.node.attributes.eps),
                    memory,
                    memory + padded(sizes),
                    memory + 2 * padded(sizes)};
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t channel = i % slabs * sizes.slab;
      const std::int64_t first = i / slabs * sizes.positions * sizes.channels + channel;
      slab.run(in + first, out + first, std::min(sizes.slab, sizes.channels - channel), channel);
    }
  });
  const Epilogue epilogue(context);
  if (!epilogue.empty()) epilogue.apply_all(out);
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(normalization_group_norm, {Op::GroupNorm, group_prepare, group_shape, group_run, epilogue_fuses})
