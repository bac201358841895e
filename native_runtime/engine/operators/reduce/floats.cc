#include "engine/operators/reduce/floats.h"

#include <cmath>

#include "engine/operators/common/work.h"
#include "engine/operators/reduce/columns.h"

namespace wb::engine::WB_ISA {
namespace {

constexpr int kBlock = 4;  // vectors of a column block

struct Finish {
  ReduceFn fn;
  float count, free;  // elements; elements less the correction

  Finish(const RunContext& context, const ReduceLayout& layout)
      : fn(context.node.attributes.reduce),
        count(static_cast<float>(layout.count)),
        free(
            static_cast<float>(std::max(0.0, static_cast<double>(layout.count) - context.node.attributes.correction))) {
  }

  [[gnu::always_inline]] Floats operator()(Floats x) const {
    if (fn == ReduceFn::Mean) return x / count;
    if (fn == ReduceFn::Variance) return x / free;
    return fn == ReduceFn::L2 ? sqrt(x) : x;
  }
};

// ---- the innermost dimension is reduced

template <typename F>
float fold_output(const F& f, const float* p, const ReduceLayout& layout) {
  Floats total = splat(f.start);
  const std::int64_t runs = layout.reduced.count();
  for (std::int64_t r = 0; r < runs; ++r) {
    total = f.join(total, fold_run(f, p + layout.reduced.offset(r), layout.inner));
  }
  return fold_lanes(f, total);
}

template <typename F>
void reduce_rows(const RunContext& context, const ReduceLayout& layout, float* out) {
  const auto* in = context.operands.inputs[0].as<const float>();
  const Finish finish(context, layout);
  const std::int64_t work = layout.outputs * layout.count;
  split(context.pool, layout.outputs, work, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* p = in + layout.kept.offset(i);
      float total = 0;
      if constexpr (requires(F f) { f.mean; }) {
        const float mean = fold_output(SumFold{}, p, layout) / static_cast<float>(layout.count);
        F f;
        f.mean = splat(mean);
        total = fold_output(f, p, layout);
      } else {
        total = fold_output(F{}, p, layout);
      }
      out[i] = finish(splat(total))[0];
    }
  });
}

// ---- the innermost dimension is kept

template <int kVectors, typename F>
void reduce_block(const float* p, const ColumnRows& rows, int last, const ReduceLayout& layout, const Finish& finish,
                  float* out) {
  F folds[kVectors];
  Floats totals[kVectors];
  if constexpr (requires(F f) { f.mean; }) {
    const SumFold sums[kVectors] = {};
    fold_columns(sums, p, rows, last, totals);
    for (int v = 0; v < kVectors; ++v) folds[v].mean = totals[v] / static_cast<float>(layout.count);
  }
  fold_columns(folds, p, rows, last, totals);
  for (int v = 0; v + 1 < kVectors; ++v) store(out + v * kFloats, finish(totals[v]));
  const Floats tail = finish(totals[kVectors - 1]);
  if (last == kFloats) {
    store(out + (kVectors - 1) * kFloats, tail);
  } else {
    store_first(out + (kVectors - 1) * kFloats, tail, last);
  }
}

template <typename F>
void reduce_columns(const RunContext& context, const ReduceLayout& layout, float* out) {
  const auto* in = context.operands.inputs[0].as<const float>();
  const Finish finish(context, layout);
  const ColumnRows rows(layout.reduced);
  constexpr std::int64_t kColumns = kBlock * kFloats;
  const std::int64_t blocks = (layout.inner + kColumns - 1) / kColumns;
  const std::int64_t work = layout.outputs * layout.count;
  split(context.pool, layout.kept.count() * blocks, work, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t col = i % blocks * kColumns;
      const float* p = in + layout.kept.offset(i / blocks) + col;
      float* to = out + i / blocks * layout.inner + col;
      const auto cols = static_cast<int>(std::min(kColumns, layout.inner - col));
      const int vectors = (cols + kFloats - 1) / kFloats;
      const int last = cols - (vectors - 1) * kFloats;
      switch (vectors) {
        case 1: reduce_block<1, F>(p, rows, last, layout, finish, to); break;
        case 2: reduce_block<2, F>(p, rows, last, layout, finish, to); break;
        case 3: reduce_block<3, F>(p, rows, last, layout, finish, to); break;
        default: reduce_block<4, F>(p, rows, last, layout, finish, to); break;
      }
    }
  });
}

template <typename F>
void reduce_with(const RunContext& context, const ReduceLayout& layout, float* out) {
  if (layout.inner_reduced) {
    reduce_rows<F>(context, layout, out);
  } else {
    reduce_columns<F>(context, layout, out);
  }
}

}  // namespace

void reduce_floats(const RunContext& context, const ReduceLayout& layout, float* out) {
  switch (context.node.attributes.reduce) {
    case ReduceFn::Sum:
    case ReduceFn::Mean: return reduce_with<SumFold>(context, layout, out);
    case ReduceFn::Max: return reduce_with<MaxFold>(context, layout, out);
    case ReduceFn::Min: return reduce_with<MinFold>(context, layout, out);
    case ReduceFn::Prod: return reduce_with<ProdFold>(context, layout, out);
    case ReduceFn::Any: return reduce_with<AnyFold>(context, layout, out);
    case ReduceFn::All: return reduce_with<AllFold>(context, layout, out);
    case ReduceFn::Variance: return reduce_with<DeviationFold>(context, layout, out);
    case ReduceFn::L1: return reduce_with<L1Fold>(context, layout, out);
    case ReduceFn::L2: return reduce_with<L2Fold>(context, layout, out);
  }
}

}  // namespace wb::engine::WB_ISA
