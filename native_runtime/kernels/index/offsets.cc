// Index tensors, read and checked.
#include "kernels/index/offsets.h"

namespace wb::kernels::WB_ISA {
namespace {

bool is_mask(const Tensor& index) { return index.dtype == ScalarType::Bool || index.dtype == ScalarType::Byte; }

const Tensor* entry(const TensorListRef& list, std::uint32_t k) {
  return list.items[k]->is_tensor() ? &list.items[k]->tensor() : nullptr;
}

std::int64_t memory_index(const Tensor& tensor, std::int64_t logical) {
  std::int64_t at = 0;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    at += logical % tensor.sizes[d] * tensor.strides[d];
    logical /= tensor.sizes[d];
  }
  return at;
}

std::int64_t count_true(const Tensor& mask) {
  const auto* data = mask.const_data<std::uint8_t>();
  const std::int64_t n = mask.numel();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += data[i] != 0 ? 1 : 0;
  return count;
}

// Adds the places that a mask over dimensions [first, first + rank) names.
void add_mask(const Tensor& self, const Tensor& mask, int first, std::int64_t count, std::int64_t* places) {
  const auto* data = mask.const_data<std::uint8_t>();
  const std::int64_t n = mask.numel();
  std::int64_t k = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (data[memory_index(mask, i)] == 0) continue;
    std::int64_t at = 0;
    std::int64_t logical = i;
    for (int d = mask.rank - 1; d >= 0; --d) {
      at += logical % mask.sizes[d] * self.strides[first + d];
      logical /= mask.sizes[d];
    }
    if (k >= count) return;
    places[k++] += at;
  }
}

template <typename T>
Error add_index(const KernelContext& context, const Tensor& self, const Tensor& index, int dim, const Shape& picked,
                std::int64_t count, std::int64_t* places) {
  const T* data = index.const_data<T>();
  const std::int64_t size = self.sizes[dim];
  const std::int64_t stride = self.strides[dim];
  const bool plain = index.is_contiguous() && index.numel() == count;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = i;
    if (!plain) {
      at = 0;
      std::int64_t logical = i;
      for (int d = picked.rank - 1; d >= 0; --d) {
        const int own = d - (picked.rank - index.rank);
        if (own >= 0 && index.sizes[own] != 1) at += logical % picked.sizes[d] * index.strides[own];
        logical /= picked.sizes[d];
      }
    }
    const std::int64_t value = data[at];
    if (value < -size || value >= size) {
      return context.fail(Error::InvalidArgument, "index %lld is out of range for dimension %d of size %lld",
                          static_cast<long long>(value), dim, static_cast<long long>(size));
    }
    places[i] += (value < 0 ? value + size : value) * stride;
  }
  return Error::Ok;
}

Error broadcast_picked(const KernelContext& context, const TensorListRef& list, Shape* picked) {
  picked->rank = 0;
  for (std::uint32_t k = 0; k < list.size; ++k) {
    const Tensor* index = entry(list, k);
    if (index == nullptr) continue;
    const int rank = is_mask(*index) ? 1 : index->rank;
    for (; picked->rank < rank; ++picked->rank) {
      for (int d = picked->rank; d > 0; --d) picked->sizes[d] = picked->sizes[d - 1];
      picked->sizes[0] = 1;
    }
    for (int d = 0; d < rank; ++d) {
      const auto size = is_mask(*index) ? static_cast<std::int32_t>(count_true(*index)) : index->sizes[d];
      std::int32_t& joint = picked->sizes[picked->rank - rank + d];
      if (joint == 1) {
        joint = size;
      } else if (size != 1 && size != joint) {
        return context.fail(Error::InvalidArgument, "the index tensors can't be broadcast: size %d with %d", size,
                            joint);
      }
    }
  }
  return Error::Ok;
}

}  // namespace

Error check_indices(KernelContext& context, std::uint32_t self, std::uint32_t list_arg) {
  const TensorListRef& list = context.arg(list_arg).payload.tensor_list;
  int used = 0;
  bool any = false;
  for (std::uint32_t k = 0; k < list.size; ++k) {
    const Tensor* index = entry(list, k);
    used += index != nullptr && is_mask(*index) ? index->rank : 1;
    if (index == nullptr) continue;
    any = true;
    const ScalarType type = index->dtype;
    if (type != ScalarType::Long && type != ScalarType::Int && !is_mask(*index)) {
      return context.fail(Error::InvalidType, "argument %u: entry %u: no index of dtype %s", list_arg, k,
                          name_of(type));
    }
  }
  if (!any || used > context.tensor(self).rank) {
    return context.fail(Error::InvalidArgument, "argument %u: indices for %d of %d dimensions", list_arg, used,
                        context.tensor(self).rank);
  }
  return Error::Ok;
}

void request_index_scratch(KernelContext& context, std::uint32_t list_arg) {
  const TensorListRef& list = context.arg(list_arg).payload.tensor_list;
  // The product over each dimension of the largest size bounds what the tensors broadcast to.
  std::int64_t sizes[kMaxRank];
  for (std::int64_t& size : sizes) size = 1;
  for (std::uint32_t k = 0; k < list.size; ++k) {
    const Tensor* index = entry(list, k);
    if (index == nullptr) continue;
    const int rank = is_mask(*index) ? 1 : index->rank;
    for (int d = 0; d < rank; ++d) {
      const std::int64_t size = is_mask(*index) ? index->numel() : index->sizes[d];
      std::int64_t& largest = sizes[kMaxRank - rank + d];
      if (size > largest) largest = size;
    }
  }
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    count = size != 0 && count > (std::int64_t{1} << 40) / size ? std::int64_t{1} << 40 : count * size;
  }
  context.request_scratch(static_cast<std::size_t>(count) * sizeof(std::int64_t));
}

Error read_indices(KernelContext& context, const Tensor& self, std::uint32_t list_arg, Indexing* indexing) {
  const TensorListRef& list = context.arg(list_arg).payload.tensor_list;
  WB_TRY(broadcast_picked(context, list, &indexing->picked));
  indexing->count = indexing->picked.numel();
  if (static_cast<std::size_t>(indexing->count) > context.scratch_size / sizeof(std::int64_t)) {
    return context.fail(Error::OutOfResources, "scratch memory for %lld indices",
                        static_cast<long long>(indexing->count));
  }
  indexing->places = reinterpret_cast<std::int64_t*>(context.scratch);
  for (std::int64_t i = 0; i < indexing->count; ++i) indexing->places[i] = 0;
  indexing->mask = 0;
  int dim = 0;
  for (std::uint32_t k = 0; k < list.size; ++k) {
    const Tensor* index = entry(list, k);
    if (index == nullptr) {
      ++dim;
      continue;
    }
    if (is_mask(*index)) {
      for (int d = 0; d < index->rank; ++d) {
        if (index->sizes[d] != self.sizes[dim + d]) {
          return context.fail(Error::InvalidArgument, "a mask of size %d for dimension %d of size %d", index->sizes[d],
                              dim + d, self.sizes[dim + d]);
        }
      }
      if (count_true(*index) != indexing->count) {
        return context.fail(Error::NotSupported, "a mask that is broadcast with other indices");
      }
      add_mask(self, *index, dim, indexing->count, indexing->places);
      indexing->mask |= ((1U << index->rank) - 1) << dim;
      dim += index->rank;
    } else if (index->dtype == ScalarType::Long) {
      WB_TRY(add_index<std::int64_t>(context, self, *index, dim, indexing->picked, indexing->count, indexing->places));
      indexing->mask |= 1U << dim++;
    } else {
      WB_TRY(add_index<std::int32_t>(context, self, *index, dim, indexing->picked, indexing->count, indexing->places));
      indexing->mask |= 1U << dim++;
    }
  }
  // Neighbours: the set bits of the mask are one run.
  const std::uint32_t low = indexing->mask & (~indexing->mask + 1);
  const bool neighbours = ((indexing->mask + low) & indexing->mask) == 0;
  const int first = indexing->mask == 0 ? 0 : __builtin_ctz(indexing->mask);
  indexing->place = neighbours ? first : 0;
  Shape& result = indexing->result;
  result.rank = 0;
  const auto add_picked = [&] {
    for (int d = 0; d < indexing->picked.rank; ++d) result.sizes[result.rank++] = indexing->picked.sizes[d];
  };
  const int kept = self.rank - __builtin_popcount(indexing->mask);
  if (kept + indexing->picked.rank > kMaxRank) {
    return context.fail(Error::InvalidArgument, "the result would have rank %d", kept + indexing->picked.rank);
  }
  if (indexing->place == 0) add_picked();
  for (int d = 0, seen = 0; d < self.rank; ++d) {
    if ((indexing->mask >> d & 1U) != 0) {
      if (seen++ == 0 && indexing->place != 0) add_picked();
    } else {
      result.sizes[result.rank++] = self.sizes[d];
    }
  }
  return Error::Ok;
}

void plan_indexed_copy(const Tensor& self, const std::int64_t* strides, std::size_t element, bool into_self,
                       Indexing* indexing) {
  const int rank = indexing->picked.rank;
  for (int d = 0; d < rank; ++d) indexing->picked_strides[d] = strides[indexing->place + d];
  indexing->dense = true;
  std::int64_t step = rank > 0 ? strides[indexing->place + rank - 1] : 1;
  indexing->step = step;
  for (int d = rank - 1; d >= 0; --d) {
    indexing->dense = indexing->dense && (indexing->picked.sizes[d] == 1 || indexing->picked_strides[d] == step);
    step *= indexing->picked.sizes[d];
  }
  Region region;
  int at = 0;
  for (int d = 0; d < self.rank; ++d) {
    if ((indexing->mask >> d & 1U) != 0) continue;
    if (at == indexing->place) at += rank;
    const std::int64_t other = strides[at++];
    region.add(self.sizes[d], into_self ? other : self.strides[d], into_self ? self.strides[d] : other);
  }
  plan_copy(region, element, &indexing->copy);
}

std::int64_t place_in_result(const Indexing& indexing, std::int64_t i) {
  if (indexing.dense) return i * indexing.step;
  std::int64_t at = 0;
  for (int d = indexing.picked.rank - 1; d >= 0; --d) {
    at += i % indexing.picked.sizes[d] * indexing.picked_strides[d];
    i /= indexing.picked.sizes[d];
  }
  return at;
}

extern const KernelTable table_index_offsets;
const KernelTable table_index_offsets = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
