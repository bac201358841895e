#include "executor/copy.h"

#include <cstring>

namespace wb {
namespace {

struct Run {
  std::byte* target;
  const std::byte* source;
};

// Copies the block of dimensions dim_order[level..]; the innermost level goes element by element, or at once where the
// source has no gaps either.
void copy_level(const Tensor& tensor, const std::int64_t* strides, int level, Run run) {
  const std::size_t element = element_size(tensor.dtype);
  if (level == tensor.rank) {
    std::memcpy(run.target, run.source, element);
    return;
  }
  const int dim = tensor.dim_order[level];
  const std::int64_t size = tensor.sizes[dim];
  const std::int64_t source_step = strides[dim] * static_cast<std::int64_t>(element);
  if (level == tensor.rank - 1) {
    if (strides[dim] == 1) {
      std::memcpy(run.target, run.source, static_cast<std::size_t>(size) * element);
      return;
    }
    for (std::int64_t i = 0; i < size; ++i) {
      std::memcpy(run.target + static_cast<std::size_t>(i) * element, run.source + i * source_step, element);
    }
    return;
  }
  const std::int64_t target_step = tensor.strides[dim] * static_cast<std::int64_t>(element);
  for (std::int64_t i = 0; i < size; ++i) {
    copy_level(tensor, strides, level + 1, {run.target + i * target_step, run.source + i * source_step});
  }
}

}  // namespace

void copy_from_strided(const Tensor& target, void* memory, const void* source, const std::int64_t* strides) {
  if (target.numel() == 0) return;
  if (strides == nullptr || has_strides(target, strides)) {
    std::memcpy(memory, source, target.nbytes());
    return;
  }
  copy_level(target, strides, 0, {static_cast<std::byte*>(memory), static_cast<const std::byte*>(source)});
}

bool has_strides(const Tensor& tensor, const std::int64_t* strides) {
  if (tensor.numel() == 0) return true;
  for (int d = 0; d < tensor.rank; ++d) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != strides[d]) return false;
  }
  return true;
}

}  // namespace wb
