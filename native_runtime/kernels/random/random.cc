// rand, randn, and dropout. The generator (xoshiro256++, Blackman and Vigna) is seeded once for each instruction, so
// that a program gives the same numbers each time it is loaded.
#include <bit>
#include <cmath>

#include "kernels/common/scalar.h"

namespace wb::kernels::WB_ISA {
namespace {

struct Generator {
  std::uint64_t s[4];

  void seed(std::uint64_t value) {
    for (std::uint64_t& word : s) {  // splitmix64
      value += 0x9e3779b97f4a7c15U;
      std::uint64_t z = value;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
      word = z ^ (z >> 31);
    }
  }
  std::uint64_t next() {
    const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
    const std::uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = std::rotl(s[3], 45);
    return result;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)
  double normal() {                                                           // Box and Muller
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * M_PI * uniform());
  }
};

// Numbers in [0, 1) are multiples of its inverse: rounding to the type must not reach 1.
double resolution(ScalarType type) {
  return type == ScalarType::Double  ? 0x1.0p53
         : type == ScalarType::Float ? 0x1.0p24
         : type == ScalarType::Half  ? 0x1.0p11
                                     : 0x1.0p8;
}

// rand(size, out), randn(size, out)
template <bool kNormal>
struct Random {
  struct State {
    bool ready = false;
    Generator generator;
  };
  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "lt"));
    state.generator.seed(0);
    if (is_floating(context.tensor(1).dtype)) return Error::Ok;
    return context.fail(Error::InvalidType, "argument 1 (out): expected floating point");
  }
  static Error plan(KernelContext& context, State& /*state*/) {
    Shape shape;
    WB_TRY(get_sizes(context, 0, &shape));
    return context.resize(context.tensor(1), shape.span());
  }
  static Error run(KernelContext& context, State& state) {
    const Tensor& out = context.tensor(1);
    const StoreFunction store = find_store(out.dtype, Lane::F64);
    const auto bytes = static_cast<std::int64_t>(element_size(out.dtype));
    const std::int64_t n = out.numel();
    const double steps = resolution(out.dtype);
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = kNormal ? state.generator.normal() : state.generator.uniform();
      const double cut = kNormal ? value : std::floor(value * steps) / steps;
      store(static_cast<std::byte*>(out.data) + i * bytes, 1, &cut, 1);
    }
    return Error::Ok;
  }
};

// native_dropout(input, p, train?, out, mask)
struct Dropout {
  struct State {
    bool ready = false;
    Generator generator;
  };
  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "tfBtt"));
    state.generator.seed(0);
    WB_TRY(expect_computable(context, 0));
    WB_TRY(expect_same_dtype(context, 0, 3));
    return expect_dtype(context, 4, ScalarType::Bool);
  }
  static Error plan(KernelContext& context, State& /*state*/) {
    const Tensor& self = context.tensor(0);
    WB_TRY(context.resize(context.tensor(3), self.shape()));
    WB_TRY(context.resize(context.tensor(4), self.shape()));
    if (same_layout(self, context.tensor(3)) && same_layout(self, context.tensor(4))) return Error::Ok;
    return context.fail(Error::NotSupported, "the outputs need the dim order of the input");
  }
  static Error run(KernelContext& context, State& state) {
    const Tensor& self = context.tensor(0);
    const Tensor& out = context.tensor(3);
    bool* mask = context.tensor(4).mutable_data<bool>();
    const auto p = context.arg(1).scalar<double>();
    const bool train = context.arg(2).is_none() || context.arg(2).scalar<bool>();
    const std::int64_t n = self.numel();
    const LoadFunction load = find_load(self.dtype, Lane::F64);
    const StoreFunction store = find_store(out.dtype, Lane::F64);
    const auto bytes = static_cast<std::int64_t>(element_size(self.dtype));
    for (std::int64_t i = 0; i < n; ++i) {
      mask[i] = !train || state.generator.uniform() >= p;
      double value = 0;
      load(&value, static_cast<const std::byte*>(self.data) + i * bytes, 1, 1);
      if (train) value = mask[i] && p < 1 ? value / (1 - p) : 0.0;
      store(static_cast<std::byte*>(out.data) + i * bytes, 1, &value, 1);
    }
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(random_random, planned<Random<false>>("aten::rand.out"), planned<Random<true>>("aten::randn.out"),
           planned<Dropout>("aten::native_dropout.out"))
