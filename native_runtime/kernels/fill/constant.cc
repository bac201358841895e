// Tensors of one value: full, zeros, ones, empty, fill, scalar_tensor, and their _like forms.
#include "kernels/common/scalar.h"

namespace wb::kernels::WB_ISA {
namespace {

enum class Sizes : std::uint8_t { List, Like, Scalar };
enum class Value : std::uint8_t { Argument, Zero, One, None };

// Arguments: (size | self), value if any, memory format or such (`extra` of them, not looked at), out.
template <Sizes sizes, Value value, int extra>
struct Fill {
  struct State {
    bool ready = false;
  };
  static constexpr int kFirst = sizes == Sizes::Scalar ? 0 : 1;
  static constexpr int kValue = kFirst;
  static constexpr int kOut = kFirst + (value == Value::Argument ? 1 : 0) + extra;

  static Error check(KernelContext& context, State& /*state*/) {
    char signature[8] = {};
    int n = 0;
    if (sizes == Sizes::List) signature[n++] = 'l';
    if (sizes == Sizes::Like) signature[n++] = 't';
    if (value == Value::Argument) signature[n++] = 's';
    for (int k = 0; k < extra; ++k) signature[n++] = '*';
    signature[n] = 't';
    WB_TRY(check_args(context, signature));
    return value == Value::None ? Error::Ok : expect_computable(context, kOut);
  }
  static Error plan(KernelContext& context, State& /*state*/) {
    Shape shape;
    if constexpr (sizes == Sizes::List) WB_TRY(get_sizes(context, 0, &shape));
    if constexpr (sizes == Sizes::Like) shape.assign(context.tensor(0));
    return context.resize(context.tensor(kOut), shape.span());
  }
  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& out = context.tensor(kOut);
    if constexpr (value == Value::Argument) fill_number(out, context.arg(kValue));
    if constexpr (value == Value::Zero || value == Value::One) {
      EValue number;
      number.set(std::int64_t{value == Value::One ? 1 : 0});
      fill_number(out, number);
    }
    return Error::Ok;
  }
};

// fill.Tensor: the value is a tensor of one element.
struct FillTensor {
  struct State {
    bool ready = false;
  };
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "ttt"));
    WB_TRY(expect_computable(context, 1));
    return expect_computable(context, 2);
  }
  static Error plan(KernelContext& context, State& /*state*/) {
    if (context.tensor(1).numel() != 1) {
      return context.fail(Error::InvalidArgument, "argument 1 (value): expected one element, found %lld",
                          static_cast<long long>(context.tensor(1).numel()));
    }
    return context.resize(context.tensor(2), context.tensor(0).shape());
  }
  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& value = context.tensor(1);
    const Tensor& out = context.tensor(2);
    const Lane lane = natural_lane(value.dtype);
    alignas(8) std::byte number[8];
    alignas(8) std::byte bits[8];
    find_load(value.dtype, lane)(number, value.data, 1, 1);
    find_store(out.dtype, lane)(bits, 1, number, 1);
    fill_bits(out.data, bits, element_size(out.dtype), out.numel());
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(fill_constant, planned<Fill<Sizes::List, Value::Argument, 0>>("aten::full.out"),
           planned<Fill<Sizes::Like, Value::Argument, 1>>("aten::full_like.out"),
           planned<Fill<Sizes::List, Value::Zero, 0>>("aten::zeros.out"),
           planned<Fill<Sizes::List, Value::One, 0>>("aten::ones.out"),
           planned<Fill<Sizes::Like, Value::Zero, 1>>("aten::zeros_like.out"),
           planned<Fill<Sizes::Like, Value::One, 1>>("aten::ones_like.out"),
           planned<Fill<Sizes::List, Value::None, 1>>("aten::empty.out"),
           planned<Fill<Sizes::Like, Value::None, 1>>("aten::empty_like.out"),
           planned<Fill<Sizes::Scalar, Value::Argument, 0>>("aten::scalar_tensor.out"),
           planned<Fill<Sizes::Like, Value::Argument, 0>>("aten::fill.Scalar_out"),
           planned<FillTensor>("aten::fill.Tensor_out"),
           planned<Fill<Sizes::List, Value::None, 1>>("dim_order_ops::_empty_dim_order.out"))
