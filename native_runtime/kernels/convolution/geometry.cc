#include "kernels/convolution/geometry.h"

namespace wb::kernels::WB_ISA {
namespace {

constexpr std::int64_t kLimit = std::int64_t{1} << 31;

// The entry of an int[] argument for spatial dimension `d` of `dims`: a list of one stands for all.
Error get_entry(const KernelContext& context, std::uint32_t arg, int d, int dims, std::int64_t low,
                std::int64_t* value) {
  const std::span<const std::int64_t> list = context.arg(arg).payload.int_list.get();
  if (list.size() != 1 && list.size() != static_cast<std::size_t>(dims)) {
    return context.fail(Error::InvalidArgument, "argument %u: expected 1 or %d numbers, found %zu", arg, dims,
                        list.size());
  }
  *value = list[list.size() == 1 ? 0 : static_cast<std::size_t>(d)];
  if (*value < low || *value >= kLimit) {
    return context.fail(Error::InvalidArgument, "argument %u: expected %lld or more, found %lld", arg,
                        static_cast<long long>(low), static_cast<long long>(*value));
  }
  return Error::Ok;
}

struct Axis {
  std::int64_t in, kernel, stride, padding, dilation, adjust, out;
};

Error read_axis(const KernelContext& context, int d, int dims, bool transposed, Axis& axis) {
  axis.in = context.tensor(0).size(d + 2);
  axis.kernel = context.tensor(1).size(d + 2);
  axis.adjust = 0;
  WB_TRY(get_entry(context, 3, d, dims, 1, &axis.stride));
  WB_TRY(get_entry(context, 4, d, dims, 0, &axis.padding));
  WB_TRY(get_entry(context, 5, d, dims, 1, &axis.dilation));
  if (axis.kernel < 1) return context.fail(Error::InvalidArgument, "argument 1 (weight): an empty kernel");
  const std::int64_t extent = axis.dilation * (axis.kernel - 1) + 1;
  if (transposed) {
    WB_TRY(get_entry(context, 7, d, dims, 0, &axis.adjust));
    axis.out = (axis.in - 1) * axis.stride - 2 * axis.padding + extent + axis.adjust;
  } else {
    const std::int64_t room = axis.in + 2 * axis.padding - extent;
    axis.out = room < 0 ? -1 : room / axis.stride + 1;
  }
  if (axis.out < 0 || axis.out >= kLimit) {
    return context.fail(
        Error::InvalidArgument, "a kernel of extent %lld does not fit size %lld with padding %lld in dimension %d",
        static_cast<long long>(extent), static_cast<long long>(axis.in), static_cast<long long>(axis.padding), d + 2);
  }
  return Error::Ok;
}

Error read_channels(const KernelContext& context, ConvGeometry& g) {
  const Tensor& input = context.tensor(0);
  const Tensor& weight = context.tensor(1);
  g.batch = input.size(0);
  g.cin = input.size(1);
  g.groups = context.arg(8).scalar<std::int64_t>();
  if (g.groups < 1 || g.groups >= kLimit) {
    return context.fail(Error::InvalidArgument, "argument 8 (groups): expected 1 or more, found %lld",
                        static_cast<long long>(g.groups));
  }
  const std::int64_t in_channels = g.transposed ? weight.size(0) : weight.size(1) * g.groups;
  g.cout = g.transposed ? weight.size(1) * g.groups : weight.size(0);
  if (in_channels != g.cin || g.cin % g.groups != 0 || g.cout % g.groups != 0 || g.cout >= kLimit) {
    return context.fail(Error::InvalidArgument,
                        "argument 1 (weight): sizes (%d, %d, ...) do not go with %lld input channels in %lld groups",
                        weight.sizes[0], weight.sizes[1], static_cast<long long>(g.cin),
                        static_cast<long long>(g.groups));
  }
  return Error::Ok;
}

}  // namespace

Error read_geometry(KernelContext& context, ConvGeometry& g) {
  const Tensor& input = context.tensor(0);
  const Tensor& weight = context.tensor(1);
  if (input.rank != 3 && input.rank != 4) {
    return context.fail(Error::NotSupported, "argument 0 (input): expected rank 3 or 4, found %d", input.rank);
  }
  WB_TRY(expect_rank(context, 1, input.rank));
  WB_TRY(expect_rank(context, 9, input.rank));
  g.transposed = context.arg(6).payload.as_bool;
  WB_TRY(read_channels(context, g));
  if (context.arg(2).is_tensor()) WB_TRY(expect_vector(context, 2, g.cout));
  const int dims = input.rank - 2;
  Axis y{1, 1, 1, 0, 1, 0, 1};
  Axis x{};
  if (dims == 2) WB_TRY(read_axis(context, 0, dims, g.transposed, y));
  WB_TRY(read_axis(context, dims - 1, dims, g.transposed, x));
  g.h = y.in, g.kh = y.kernel, g.sh = y.stride, g.ph = y.padding, g.dh = y.dilation, g.adjust_h = y.adjust;
  g.w = x.in, g.kw = x.kernel, g.sw = x.stride, g.pw = x.padding, g.dw = x.dilation, g.adjust_w = x.adjust;
  g.oh = y.out, g.ow = x.out;
  g.in = strides4(input);
  g.weight = strides4(weight);
  return Error::Ok;
}

extern const KernelTable table_convolution_geometry;
const KernelTable table_convolution_geometry = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
