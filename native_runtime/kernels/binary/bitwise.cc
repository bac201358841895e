// Bitwise operators and shifts of integers and bool.
#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

struct And : Plain {
  using Plain::Plain;
  std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a & b; }
};
struct Or : Plain {
  using Plain::Plain;
  std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a | b; }
};
struct Xor : Plain {
  using Plain::Plain;
  std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a ^ b; }
};

// A count that is negative or at least the width gives 0. Narrow types are cut when they are stored.
struct LeftShift : Plain {
  using Plain::Plain;
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    const auto count = static_cast<std::uint64_t>(b);
    return count < 64 ? static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << (count & 63U)) : 0;
  }
};

// Arithmetic; a count that is negative or at least the width leaves only the sign.
struct RightShift : Plain {
  using Plain::Plain;
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    const auto count = static_cast<std::uint64_t>(b);
    return a >> (count < 63 ? count : 63);
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(binary_bitwise, WB_POINTWISE("aten::bitwise_and.Tensor_out", integer_binary<And>()),
           WB_POINTWISE("aten::bitwise_and.Scalar_out", integer_binary<And>("t#")),
           WB_POINTWISE("aten::bitwise_or.Tensor_out", integer_binary<Or>()),
           WB_POINTWISE("aten::bitwise_or.Scalar_out", integer_binary<Or>("t#")),
           WB_POINTWISE("aten::bitwise_xor.Tensor_out", integer_binary<Xor>()),
           WB_POINTWISE("aten::bitwise_xor.Scalar_out", integer_binary<Xor>("t#")),
           WB_POINTWISE("aten::bitwise_left_shift.Tensor_out", integer_binary<LeftShift>()),
           WB_POINTWISE("aten::bitwise_left_shift.Tensor_Scalar_out", integer_binary<LeftShift>("t#")),
           WB_POINTWISE("aten::bitwise_left_shift.Scalar_Tensor_out", integer_binary<LeftShift>("#t")),
           WB_POINTWISE("aten::bitwise_right_shift.Tensor_out", integer_binary<RightShift>()),
           WB_POINTWISE("aten::bitwise_right_shift.Tensor_Scalar_out", integer_binary<RightShift>("t#")),
           WB_POINTWISE("aten::bitwise_right_shift.Scalar_Tensor_out", integer_binary<RightShift>("#t")),
           WB_POINTWISE("aten::__lshift__.Tensor_out", integer_binary<LeftShift>()),
           WB_POINTWISE("aten::__lshift__.Scalar_out", integer_binary<LeftShift>("t#")),
           WB_POINTWISE("aten::__rshift__.Tensor_out", integer_binary<RightShift>()),
           WB_POINTWISE("aten::__rshift__.Scalar_out", integer_binary<RightShift>("t#")))
