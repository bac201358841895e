// Transposed convolutions: a product of the weights, (co, ky, kx) x ci, with the inputs, ci x pixels, whose rows are
// added to the outputs that they reach.
#include <algorithm>

#include "kernels/convolution/methods.h"
#include "kernels/gemm/gemm.h"

namespace wb::kernels::WB_ISA {
namespace {

// Adds the products of one output channel and input rows [y0, y0 + rows); `from` is [tap][row][column].
template <typename T>
void spread(const ConvGeometry& g, std::int64_t y0, std::int64_t rows, const T* from, T* out) {
  for (std::int64_t ky = 0; ky < g.kh; ++ky) {
    for (std::int64_t kx = 0; kx < g.kw; ++kx) {
      for (std::int64_t y = y0; y < y0 + rows; ++y, from += g.w) {
        const std::int64_t oy = y * g.sh - g.ph + ky * g.dh;
        if (oy < 0 || oy >= g.oh) continue;
        T* row = out + oy * g.out.h;
        for (std::int64_t x = 0; x < g.w; ++x) {
          const std::int64_t ox = x * g.sw - g.pw + kx * g.dw;
          if (ox >= 0 && ox < g.ow) row[ox * g.out.w] += from[x];
        }
      }
    }
  }
}

template <typename T>
void fill_bias(const ConvGeometry& g, const T* bias, T* out) {
  for (std::int64_t c = 0; c < g.cout; ++c) {
    for (std::int64_t y = 0; y < g.oh; ++y) {
      T* row = out + c * g.out.c + y * g.out.h;
      for (std::int64_t x = 0; x < g.ow; ++x) row[x * g.out.w] = bias == nullptr ? T{0} : bias[c];
    }
  }
}

}  // namespace

template <typename T>
void transposed_convolution(const ConvGeometry& g, const ConvPlan& plan, const ConvData<T>& data, std::byte* scratch) {
  T* const products = reinterpret_cast<T*>(scratch);
  std::byte* const packed =
      scratch +
      round_scratch(static_cast<std::size_t>(plan.block_channels * g.taps() * plan.block_rows * g.w) * sizeof(T));
  for (std::int64_t n = 0; n < g.batch; ++n) {
    T* const image = data.out + n * g.out.n;
    fill_bias(g, data.bias, image);
    for (std::int64_t co = 0; co < g.cout;) {
      const std::int64_t group = co / g.cout_group();
      const std::int64_t inside = co % g.cout_group();
      const std::int64_t channels = std::min(plan.block_channels, g.cout_group() - inside);
      for (std::int64_t y = 0; y < g.h; y += plan.block_rows) {
        const std::int64_t rows = std::min(plan.block_rows, g.h - y);
        Gemm<T> product;
        product.m = channels * g.taps();
        product.n = rows * g.w;
        product.k = g.cin_group();
        product.a = data.weight + (group * g.cin_group() * g.cout_group() + inside) * g.taps();
        product.a_row = 1;
        product.a_col = g.cout_group() * g.taps();
        const StridedMatrix<T> columns{data.input + n * g.in.n + group * g.cin_group() * g.in.c + y * g.w * g.in.w,
                                       g.in.c, g.in.w};
        product.b = panels_of(columns);
        product.c = products;
        product.c_row = product.n;
        gemm(product, packed);
        for (std::int64_t k = 0; k < channels; ++k) {
          spread(g, y, rows, products + k * g.taps() * product.n, image + (co + k) * g.out.c);
        }
      }
      co += channels;
    }
  }
}

template void transposed_convolution<float>(const ConvGeometry&, const ConvPlan&, const ConvData<float>&, std::byte*);
template void transposed_convolution<double>(const ConvGeometry&, const ConvPlan&, const ConvData<double>&, std::byte*);

extern const KernelTable table_convolution_transposed;
const KernelTable table_convolution_transposed = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
