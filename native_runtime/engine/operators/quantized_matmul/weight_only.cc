// Numbers times constant integers. A few rows are multiplied by what integers become in registers, for then the bytes
// of the weights are what counts; for more rows, panels of weights are first made numbers, which products of numbers
// then take.
#include <algorithm>

#include "engine/operators/matmul/constants.h"
#include "engine/operators/matmul/product.h"
#include "engine/operators/quantized_matmul/method.h"

namespace wb::engine::WB_ISA::quantized {
namespace {

constexpr std::int64_t kFewRows = 2;
constexpr std::int64_t kWorthwhile = 1 << 20;  // multiplications: about 20 us

// The elements of one vector of columns, kDotDepth rows (two times that of 4 bits) at a time.
class Elements {
 public:
  Elements(const PackedIntegers& b, std::int64_t panel, int vector)
      : at_(b.panel(panel) + vector * kDotBytes),
        step_(b.panel_vectors(panel) * kDotBytes),
        nibbles_(b.nibbles),
        zero_(static_cast<std::int8_t>(b.nibble_zero) - kernels::WB_ISA::DotBytes{}) {}

  [[nodiscard]] static constexpr int rows(bool nibbles) { return nibbles ? 2 * kDotDepth : kDotDepth; }

  template <bool Nibbles>
  [[gnu::always_inline]] void next(Floats* to) {
    using kernels::WB_ISA::DotBytes;
    using Unsigned = std::uint8_t __attribute__((vector_size(kDotBytes)));
    if constexpr (Nibbles) {
      const auto pairs = (Unsigned)kernels::WB_ISA::load_dot_bytes(at_);
      convert(dot_right((DotBytes)(pairs & 15) - zero_), to);
      convert(dot_right((DotBytes)(pairs >> 4) - zero_), to + kDotDepth);
    } else {
      convert(dot_right(at_), to);
    }
    at_ += step_;
  }

 private:
  [[gnu::always_inline]] static void convert(Ints right, Floats* to) {
#pragma GCC unroll 4
    for (int i = 0; i < kDotDepth; ++i) to[i] = floats_of(kernels::WB_ISA::dot_element(right, i));
  }

  const std::int8_t* at_;
  std::int64_t step_;
  bool nibbles_;
  kernels::WB_ISA::DotBytes zero_;
};

Error prepare(PrepareContext& context, MatMul& state) {
  WB_TRY(pack_matmul(context, state));
  const Operands& operands = context.operands;
  const Quantization& q = *operands.inputs[1].quantization;
  const TensorView* bias = bias_of(operands);
  if (bias != nullptr) dense::mark_packed(context, 2);
  if (q.kind == Quantization::Kind::PerGroup) return prepare_groups(context.setup, q, bias, &state.weights);
  return prepare_columns(context.setup, LeftSide(), {q}, bias, operands.outputs[0], &state.weights);
}

// Floats of a thread: rows of A of a product of numbers, a panel of B (or one row of A).
std::int64_t thread_floats(std::int64_t k) {
  const std::int64_t depth = (k + kDepthUnit - 1) / kDepthUnit * kDepthUnit;
  return dense::kRowScratch + depth * dense::kPanel;
}

std::int64_t shape(const ShapeContext& context, MatMul& state) {
  return context.threads * thread_floats(state.sizes.k) * static_cast<std::int64_t>(sizeof(float));
}

struct Run {
  const RunContext& context;
  const MatMul& state;
  dense::Finish finish;
  const float* a;
  float* c;

  // One row of numbers times one panel.
  template <bool Nibbles>
  void row_panel(const PackedIntegers& b, const Columns& columns, std::int64_t p, const float* row, float* to) const {
    const int vectors = b.panel_vectors(p);
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t column = p * kPanelColumns + v * kFloats;
      constexpr int kRows = Elements::rows(Nibbles);
      const std::int64_t all = b.steps() * kDotDepth;
      const std::int64_t group = columns.group == 0 ? all : columns.group;
      Elements elements(b, p, v);
      Floats whole{};
      const float* scale = columns.scale + column;
      for (std::int64_t k0 = 0; k0 < all; k0 += group) {
        Floats sums[kRows] = {};
        const std::int64_t end = std::min(k0 + group, all);
        for (std::int64_t kk = k0; kk < end; kk += kRows) {
          Floats numbers[kRows];
          elements.next<Nibbles>(numbers);
#pragma GCC unroll 8
          for (int i = 0; i < kRows; ++i) sums[i] = fma(numbers[i], splat(row[kk + i]), sums[i]);
        }
        for (int i = 1; i < kRows; ++i) sums[0] += sums[i];
        whole = fma(sums[0], load(scale), whole);
        scale += b.columns();
      }
      whole += load(columns.bias + column);
      const auto left = static_cast<int>(std::min<std::int64_t>(b.n - column, kFloats));
      if (left == kFloats) {
        store(to + column, whole);
      } else {
        store_first(to + column, whole, left);
      }
    }
  }

  void few(std::int64_t index, std::int64_t of_a, const PackedIntegers& b, const Columns& columns) const {
    const dense::Sizes& s = state.sizes;
    auto* const row = reinterpret_cast<float*>(context.scratch);
    const std::int64_t depth = b.steps() * kDotDepth;
    std::fill(row + s.k, row + depth, 0.0F);
    for (std::int64_t i = 0; i < s.m; ++i) {
      std::copy_n(a + (of_a * s.m + i) * s.k, s.k, row);
      float* to = c + (index * s.m + i) * s.n;
      const auto panel = [&](std::int64_t p, int /*thread*/) {
        if (b.nibbles) {
          row_panel<true>(b, columns, p, row, to);
        } else {
          row_panel<false>(b, columns, p, row, to);
        }
      };
      if (s.n * s.k >= 2 * kWorthwhile) {
        context.pool.parallel(b.panels(), [&](std::int64_t p, int thread) { panel(p, thread); });
      } else {
        for (std::int64_t p = 0; p < b.panels(); ++p) panel(p, 0);
      }
      dense::finish_rows(finish, true, index * s.m + i, 1, s.n, to);
    }
  }

  // Columns [column, column + kPanel) as numbers, rows as far apart as a product of numbers wants them.
  template <bool Nibbles>
  void unpack(const PackedIntegers& b, const Columns& columns, std::int64_t column, std::int64_t ld, float* to) const {
    constexpr int kRows = Elements::rows(Nibbles);
    const std::int64_t p = column / kPanelColumns;
    for (std::int64_t j = 0; j < ld; j += kFloats) {
      Elements elements(b, p, static_cast<int>((column + j) % kPanelColumns / kFloats));
      const auto width = static_cast<int>(std::min<std::int64_t>(ld - j, kFloats));
      const float* scale = columns.scale + column + j;
      std::int64_t next = columns.group;
      for (std::int64_t kk = 0; kk < b.k; kk += kRows) {
        if (next != 0 && kk == next) {
          scale += b.columns();
          next += columns.group;
        }
        Floats numbers[kRows];
        elements.next<Nibbles>(numbers);
        const Floats factor = load(scale);
        for (int i = 0; i < kRows && kk + i < b.k; ++i) {
          float* at = to + (kk + i) * ld + j;
          if (width == kFloats) {
            store(at, numbers[i] * factor);
          } else {
            store_first(at, numbers[i] * factor, width);
          }
        }
      }
    }
  }

  void many(std::int64_t index, std::int64_t of_a, const PackedIntegers& b, const Columns& columns) const {
    const dense::Sizes& s = state.sizes;
    const std::int64_t panels = (s.n + dense::kPanel - 1) / dense::kPanel;
    const auto panel = [&](std::int64_t p, int thread) {
      float* own = reinterpret_cast<float*>(context.scratch) + thread * thread_floats(s.k);
      float* numbers = own + dense::kRowScratch;
      const std::int64_t column = p * dense::kPanel;
      dense::Product product;
      product.m = s.m;
      product.b.data = numbers;
      product.b.k = s.k;
      product.b.n = std::min<std::int64_t>(s.n - column, dense::kPanel);
      if (b.nibbles) {
        unpack<true>(b, columns, column, product.b.columns(), numbers);
      } else {
        unpack<false>(b, columns, column, product.b.columns(), numbers);
      }
      product.a.data = a + of_a * s.m * s.k;
      product.a.lda = s.k;
      product.c = c + index * s.m * s.n + column;
      product.ldc = s.n;
      product.finish = finish;
      product.finish.bias = columns.bias + column;
      if (finish.residual != nullptr) product.finish.residual += index * s.m * s.n + column;
      product.row0 = index * s.m;
      product.col0 = column;
      dense::product_part(product, 0, s.m, 0, 1, own);
    };
    if (s.m * s.n * s.k >= 2 * kWorthwhile) {
      context.pool.parallel(panels, [&](std::int64_t p, int thread) { panel(p, thread); });
    } else {
      for (std::int64_t p = 0; p < panels; ++p) panel(p, 0);
    }
  }
};

void run(const RunContext& context, const MatMul& state) {
  const Operands& operands = context.operands;
  const dense::Sizes& s = state.sizes;
  const TensorView& out = operands.outputs[0];
  Epilogue epilogue(context);
  const Run run{context, state, dense::make_finish(epilogue, nullptr), operands.inputs[0].as<const float>(),
                out.as<float>()};
  for (std::int64_t i = 0; i < s.batch; ++i) {
    const std::int64_t of_a = s.one_b ? 0 : dense::batch_index(operands.inputs[0].shape, out.shape, i);
    const std::int64_t of_b = s.one_b ? 0 : dense::batch_index(operands.inputs[1].shape, out.shape, i);
    PackedIntegers b;
    Columns columns;
    state.weights.at(of_b, &b, &columns);
    if (s.m <= kFewRows) {
      run.few(i, of_a, b, columns);
    } else {
      run.many(i, of_a, b, columns);
    }
  }
}

}  // namespace

const MatMulMethod kWeightOnlyMethod = {prepare, shape, run};

}  // namespace wb::engine::WB_ISA::quantized
