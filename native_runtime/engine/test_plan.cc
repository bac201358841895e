// Plans of random lifetimes: no overlap, and not much more than what is in use at once.
#include <algorithm>

#include "engine/plan.h"
#include "engine/test_support.h"

namespace wb::engine::test {
namespace {

std::size_t most_in_use(const std::vector<Buffer>& buffers, std::uint32_t steps) {
  std::size_t most = 0;
  for (std::uint32_t s = 0; s < steps; ++s) {
    std::size_t sum = 0;
    for (const Buffer& buffer : buffers) {
      if (buffer.first <= s && s <= buffer.last) sum += (buffer.bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    most = std::max(most, sum);
  }
  return most;
}

bool overlap(const Buffer& a, const Buffer& b) {
  if (a.bytes == 0 || b.bytes == 0 || a.last < b.first || b.last < a.first) return false;
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

void test_plan() {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const auto steps = static_cast<std::uint32_t>(1 + random.below(30));
    std::vector<Buffer> buffers(static_cast<std::size_t>(random.below(40)));
    for (Buffer& buffer : buffers) {
      buffer.bytes = static_cast<std::size_t>(random.below(4) == 0 ? random.below(100'000) : random.below(500));
      buffer.first = static_cast<std::uint32_t>(random.below(steps));
      buffer.last = static_cast<std::uint32_t>(std::min<std::int64_t>(steps - 1, buffer.first + random.below(6)));
    }
    const std::size_t total = plan_memory(buffers);
    const std::size_t least = most_in_use(buffers, steps);
    CHECK(total >= least && total <= 2 * least + 4096);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      CHECK(buffers[i].offset % kAlignment == 0);
      CHECK(buffers[i].offset + buffers[i].bytes <= total);
      for (std::size_t j = 0; j < i; ++j) CHECK(!overlap(buffers[i], buffers[j]));
    }
  }
}

}  // namespace wb::engine::test
