// MaxPool and AvgPool. Either each window by itself, over vectors of channels; or first down the image's columns into a
// row, then along it, which takes kernel_h + kernel_w steps an element instead of their product, and needs no channels
// to fill its vectors.
#include <iterator>
#include <new>

#include "engine/names.h"
#include "engine/operators/common/epilogue.h"
#include "engine/operators/common/work.h"
#include "engine/operators/pooling/pooling.h"
#include "engine/operators/pooling/quantized.h"
#include "engine/operators/reduce/folds.h"

namespace wb::engine::WB_ISA {
namespace {

// Elements p + y row + x col for y < rows and x < cols, each of them the first of n that go side by side.
struct Patch {
  const float* p;
  std::int64_t rows, row, cols, col;
};

// f(vectors of an element) for each element of the patch.
template <int kVectors, bool kWhole, typename F>
[[gnu::always_inline]] inline void each_tap(const Patch& patch, std::int64_t at, int last, F f) {
  for (std::int64_t y = 0; y < patch.rows; ++y) {
    const float* p = patch.p + y * patch.row + at;
    for (std::int64_t x = 0; x < patch.cols; ++x, p += patch.col) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) f(v, kWhole ? load(p + v * kFloats) : load_first(p + v * kFloats, last));
    }
  }
}

template <int kVectors, bool kWhole, typename F>
[[gnu::always_inline]] inline void fold_taps(const F& f, const Patch& patch, std::int64_t at, int last,
                                             Floats (&acc)[kVectors]) {
  for (int v = 0; v < kVectors; ++v) acc[v] = splat(f.start);
  each_tap<kVectors, kWhole>(patch, at, last, [&](int v, Floats x) { acc[v] = f.take(acc[v], x); });
}
template <int kVectors, bool kWhole>
[[gnu::always_inline]] inline void fold_taps(const MaxFold& f, const Patch& patch, std::int64_t at, int last,
                                             Floats (&acc)[kVectors]) {
  QuickMax quick[kVectors];
  each_tap<kVectors, kWhole>(patch, at, last, [&](int v, Floats x) { quick[v].take(x); });
  for (int v = 0; v < kVectors; ++v) acc[v] = quick[v].best;
  if (!is_doubtful(quick)) return;
  for (int v = 0; v < kVectors; ++v) acc[v] = splat(f.start);
  each_tap<kVectors, kWhole>(patch, at, last, [&](int v, Floats x) { acc[v] = f.take(acc[v], x); });
}

template <int kVectors, bool kWhole, typename F>
[[gnu::always_inline]] inline void fold_vectors(const Patch& patch, std::int64_t at, int last, float* out,
                                                float divisor) {
  Floats acc[kVectors];
  fold_taps<kVectors, kWhole>(F{}, patch, at, last, acc);
  for (int v = 0; v < kVectors; ++v) {
    const Floats result = divisor == 1.0F ? acc[v] : acc[v] / divisor;
    if (kWhole) {
      store(out + at + v * kFloats, result);
    } else {
      store_first(out + at + v * kFloats, result, last);
    }
  }
}

template <typename F>
void fold_patch(const Patch& patch, std::int64_t n, float* out, float divisor) {
  std::int64_t i = 0;
  for (; i + 4 * kFloats <= n; i += 4 * kFloats) fold_vectors<4, true, F>(patch, i, kFloats, out, divisor);
  for (; i + kFloats <= n; i += kFloats) fold_vectors<1, true, F>(patch, i, kFloats, out, divisor);
  if (i < n) fold_vectors<1, false, F>(patch, i, static_cast<int>(n - i), out, divisor);
}

template <typename F>
void pool_directly(const Pooling& pool, const float* image, std::int64_t oy, float* out) {
  const Taps y(pool.rows, oy);
  const std::int64_t line = pool.columns.size * pool.channels;
  for (std::int64_t ox = 0; ox < pool.out_w; ++ox) {
    const Taps x(pool.columns, ox);
    const Patch patch{image + y.first * line + x.first * pool.channels, y.count, pool.rows.dilation * line, x.count,
                      pool.columns.dilation * pool.channels};
    fold_patch<F>(patch, pool.channels, out + ox * pool.channels, pool.divisor_of(y, x));
  }
}

template <typename F>
void pool_by_parts(const Pooling& pool, const float* image, std::int64_t oy, float* out, float* row) {
  const Taps y(pool.rows, oy);
  const std::int64_t line = pool.columns.size * pool.channels;
  const std::int64_t step = pool.columns.dilation * pool.channels;
  fold_patch<F>({image + y.first * line, y.count, pool.rows.dilation * line, 1, 0}, line, row, 1.0F);
  for (std::int64_t ox = 0; ox < pool.out_w;) {
    const Taps x(pool.columns, ox);
    // Whole windows that begin side by side are one run.
    std::int64_t run = 1;
    if (pool.columns.stride == 1 && x.count == pool.columns.kernel) {
      const std::int64_t high = std::min(pool.columns.size, pool.columns.size + pool.columns.after);
      const std::int64_t room = high - 1 - (x.first + (pool.columns.kernel - 1) * pool.columns.dilation);
      run = std::min(pool.out_w - ox, room + 1);
    }
    const Patch patch{row + x.first * pool.channels, y.count == 0 ? 0 : 1, 0, x.count, step};
    fold_patch<F>(patch, run * pool.channels, out + ox * pool.channels, pool.divisor_of(y, x));
    ox += run;
  }
}

template <typename F>
void pool_with(const RunContext& context, const Pooling& pool) {
  const auto* in = context.operands.inputs[0].as<const float>();
  auto* out = context.operands.outputs[0].as<float>();
  const Epilogue epilogue(context);
  const std::int64_t image = pool.rows.size * pool.columns.size * pool.channels;
  const std::int64_t line = pool.out_w * pool.channels;
  const std::int64_t taps = pool.separable ? pool.rows.kernel * pool.columns.stride + pool.columns.kernel
                                           : pool.rows.kernel * pool.columns.kernel;
  const std::int64_t work = pool.batch * pool.out_h * line * taps;
  split(context.pool, pool.batch * pool.out_h, work, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* row = reinterpret_cast<float*>(context.scratch) + thread * pool.columns.size * pool.channels;
    for (std::int64_t i = begin; i < end; ++i) {
      const float* from = in + i / pool.out_h * image;
      if (pool.separable) {
        pool_by_parts<F>(pool, from, i % pool.out_h, out + i * line, row);
      } else {
        pool_directly<F>(pool, from, i % pool.out_h, out + i * line);
      }
      if (!epilogue.empty()) {
        epilogue.apply(out + i * line, pool.channels, i * pool.out_w, pool.out_w, 0, pool.channels);
      }
    }
  });
}

Error pool_prepare(PrepareContext& context) {
  const ScalarType in = context.operands.inputs[0].dtype;
  if (context.operands.inputs[0].quantization != nullptr) return quantized_pool_prepare(context);
  if (in == ScalarType::Float && context.operands.outputs[0].dtype == ScalarType::Float) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "pooling of %s, expected float32", name_of(in));
}

Error pool_shape(ShapeContext& context) {
  if (context.operands.inputs[0].quantization != nullptr) return Error::Ok;
  const Shape& in = context.operands.inputs[0].shape;
  context.scratch = static_cast<std::size_t>(context.threads * in.sizes[2] * in.sizes[3]) * sizeof(float);
  return Error::Ok;
}

void pool_run(const RunContext& context) {
  const Pooling pool(context.node, context.operands);
  if (context.operands.outputs[0].shape.numel() == 0) return;
  if (context.operands.inputs[0].quantization != nullptr) return quantized_pool_run(context, pool);
  if (pool.average) {
    pool_with<SumFold>(context, pool);
  } else {
    pool_with<MaxFold>(context, pool);
  }
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(pooling_pool, {Op::MaxPool, pool_prepare, pool_shape, pool_run, epilogue_fuses, quantized_pool},
                    {Op::AvgPool, pool_prepare, pool_shape, pool_run, epilogue_fuses, quantized_pool})
