// arange: start, start + step, ... below end.
#include <cmath>

#include "kernels/common/scalar.h"

namespace wb::kernels::WB_ISA {
namespace {

double as_double(const EValue& value) { return value.scalar<double>(); }

// Arguments: end, out; or start, end, step, out. Numbers of type int are counted exactly.
template <bool kStart>
struct Arange {
  struct State {
    bool ready = false;
  };
  static constexpr std::uint32_t kOut = kStart ? 3 : 1;

  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, kStart ? "ssst" : "st"));
    return expect_computable(context, kOut);
  }

  static bool integers(const KernelContext& context) {
    for (std::uint32_t i = 0; i < kOut; ++i) {
      if (context.arg(i).tag == Tag::Double) return false;
    }
    return true;
  }

  static Error plan(KernelContext& context, State& /*state*/) {
    double count = 0;
    if (integers(context)) {
      const auto start = kStart ? context.arg(0).scalar<std::int64_t>() : 0;
      const auto end = context.arg(kStart ? 1 : 0).scalar<std::int64_t>();
      const auto step = kStart ? context.arg(2).scalar<std::int64_t>() : 1;
      // In 128 bits: no difference of two int64 overflows.
      const __int128 span = static_cast<__int128>(end) - start;
      if (step != 0) count = static_cast<double>((span + step + (step > 0 ? -1 : 1)) / step);
      if (step == 0 || (span != 0 && (span > 0) != (step > 0))) count = -1;
    } else {
      const double start = kStart ? as_double(context.arg(0)) : 0.0;
      count = std::ceil((as_double(context.arg(kStart ? 1 : 0)) - start) / (kStart ? as_double(context.arg(2)) : 1.0));
    }
    if (!(count >= 0) || count > INT32_MAX) {
      return context.fail(Error::InvalidArgument, "start, end and step give no valid number of elements");
    }
    Shape shape;
    shape.rank = 1;
    shape.sizes[0] = static_cast<std::int32_t>(count);
    return context.resize(context.tensor(kOut), shape.span());
  }

  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& out = context.tensor(kOut);
    const std::int64_t n = out.numel();
    const auto size = static_cast<std::int64_t>(element_size(out.dtype));
    const bool exact = integers(context);
    const Lane lane = exact ? Lane::I64 : Lane::F64;
    const StoreFunction store = find_store(out.dtype, lane);
    const auto start = kStart ? context.arg(0).scalar<std::int64_t>() : 0;
    const auto step = kStart ? context.arg(2).scalar<std::int64_t>() : 1;
    const double first = kStart ? as_double(context.arg(0)) : 0.0;
    const double by = kStart ? as_double(context.arg(2)) : 1.0;
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t count = n - begin < kBlock ? n - begin : kBlock;
      std::int64_t integers[kBlock];
      double reals[kBlock];
      if (exact) {
        for (std::int64_t i = 0; i < count; ++i) integers[i] = start + (begin + i) * step;
      } else {
        for (std::int64_t i = 0; i < count; ++i) reals[i] = first + static_cast<double>(begin + i) * by;
      }
      store(static_cast<std::byte*>(out.data) + begin * size, 1,
            exact ? static_cast<const void*>(integers) : static_cast<const void*>(reals), count);
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(fill_arange, planned<Arange<false>>("aten::arange.out"), planned<Arange<true>>("aten::arange.start_out"))
