// The methods of strided copies.
#include "kernels/common/strided_copy.h"

#include <cstring>

namespace wb::kernels::WB_ISA {
namespace {

struct Bits128 {
  std::uint64_t low, high;
};

constexpr std::int64_t kTile = 16;  // elements a side of a transposed tile

// to[i][j] = from[j][i] for i in [0, rows), j in [0, columns): the destination is dense along j, the source along i.
template <typename T>
void transpose(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t rows,
               std::int64_t columns) {
  for (std::int64_t i0 = 0; i0 < rows; i0 += kTile) {
    const std::int64_t i1 = i0 + kTile < rows ? i0 + kTile : rows;
    for (std::int64_t j0 = 0; j0 < columns; j0 += kTile) {
      const std::int64_t j1 = j0 + kTile < columns ? j0 + kTile : columns;
      if (i1 - i0 == kTile && j1 - j0 == kTile) {
        // Whole tiles go through a buffer: both sides are read and written by rows.
        T tile[kTile][kTile];
        for (std::int64_t j = 0; j < kTile; ++j) {
          const T* row = reinterpret_cast<const T*>(from + (j0 + j) * from_step) + i0;
          for (std::int64_t i = 0; i < kTile; ++i) tile[j][i] = row[i];
        }
        for (std::int64_t i = 0; i < kTile; ++i) {
          T* row = reinterpret_cast<T*>(to + (i0 + i) * to_step) + j0;
          for (std::int64_t j = 0; j < kTile; ++j) row[j] = tile[j][i];
        }
      } else {
        for (std::int64_t i = i0; i < i1; ++i) {
          T* row = reinterpret_cast<T*>(to + i * to_step);
          for (std::int64_t j = j0; j < j1; ++j) row[j] = reinterpret_cast<const T*>(from + j * from_step)[i];
        }
      }
    }
  }
}

template <typename T>
void copy_elements(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t n) {
  if (to_step == static_cast<std::int64_t>(sizeof(T))) {
    T* out = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < n; ++i) out[i] = *reinterpret_cast<const T*>(from + i * from_step);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(to + i * to_step) = *reinterpret_cast<const T*>(from + i * from_step);
    }
  }
}

template <typename T>
void fill_elements(const std::byte* from, std::byte* to, std::int64_t n) {
  const T value = *reinterpret_cast<const T*>(from);
  T* out = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i) out[i] = value;
}

template <typename Call>
void for_size(std::uint8_t size, Call call) {
  switch (size) {
    case 1: call(std::uint8_t{}); break;
    case 2: call(std::uint16_t{}); break;
    case 4: call(std::uint32_t{}); break;
    case 8: call(std::uint64_t{}); break;
    default: call(Bits128{}); break;
  }
}

// Calls `inner(from, to)` at every position of the dimensions that are not in `inner_mask`.
template <typename Inner>
void for_each(const CopyPlan& plan, unsigned inner_mask, const std::byte* from, std::byte* to, Inner inner) {
  int dims[kMaxRegion];
  int count = 0;
  for (int d = plan.rank - 1; d >= 0; --d) {
    if ((inner_mask >> d & 1U) == 0) dims[count++] = d;
  }
  std::int64_t index[kMaxRegion] = {};
  while (true) {
    inner(from, to);
    int k = 0;
    for (; k < count; ++k) {
      const int d = dims[k];
      from += plan.from[d];
      to += plan.to[d];
      if (++index[k] < plan.sizes[d]) break;
      from -= plan.from[d] * plan.sizes[d];
      to -= plan.to[d] * plan.sizes[d];
      index[k] = 0;
    }
    if (k == count) return;
  }
}

// Sorts by destination stride, drops dimensions of size 1, merges neighbours. False when the region is empty.
bool order(const Region& region, std::int64_t from_element, std::int64_t to_element, CopyPlan* plan) {
  int dims[kMaxRegion];
  int count = 0;
  for (int d = 0; d < region.rank; ++d) {
    if (region.sizes[d] == 0) return false;
    if (region.sizes[d] == 1) continue;
    int at = count++;
    for (; at > 0 && region.to[dims[at - 1]] < region.to[d]; --at) dims[at] = dims[at - 1];
    dims[at] = d;
  }
  plan->rank = 0;
  for (int k = 0; k < count; ++k) {
    const int d = dims[k];
    const std::int64_t from = region.from[d] * from_element;
    const std::int64_t to = region.to[d] * to_element;
    const int last = plan->rank - 1;
    if (last >= 0 && plan->from[last] == from * region.sizes[d] && plan->to[last] == to * region.sizes[d]) {
      plan->sizes[last] *= region.sizes[d];
      plan->from[last] = from;
      plan->to[last] = to;
    } else {
      plan->sizes[plan->rank] = region.sizes[d];
      plan->from[plan->rank] = from;
      plan->to[plan->rank++] = to;
    }
  }
  if (plan->rank == 0) {
    plan->sizes[0] = 1;
    plan->from[0] = from_element;
    plan->to[0] = to_element;
    plan->rank = 1;
  }
  return true;
}

void run_runs(const CopyPlan& plan, const std::byte* from, std::byte* to) {
  const int inner = plan.rank - 1;
  const auto bytes = static_cast<std::size_t>(plan.sizes[inner] * plan.element);
  if (plan.rank == 1) {
    std::memmove(to, from, bytes);
    return;
  }
  if (bytes == 4 || bytes == 8 || bytes == 16) {  // no calls for tiny runs
    for_size(static_cast<std::uint8_t>(bytes), [&](auto bits) {
      using T = decltype(bits);
      const int next = inner - 1;
      for_each(plan, 3U << next, from, to, [&](const std::byte* f, std::byte* t) {
        for (std::int64_t i = 0; i < plan.sizes[next]; ++i) {
          std::memcpy(t + i * plan.to[next], f + i * plan.from[next], sizeof(T));
        }
      });
    });
    return;
  }
  for_each(plan, 1U << inner, from, to, [&](const std::byte* f, std::byte* t) { std::memcpy(t, f, bytes); });
}

void run_convert(const CopyPlan& plan, const std::byte* from, std::byte* to) {
  alignas(64) std::byte block[kBlock * 8];
  const int inner = plan.rank - 1;
  const std::int64_t n = plan.sizes[inner];
  const std::int64_t from_stride = plan.from[inner] / plan.from_element;
  const std::int64_t to_stride = plan.to[inner] / plan.element;
  for_each(plan, 1U << inner, from, to, [&](const std::byte* f, std::byte* t) {
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t count = n - begin < kBlock ? n - begin : kBlock;
      plan.load(block, f + begin * plan.from[inner], from_stride, count);
      plan.store(t + begin * plan.to[inner], to_stride, block, count);
    }
  });
}

}  // namespace

void plan_copy(const Region& region, std::size_t element, CopyPlan* plan) {
  const auto size = static_cast<std::int64_t>(element);
  plan->element = plan->from_element = static_cast<std::uint8_t>(element);
  plan->method = CopyPlan::Method::Empty;
  if (!order(region, size, size, plan)) return;
  const int inner = plan->rank - 1;
  plan->method = CopyPlan::Method::Elements;
  if (plan->to[inner] != size) return;
  if (plan->from[inner] == size) {
    plan->method = CopyPlan::Method::Runs;
  } else if (plan->from[inner] == 0) {
    plan->method = CopyPlan::Method::Fill;
  } else {
    for (int d = inner - 1; d >= 0; --d) {
      if (plan->from[d] != size || plan->sizes[d] < 4) continue;
      plan->tile = d;
      plan->method = CopyPlan::Method::Transpose;
      return;
    }
  }
}

bool can_convert(ScalarType from, ScalarType to) {
  return (from == to && is_valid(from)) || (is_computable(from) && is_computable(to));
}

void plan_convert(const Region& region, ScalarType from, ScalarType to, CopyPlan* plan) {
  if (from == to) {
    plan_copy(region, element_size(from), plan);
    return;
  }
  plan->from_element = static_cast<std::uint8_t>(element_size(from));
  plan->element = static_cast<std::uint8_t>(element_size(to));
  plan->lane = cast_lane(from, to);
  plan->load = find_load(from, plan->lane);
  plan->store = find_store(to, plan->lane);
  plan->method =
      order(region, plan->from_element, plan->element, plan) ? CopyPlan::Method::Convert : CopyPlan::Method::Empty;
}

void run_copy(const CopyPlan& plan, const void* source, void* destination) {
  const auto* from = static_cast<const std::byte*>(source);
  auto* to = static_cast<std::byte*>(destination);
  const int inner = plan.rank - 1;
  switch (plan.method) {
    case CopyPlan::Method::Empty: return;
    case CopyPlan::Method::Runs: run_runs(plan, from, to); return;
    case CopyPlan::Method::Convert: run_convert(plan, from, to); return;
    case CopyPlan::Method::Fill:
      for_size(plan.element, [&](auto bits) {
        for_each(plan, 1U << inner, from, to,
                 [&](const std::byte* f, std::byte* t) { fill_elements<decltype(bits)>(f, t, plan.sizes[inner]); });
      });
      return;
    case CopyPlan::Method::Elements:
      for_size(plan.element, [&](auto bits) {
        for_each(plan, 1U << inner, from, to, [&](const std::byte* f, std::byte* t) {
          copy_elements<decltype(bits)>(f, plan.from[inner], t, plan.to[inner], plan.sizes[inner]);
        });
      });
      return;
    case CopyPlan::Method::Transpose:
      for_size(plan.element, [&](auto bits) {
        for_each(plan, 1U << inner | 1U << plan.tile, from, to, [&](const std::byte* f, std::byte* t) {
          transpose<decltype(bits)>(f, plan.from[inner], t, plan.to[plan.tile], plan.sizes[plan.tile],
                                    plan.sizes[inner]);
        });
      });
      return;
  }
}

Region pair_tensors(const Tensor& from, const Tensor& to) {
  Region region;
  for (int d = 0; d < to.rank; ++d) region.add(to.sizes[d], from.strides[d], to.strides[d]);
  return region;
}

extern const KernelTable table_common_strided_copy;
const KernelTable table_common_strided_copy = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
