// cumsum and cumprod along a dimension, in the type of the output.
#include "kernels/common/convert.h"
#include "kernels/common/iterate.h"

namespace wb::kernels::WB_ISA {
namespace {

struct SumStep {
  template <typename A>
  static A first() {
    return A{0};
  }
  template <typename A>
  static A apply(A a, A x) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(x));
    } else {
      return a + x;
    }
  }
};

struct ProdStep {
  template <typename A>
  static A first() {
    return A{1};
  }
  template <typename A>
  static A apply(A a, A x) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(x));
    } else {
      return a * x;
    }
  }
};

// Arguments: self, dim, dtype, out. Float accumulates in double.
template <typename Step>
struct Cumulative {
  struct State {
    bool ready = false;
    int dim = 0;
  };
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "ti*t"));
    WB_TRY(expect_computable(context, 0));
    return expect_computable(context, 3);
  }
  static Error plan(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    WB_TRY(get_dim(context, 1, self.rank, &state.dim));
    return context.resize(context.tensor(3), self.shape());
  }

  template <typename T, typename A>
  static void scan(const Tensor& self, const Tensor& out, int dim, Lane lane) {
    const std::int64_t size = self.rank == 0 ? 1 : self.sizes[dim];
    if (self.numel() == 0) return;
    const std::int64_t from_stride = self.rank == 0 ? 1 : self.strides[dim];
    const std::int64_t to_stride = self.rank == 0 ? 1 : out.strides[dim];
    const LoadFunction load = find_load(self.dtype, lane);
    const StoreFunction store = find_store(out.dtype, lane);
    const auto from_size = static_cast<std::int64_t>(element_size(self.dtype));
    const auto to_size = static_cast<std::int64_t>(element_size(out.dtype));
    std::int64_t index[kMaxRank] = {};
    const auto* from = static_cast<const std::byte*>(self.data);
    auto* to = static_cast<std::byte*>(out.data);
    T block[kBlock];
    while (true) {
      A total = Step::template first<A>();
      for (std::int64_t begin = 0; begin < size; begin += kBlock) {
        const std::int64_t count = size - begin < kBlock ? size - begin : kBlock;
        load(block, from + begin * from_stride * from_size, from_stride, count);
        for (std::int64_t i = 0; i < count; ++i) {
          total = Step::template apply<A>(total, static_cast<A>(block[i]));
          block[i] = static_cast<T>(total);
        }
        store(to + begin * to_stride * to_size, to_stride, block, count);
      }
      int d = self.rank - 1;
      for (; d >= 0; --d) {
        if (d == dim) continue;
        from += self.strides[d] * from_size;
        to += out.strides[d] * to_size;
        if (++index[d] < self.sizes[d]) break;
        from -= self.strides[d] * self.sizes[d] * from_size;
        to -= out.strides[d] * self.sizes[d] * to_size;
        index[d] = 0;
      }
      if (d < 0) return;
    }
  }

  static Error run(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    const Tensor& out = context.tensor(3);
    switch (natural_lane(out.dtype)) {
      case Lane::F32: scan<float, double>(self, out, state.dim, Lane::F32); break;
      case Lane::F64: scan<double, double>(self, out, state.dim, Lane::F64); break;
      default: scan<std::int64_t, std::int64_t>(self, out, state.dim, Lane::I64); break;
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(scan_cumulative, planned<Cumulative<SumStep>>("aten::cumsum.out"),
           planned<Cumulative<ProdStep>>("aten::cumprod.out"))
