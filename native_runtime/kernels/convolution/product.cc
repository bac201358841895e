// Convolutions as matrix products: weights (cout x depth) by columns of inputs (depth x pixels).
#include <algorithm>

#include "kernels/convolution/methods.h"
#include "kernels/gemm/gemm.h"

namespace wb::kernels::WB_ISA {
namespace {

// Pixels of a panel that stand next to each other in the slab.
struct Run {
  std::int64_t from;  // offset in a channel of the slab
  int to;             // column of the panel
  int vectors;
};

template <typename T>
struct SlabColumns {
  const ConvGeometry& g;
  const Slab& slab;
  const T* data;
};

template <typename T>
int find_runs(const SlabColumns<T>& columns, std::int64_t j0, int nc, Run* runs) {
  std::int64_t oy = j0 / columns.g.ow;
  std::int64_t ox = j0 % columns.g.ow;
  int count = 0;
  for (int j = 0; j < nc;) {
    const auto length = static_cast<int>(std::min<std::int64_t>(columns.g.ow - ox, nc - j));
    runs[count++] = {oy * columns.slab.row_step * columns.slab.row + ox, j, (length + kLanes<T> - 1) / kLanes<T>};
    j += length;
    ox = 0;
    ++oy;
  }
  return count;
}

// Copies whole vectors: what is written past a run is overwritten by the next run or row. Both ends have slack.
template <typename T>
void pack_slab(const void* self, std::int64_t k0, std::int64_t kc, std::int64_t j0, int nc, T* panel) {
  const auto& columns = *static_cast<const SlabColumns<T>*>(self);
  const ConvGeometry& g = columns.g;
  Run runs[kPanel<T>];
  const int count = find_runs(columns, j0, nc, runs);
  std::int64_t c = k0 / g.taps();
  std::int64_t ky = k0 % g.taps() / g.kw;
  std::int64_t kx = k0 % g.kw;
  for (std::int64_t kk = 0; kk < kc; ++kk) {
    const T* from = columns.data + c * columns.slab.plane + columns.slab.tap(g, ky, kx);
    if (count == 1 && nc == kPanel<T>) {
      for (int v = 0; v < kTileVectors; ++v) store(panel + v * kLanes<T>, load(from + runs[0].from + v * kLanes<T>));
    } else {
      for (int r = 0; r < count; ++r) {
        for (int v = 0; v < runs[r].vectors; ++v) {
          store(panel + runs[r].to + v * kLanes<T>, load(from + runs[r].from + v * kLanes<T>));
        }
      }
    }
    panel += kPanel<T>;
    if (++kx == g.kw) {
      kx = 0;
      if (++ky == g.kh) {
        ky = 0;
        ++c;
      }
    }
  }
}

}  // namespace

template <typename T>
void product_convolution(const ConvGeometry& g, const Slab& slab, const ConvData<T>& data, std::byte* scratch) {
  T* const slab_data = reinterpret_cast<T*>(scratch);
  const std::int64_t channels = g.cin_group();
  std::byte* const packed =
      scratch + round_scratch(static_cast<std::size_t>(channels * slab.plane + kSlabSlack) * sizeof(T));
  const SlabColumns<T> columns{g, slab, slab_data};
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const std::int64_t first = group * g.cout_group();
      for (std::int64_t oy = 0; oy < g.oh; oy += slab.block) {
        const std::int64_t rows = std::min(slab.block, g.oh - oy);
        fill_slab(g, slab, channels, oy, rows, data.input + n * g.in.n + group * channels * g.in.c, slab_data);
        Gemm<T> product;
        product.m = g.cout_group();
        product.n = rows * g.ow;
        product.k = g.depth();
        product.a = data.weight + first * g.depth();
        product.a_row = g.depth();
        product.b.self = &columns;
        product.b.pack = pack_slab<T>;
        product.c = data.out + n * g.out.n + first * g.out.c + oy * g.out.h;
        product.c_row = g.out.c;
        product.c_col = g.out.w;
        if (data.bias != nullptr) product.row_bias = data.bias + first;
        gemm(product, packed);
      }
    }
  }
}

template <typename T>
void pointwise_convolution(const ConvGeometry& g, const ConvData<T>& data, std::byte* scratch) {
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t group = 0; group < g.groups; ++group) {
      const std::int64_t first = group * g.cout_group();
      const T* input = data.input + n * g.in.n + group * g.cin_group() * g.in.c;
      const T* weight = data.weight + first * g.cin_group();
      Gemm<T> product;
      product.k = g.cin_group();
      product.c = data.out + n * g.out.n + first * g.out.c;
      const T* bias = data.bias == nullptr ? nullptr : data.bias + first;
      if (g.in.c == 1 && g.out.c == 1 && g.cin > 1) {  // pixels are rows
        product.m = g.pixels();
        product.n = g.cout_group();
        product.a = input;
        product.a_row = g.in.w;
        product.c_row = g.out.w;
        product.col_bias = bias;
        const StridedMatrix<T> columns{weight, 1, g.cin_group()};
        product.b = panels_of(columns);
        gemm(product, scratch);
      } else {
        product.m = g.cout_group();
        product.n = g.pixels();
        product.a = weight;
        product.a_row = g.cin_group();
        product.c_row = g.out.c;
        product.c_col = g.out.w;
        product.row_bias = bias;
        const StridedMatrix<T> columns{input, g.in.c, g.in.w};
        product.b = panels_of(columns);
        gemm(product, scratch);
      }
    }
  }
}

template void product_convolution<float>(const ConvGeometry&, const Slab&, const ConvData<float>&, std::byte*);
template void product_convolution<double>(const ConvGeometry&, const Slab&, const ConvData<double>&, std::byte*);
template void pointwise_convolution<float>(const ConvGeometry&, const ConvData<float>&, std::byte*);
template void pointwise_convolution<double>(const ConvGeometry&, const ConvData<double>&, std::byte*);

extern const KernelTable table_convolution_product;
const KernelTable table_convolution_product = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
