// The engine of reductions.
#include "kernels/reduction/reduce.h"

namespace wb::kernels::WB_ISA {
namespace {

// Calls fold(offset of a position) for all positions of the reduced dimensions but the innermost `skip`.
template <typename Fold>
void for_reduced(const ReduceLayout& layout, int skip, Fold fold) {
  const int dims = layout.reduced - skip;
  std::int64_t index[kMaxRank] = {};
  std::int64_t offset = 0;
  while (true) {
    fold(offset);
    int d = dims - 1;
    for (; d >= 0; --d) {
      offset += layout.reduced_from[d];
      if (++index[d] < layout.reduced_sizes[d]) break;
      offset -= layout.reduced_from[d] * layout.reduced_sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

struct Buffers {
  alignas(64) std::byte accumulators[kBlock * kMaxAccumulator];
  alignas(64) std::byte block[kBlock * 8];
};

void fold_row(const ReduceRun& run, void* accumulator, const std::byte* from, std::int64_t n, Buffers& buffers) {
  if (run.load == nullptr) {
    run.op->row(accumulator, from, n);
    return;
  }
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t count = n - begin < kBlock ? n - begin : kBlock;
    run.load(buffers.block, from + begin * run.from_size, 1, count);
    run.op->row(accumulator, buffers.block, count);
  }
}

void fold_column(const ReduceRun& run, const std::byte* from, std::int64_t n, Buffers& buffers) {
  if (run.load == nullptr) {
    run.op->column(buffers.accumulators, from, n);
    return;
  }
  run.load(buffers.block, from, 1, n);
  run.op->column(buffers.accumulators, buffers.block, n);
}

// Results [0, n) of the innermost kept dimension, from `from` on.
void reduce_chunk(const ReduceLayout& layout, const ReduceRun& run, const std::byte* from, std::byte* to,
                  std::int64_t n, Buffers& buffers) {
  run.op->init(buffers.accumulators, n);
  if (layout.count != 0) {
    if (layout.inner_reduced) {
      const std::int64_t length = layout.reduced_sizes[layout.reduced - 1];
      const std::int64_t step = layout.kept_from[layout.kept - 1] * run.from_size;
      for (std::int64_t j = 0; j < n; ++j) {
        std::byte* accumulator = buffers.accumulators + static_cast<std::size_t>(j) * run.op->accumulator;
        for_reduced(layout, 1, [&](std::int64_t offset) {
          fold_row(run, accumulator, from + j * step + offset * run.from_size, length, buffers);
        });
      }
    } else {
      for_reduced(layout, 0, [&](std::int64_t offset) { fold_column(run, from + offset * run.from_size, n, buffers); });
    }
  }
  run.op->finish(buffers.block, buffers.accumulators, n, static_cast<double>(layout.count), run.parameter);
  run.store(to, layout.kept_to[layout.kept - 1], buffers.block, n);
}

}  // namespace

void reduced_shape(const Tensor& self, std::uint32_t mask, bool keepdim, Shape* shape) {
  shape->rank = 0;
  for (int d = 0; d < self.rank; ++d) {
    if ((mask >> d & 1U) == 0) {
      shape->sizes[shape->rank++] = self.sizes[d];
    } else if (keepdim) {
      shape->sizes[shape->rank++] = 1;
    }
  }
}

void layout_reduction(const Tensor& self, const Tensor& out, std::uint32_t mask, bool keepdim, ReduceLayout* layout) {
  *layout = ReduceLayout();
  std::int64_t out_strides[kMaxRank];
  for (int d = 0, o = 0; d < self.rank; ++d) {
    const bool reduced = (mask >> d & 1U) != 0;
    out_strides[d] = reduced ? 0 : out.strides[o];
    if (!reduced || keepdim) ++o;
    (reduced ? layout->count : layout->results) *= self.sizes[d];
  }
  int last = -1;  // class of the dimension before: 0 kept, 1 reduced
  for (int i = 0; i < self.rank; ++i) {
    const int d = self.dim_order[i];
    const std::int64_t size = self.sizes[d];
    if (size == 1) continue;
    const int reduced = static_cast<int>(mask >> d & 1U);
    if (reduced == 1) {
      if (last != 1) layout->reduced_sizes[layout->reduced++] = 1;
      layout->reduced_sizes[layout->reduced - 1] *= size;
      layout->reduced_from[layout->reduced - 1] = self.strides[d];
    } else {
      const int k = layout->kept - 1;
      const bool merge = last == 0 && layout->kept_to[k] == out_strides[d] * size;
      if (!merge) layout->kept_sizes[layout->kept++] = 1;
      layout->kept_sizes[layout->kept - 1] *= size;
      layout->kept_from[layout->kept - 1] = self.strides[d];
      layout->kept_to[layout->kept - 1] = out_strides[d];
    }
    last = reduced;
  }
  layout->inner_reduced = last == 1;
  if (layout->kept == 0) {
    layout->kept_sizes[0] = 1;
    layout->kept_from[0] = layout->kept_to[0] = 1;
    layout->kept = 1;
  }
}

void run_reduction(const ReduceLayout& layout, const ReduceRun& run, const void* source, void* destination) {
  if (layout.results == 0) return;
  Buffers buffers;
  const auto* from = static_cast<const std::byte*>(source);
  auto* to = static_cast<std::byte*>(destination);
  const int inner = layout.kept - 1;
  const std::int64_t n = layout.kept_sizes[inner];
  std::int64_t index[kMaxRank] = {};
  while (true) {
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t count = n - begin < kBlock ? n - begin : kBlock;
      reduce_chunk(layout, run, from + begin * layout.kept_from[inner] * run.from_size,
                   to + begin * layout.kept_to[inner] * run.to_size, count, buffers);
    }
    int d = inner - 1;
    for (; d >= 0; --d) {
      from += layout.kept_from[d] * run.from_size;
      to += layout.kept_to[d] * run.to_size;
      if (++index[d] < layout.kept_sizes[d]) break;
      from -= layout.kept_from[d] * layout.kept_sizes[d] * run.from_size;
      to -= layout.kept_to[d] * layout.kept_sizes[d] * run.to_size;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

extern const KernelTable table_reduction_reduce;
const KernelTable table_reduction_reduce = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
