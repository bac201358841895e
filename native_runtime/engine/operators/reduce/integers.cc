// Reductions that are not of floats to floats: through 64-bit integers, a block at a time.
#include <algorithm>

#include "engine/operators/common/work.h"
#include "engine/operators/reduce/floats.h"
#include "kernels/common/convert.h"

namespace wb::engine::WB_ISA {
namespace {

using Number = std::int64_t;
using kernels::WB_ISA::Lane;

constexpr std::int64_t kBlock = 256;

Number start_of(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::Prod:
    case ReduceFn::All: return 1;
    case ReduceFn::Max: return INT64_MIN;
    case ReduceFn::Min: return INT64_MAX;
    default: return 0;
  }
}

Number take(ReduceFn fn, Number acc, Number x) {
  switch (fn) {
    case ReduceFn::Prod: return static_cast<Number>(static_cast<std::uint64_t>(acc) * static_cast<std::uint64_t>(x));
    case ReduceFn::Max: return std::max(acc, x);
    case ReduceFn::Min: return std::min(acc, x);
    case ReduceFn::Any: return acc | Number{x != 0};
    case ReduceFn::All: return acc & Number{x != 0};
    default: return static_cast<Number>(static_cast<std::uint64_t>(acc) + static_cast<std::uint64_t>(x));
  }
}

}  // namespace

bool integers_reduce(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::Mean:
    case ReduceFn::Variance:
    case ReduceFn::L1:
    case ReduceFn::L2: return false;
    default: return true;
  }
}

void reduce_integers(const RunContext& context, const ReduceLayout& layout) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const ReduceFn fn = context.node.attributes.reduce;
  const bool truth = fn == ReduceFn::Any || fn == ReduceFn::All;
  const Lane lane = truth ? Lane::Bool : Lane::I64;  // as Bool, 0.5 is true
  const auto load = kernels::WB_ISA::find_load(in.dtype, lane);
  const auto store = kernels::WB_ISA::find_store(out.dtype, Lane::I64);
  const auto in_size = static_cast<std::int64_t>(element_size(in.dtype));
  const auto out_size = static_cast<std::int64_t>(element_size(out.dtype));
  // An element of the result: its own columns of `reduced`, or a whole innermost run for each of them.
  const std::int64_t columns = layout.inner_reduced ? 1 : layout.inner;
  const std::int64_t run = layout.inner_reduced ? layout.inner : 1;
  const std::int64_t runs = layout.reduced.count();
  split(context.pool, layout.outputs, layout.outputs * layout.count * 4,
        [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t base = layout.kept.offset(i / columns) + i % columns;
            Number acc = start_of(fn);
            for (std::int64_t r = 0; r < runs; ++r) {
              for (std::int64_t at = 0; at < run; at += kBlock) {
                const std::int64_t n = std::min(kBlock, run - at);
                const std::byte* from = in.as<const std::byte>() + (base + layout.reduced.offset(r) + at) * in_size;
                if (truth) {
                  bool block[kBlock];
                  load(block, from, 1, n);
                  for (std::int64_t j = 0; j < n; ++j) acc = take(fn, acc, block[j]);
                } else {
                  Number block[kBlock];
                  load(block, from, 1, n);
                  for (std::int64_t j = 0; j < n; ++j) acc = take(fn, acc, block[j]);
                }
              }
            }
            store(out.as<std::byte>() + i * out_size, 1, &acc, 1);
          }
        });
}

}  // namespace wb::engine::WB_ISA
