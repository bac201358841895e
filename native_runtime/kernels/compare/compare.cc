// Comparisons and logical operators: the result is bool.
#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

#define WB_COMPARE(Name, op)          \
  struct Name : Plain {               \
    using Plain::Plain;               \
    template <typename T>             \
    bool operator()(T a, T b) const { \
      return a op b;                  \
    }                                 \
  }
WB_COMPARE(Eq, ==);
WB_COMPARE(Ne, !=);
WB_COMPARE(Lt, <);
WB_COMPARE(Le, <=);
WB_COMPARE(Gt, >);
WB_COMPARE(Ge, >=);
#undef WB_COMPARE

// Inputs are 0 or 1, so that bits can be used.
struct LogicalAnd : Plain {
  using Plain::Plain;
  bool operator()(bool a, bool b) const { return (a & b) != 0; }
};
struct LogicalOr : Plain {
  using Plain::Plain;
  bool operator()(bool a, bool b) const { return (a | b) != 0; }
};
struct LogicalXor : Plain {
  using Plain::Plain;
  bool operator()(bool a, bool b) const { return a != b; }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(compare_compare, WB_POINTWISE("aten::eq.Tensor_out", compare<Eq>()),
           WB_POINTWISE("aten::eq.Scalar_out", compare<Eq>("t#")), WB_POINTWISE("aten::ne.Tensor_out", compare<Ne>()),
           WB_POINTWISE("aten::ne.Scalar_out", compare<Ne>("t#")), WB_POINTWISE("aten::lt.Tensor_out", compare<Lt>()),
           WB_POINTWISE("aten::lt.Scalar_out", compare<Lt>("t#")), WB_POINTWISE("aten::le.Tensor_out", compare<Le>()),
           WB_POINTWISE("aten::le.Scalar_out", compare<Le>("t#")), WB_POINTWISE("aten::gt.Tensor_out", compare<Gt>()),
           WB_POINTWISE("aten::gt.Scalar_out", compare<Gt>("t#")), WB_POINTWISE("aten::ge.Tensor_out", compare<Ge>()),
           WB_POINTWISE("aten::ge.Scalar_out", compare<Ge>("t#")),
           WB_POINTWISE("aten::logical_and.out", logical<LogicalAnd>()),
           WB_POINTWISE("aten::logical_or.out", logical<LogicalOr>()),
           WB_POINTWISE("aten::logical_xor.out", logical<LogicalXor>()))
