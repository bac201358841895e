// where and masked_fill: a choice between two values by a mask.
#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

// in: mask, value where it is true, value where it is false.
template <typename T>
void where_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& /*params*/) {
  T* o = static_cast<T*>(out);
  const bool* c = static_cast<const bool*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  const T x = *a;
  const T y = *b;
  switch (mask) {
    case 0:
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) {
        const T p = a[i];
        const T q = b[i];
        o[i] = c[i] ? p : q;
      }
      break;
    case 2:
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) {
        const T q = b[i];
        o[i] = c[i] ? x : q;
      }
      break;
    case 4:
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) {
        const T p = a[i];
        o[i] = c[i] ? p : y;
      }
      break;
    case 6:
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) o[i] = c[i] ? x : y;
      break;
    default: {  // one mask for all
      const T* from = *c ? a : b;
      const bool single = ((*c ? mask >> 1 : mask >> 2) & 1U) != 0;
      const T value = *from;
      for (std::int64_t i = 0; i < n; ++i) o[i] = single ? value : from[i];
    }
  }
}

// in: self, mask, value.
template <typename T>
void masked_fill_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& params) {
  const void* reordered[3] = {in[1], in[2], in[0]};
  where_loop<T>(out, reordered, (mask >> 1 & 3U) | (mask << 2 & 4U), n, params);
}

constexpr PointwiseOp kWhere = {
    "ttt",
    LaneRule::Select,
    OutLane::Same,
    {where_loop<float>, where_loop<double>, where_loop<std::int64_t>, where_loop<bool>, where_loop<std::uint8_t>,
     where_loop<std::uint16_t>, where_loop<std::uint32_t>, where_loop<std::uint64_t>}};

constexpr PointwiseOp masked_fill_op(Signature signature) {
  return {signature,
          LaneRule::Select,
          OutLane::Same,
          {masked_fill_loop<float>, masked_fill_loop<double>, masked_fill_loop<std::int64_t>, masked_fill_loop<bool>,
           masked_fill_loop<std::uint8_t>, masked_fill_loop<std::uint16_t>, masked_fill_loop<std::uint32_t>,
           masked_fill_loop<std::uint64_t>},
          1};
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(ternary_select, WB_POINTWISE("aten::where.self_out", kWhere),
           WB_POINTWISE("aten::masked_fill.Scalar_out", masked_fill_op("tt#")),
           WB_POINTWISE("aten::masked_fill.Tensor_out", masked_fill_op("ttt")))
