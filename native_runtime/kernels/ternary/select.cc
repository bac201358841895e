// where and masked_fill: a choice between two values by a mask.
#include "kernels/common/pointwise.h"

namespace wb::kernels::WB_ISA {
namespace {

// a where the condition holds, else b: as bits, without a branch.
template <typename T>
T choose(std::uint8_t condition, T a, T b) {
  const T mask = static_cast<T>(T{0} - static_cast<T>(condition != 0));
  return static_cast<T>((a & mask) | (b & static_cast<T>(~mask)));
}

// in: mask, value where it is true, value where it is false. T is unsigned: floats are chosen as bits.
template <typename T>
void where_loop(void* out, const void* const* in, unsigned mask, std::int64_t n, const Params& /*params*/) {
  T* o = static_cast<T*>(out);
  const auto* c = static_cast<const std::uint8_t*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  const T x = *a;
  const T y = *b;
  switch (mask) {
    case 0:
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) o[i] = choose(c[i], a[i], b[i]);
      break;
    case 2:
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) o[i] = choose(c[i], x, b[i]);
      break;
    case 4:
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) o[i] = choose(c[i], a[i], y);
      break;
    case 6:
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) o[i] = choose(c[i], x, y);
      break;
    default: {  // one mask for all
      const T* from = *c != 0 ? a : b;
      const bool single = ((*c != 0 ? mask >> 1 : mask >> 2) & 1U) != 0;
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
    {where_loop<std::uint32_t>, where_loop<std::uint64_t>, where_loop<std::uint64_t>, where_loop<std::uint8_t>,
     where_loop<std::uint8_t>, where_loop<std::uint16_t>, where_loop<std::uint32_t>, where_loop<std::uint64_t>}};

constexpr PointwiseOp masked_fill_op(Signature signature) {
  return {signature,
          LaneRule::Select,
          OutLane::Same,
          {masked_fill_loop<std::uint32_t>, masked_fill_loop<std::uint64_t>, masked_fill_loop<std::uint64_t>,
           masked_fill_loop<std::uint8_t>, masked_fill_loop<std::uint8_t>, masked_fill_loop<std::uint16_t>,
           masked_fill_loop<std::uint32_t>, masked_fill_loop<std::uint64_t>},
          1};
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(ternary_select, WB_POINTWISE("aten::where.self_out", kWhere),
           WB_POINTWISE("aten::masked_fill.Scalar_out", masked_fill_op("tt#")),
           WB_POINTWISE("aten::masked_fill.Tensor_out", masked_fill_op("ttt")))
