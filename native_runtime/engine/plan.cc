#include "engine/plan.h"

#include <algorithm>
#include <vector>

namespace wb::engine {
namespace {

std::size_t round_up(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// `placed` is sorted by offset.
std::size_t find_gap(const std::vector<const Buffer*>& placed, const Buffer& buffer) {
  std::size_t best = SIZE_MAX;
  std::size_t best_gap = SIZE_MAX;
  std::size_t end = 0;  // of what is in use at the same time and stands before
  for (const Buffer* other : placed) {
    if (other->last < buffer.first || other->first > buffer.last) continue;
    if (other->offset > end) {
      const std::size_t gap = other->offset - end;
      if (gap >= round_up(buffer.bytes) && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
    }
    end = std::max(end, other->offset + round_up(other->bytes));
  }
  return best == SIZE_MAX ? end : best;
}

}  // namespace

std::size_t plan_memory(std::span<Buffer> buffers) {
  std::vector<Buffer*> order;
  for (Buffer& buffer : buffers) {
    buffer.offset = 0;
    if (buffer.bytes != 0) order.push_back(&buffer);
  }
  std::ranges::stable_sort(order, [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  std::vector<const Buffer*> placed;
  placed.reserve(order.size());
  std::size_t total = 0;
  for (Buffer* buffer : order) {
    buffer->offset = find_gap(placed, *buffer);
    total = std::max(total, buffer->offset + round_up(buffer->bytes));
    const auto at = std::ranges::upper_bound(placed, buffer->offset, {}, &Buffer::offset);
    placed.insert(at, buffer);
  }
  return total;
}

}  // namespace wb::engine
