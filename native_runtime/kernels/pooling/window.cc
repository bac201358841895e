#include "kernels/pooling/window.h"

namespace wb::kernels::WB_ISA {
namespace {

constexpr std::int64_t kLimit = std::int64_t{1} << 31;

// The entry for dimension `d` of an int[] of one or two numbers; `missing` if the list is empty.
Error get_entry(const KernelContext& context, std::uint32_t arg, std::size_t d, std::int64_t low, std::int64_t missing,
                std::int64_t* value) {
  *value = missing;
  if (arg == 0) return Error::Ok;
  const std::span<const std::int64_t> list = context.arg(arg).payload.int_list.get();
  if (list.empty() && missing >= low) return Error::Ok;
  if (list.size() != 1 && list.size() != 2) {
    return context.fail(Error::InvalidArgument, "argument %u: expected 1 or 2 numbers, found %zu", arg, list.size());
  }
  *value = list[list.size() == 1 ? 0 : d];
  if (*value < low || *value >= kLimit) {
    return context.fail(Error::InvalidArgument, "argument %u: %lld is out of range", arg,
                        static_cast<long long>(*value));
  }
  return Error::Ok;
}

}  // namespace

Error read_planes(const KernelContext& context, std::uint32_t out_arg, Planes* planes) {
  const Tensor& in = context.tensor(0);
  if (in.rank != 3 && in.rank != 4) {
    return context.fail(Error::NotSupported, "argument 0: expected rank 3 or 4, found %d", in.rank);
  }
  WB_TRY(expect_rank(context, out_arg, in.rank));
  planes->batch = in.rank == 4 ? in.size(0) : 1;
  planes->channels = in.size(in.rank - 3);
  return Error::Ok;
}

Error read_window(const KernelContext& context, const WindowArgs& args, WindowAxis* axes) {
  const Tensor& in = context.tensor(0);
  const bool ceil_mode = context.arg(args.ceil_mode).payload.as_bool;
  for (std::size_t d = 0; d < 2; ++d) {
    WindowAxis& axis = axes[d];
    axis.in = in.size(in.rank - 2 + static_cast<int>(d));
    WB_TRY(get_entry(context, args.kernel, d, 1, 0, &axis.kernel));
    WB_TRY(get_entry(context, args.stride, d, 1, axis.kernel, &axis.stride));
    WB_TRY(get_entry(context, args.padding, d, 0, 0, &axis.padding));
    WB_TRY(get_entry(context, args.dilation, d, 1, 1, &axis.dilation));
    if (axis.padding > axis.kernel / 2) {
      return context.fail(Error::InvalidArgument, "padding %lld is more than half of the kernel size %lld",
                          static_cast<long long>(axis.padding), static_cast<long long>(axis.kernel));
    }
    const std::int64_t room = axis.in + 2 * axis.padding - axis.dilation * (axis.kernel - 1) - 1;
    const std::int64_t rounded = ceil_mode ? room + axis.stride - 1 : room;
    axis.out = rounded < 0 ? 0 : rounded / axis.stride + 1;
    // The last window must start inside the input or the padding before it.
    if (ceil_mode && (axis.out - 1) * axis.stride >= axis.in + axis.padding) --axis.out;
    if (axis.out < 1 || axis.out >= kLimit) {
      return context.fail(Error::InvalidArgument, "a window of %lld does not fit size %lld",
                          static_cast<long long>(axis.kernel), static_cast<long long>(axis.in));
    }
  }
  return Error::Ok;
}

extern const KernelTable table_pooling_window;
const KernelTable table_pooling_window = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
