// How operators share their work among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/graph.h"
#include "engine/pool.h"

namespace wb::engine::WB_ISA {

// Work is counted in elements that are read, changed a little and written; a core does about eight in a nanosecond.
// Below this it is done before another thread has woken.
inline constexpr std::int64_t kSmallWork = 160'000;

// What a step costs, in such elements.
[[nodiscard]] inline int cost_of(Fn fn) {
  switch (fn) {
    case Fn::Sin:
    case Fn::Cos:
    case Fn::Tan:
    case Fn::Pow:
    case Fn::PowScalar:
    case Fn::Log1p:
    case Fn::Gelu:
    case Fn::GeluTanh:
    case Fn::Erf:
    case Fn::Mish:
    case Fn::Softplus: return 10;
    case Fn::Exp:
    case Fn::Expm1:
    case Fn::Log:
    case Fn::Tanh:
    case Fn::Sigmoid:
    case Fn::Silu:
    case Fn::Elu: return 5;
    case Fn::Asin:
    case Fn::Acos:
    case Fn::Atan:
    case Fn::Sinh:
    case Fn::Cosh:
    case Fn::Atan2:
    case Fn::Fmod:
    case Fn::Remainder: return 40;
    default: return 1;
  }
}

// f(begin, end, thread) for parts of [0, count) that together are all of it; in one part when `work` is little.
template <typename F>
void split(Pool& pool, std::int64_t count, std::int64_t work, F&& f) {
  if (count <= 0) return;
  const int threads = pool.threads();
  if (threads == 1 || work < kSmallWork || count == 1) {
    f(std::int64_t{0}, count, 0);
    return;
  }
  // Some parts more than threads, for cores that others use too.
  const std::int64_t parts = std::min<std::int64_t>(count, std::int64_t{4} * threads);
  pool.parallel(parts, [&](std::int64_t i, int thread) { f(count * i / parts, count * (i + 1) / parts, thread); });
}

}  // namespace wb::engine::WB_ISA
