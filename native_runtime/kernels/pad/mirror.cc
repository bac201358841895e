// reflection_pad and replication_pad of the last 1, 2 or 3 dimensions.
#include <cstring>

#include "kernels/common/strided_copy.h"

namespace wb::kernels::WB_ISA {
namespace {

// The place in [0, size) that position p of a padded dimension shows.
std::int64_t reflect(std::int64_t p, std::int64_t size) {
  if (p < 0) p = -p;
  return p >= size ? 2 * (size - 1) - p : p;
}
std::int64_t replicate(std::int64_t p, std::int64_t size) { return p < 0 ? 0 : p >= size ? size - 1 : p; }

// Arguments: self, padding (from the last dimension: before, after, ...), out.
template <int dims, bool kReflect>
struct Pad {
  struct State {
    bool ready = false;
  };
  static Error check(KernelContext& context, State& /*state*/) {
    WB_TRY(check_args(context, "tlt"));
    return expect_same_dtype(context, 0, 2);
  }
  static Error plan(KernelContext& context, State& /*state*/) {
    const Tensor& self = context.tensor(0);
    const auto pad = context.arg(1).payload.int_list.get();
    if (pad.size() != 2 * dims || self.rank < dims) {
      return context.fail(Error::InvalidArgument, "argument 1 (padding): %zu entries for rank %d", pad.size(),
                          self.rank);
    }
    Shape shape;
    shape.assign(self);
    for (int k = 0; k < dims; ++k) {
      const int d = self.rank - 1 - k;
      const std::int64_t size = self.sizes[d];
      const std::int64_t most = kReflect ? size - 1 : INT32_MAX;
      const std::int64_t before = pad[2 * k];
      const std::int64_t after = pad[2 * k + 1];
      const bool valid = size > 0 && before > INT32_MIN && after > INT32_MIN && before <= most && after <= most &&
                         size + before + after > 0 && size + before + after <= INT32_MAX;
      if (!valid) {
        return context.fail(Error::InvalidArgument, "argument 1 (padding): %lld and %lld for size %lld",
                            static_cast<long long>(before), static_cast<long long>(after),
                            static_cast<long long>(size));
      }
      shape.sizes[d] = static_cast<std::int32_t>(size + before + after);
    }
    return context.resize(context.tensor(2), shape.span());
  }
  // Rows of the last dimension: the middle is a strided copy, the borders go element by element.
  static Error run(KernelContext& context, State& /*state*/) {
    const Tensor& self = context.tensor(0);
    const Tensor& out = context.tensor(2);
    if (out.numel() == 0) return Error::Ok;
    const auto pad = context.arg(1).payload.int_list.get();
    const auto bytes = static_cast<std::int64_t>(element_size(self.dtype));
    const auto place = [&](int d, std::int64_t p) -> std::int64_t {
      const int k = out.rank - 1 - d;
      if (k >= dims) return p;
      const std::int64_t shifted = p - pad[2 * k];
      return kReflect ? reflect(shifted, self.sizes[d]) : replicate(shifted, self.sizes[d]);
    };
    const int last = out.rank - 1;
    std::int64_t index[kMaxRank] = {};
    while (true) {
      std::int64_t from = 0;
      std::int64_t to = 0;
      for (int d = 0; d < last; ++d) {
        from += place(d, index[d]) * self.strides[d];
        to += index[d] * out.strides[d];
      }
      for (std::int64_t p = 0; p < out.sizes[last]; ++p) {
        std::memcpy(static_cast<std::byte*>(out.data) + (to + p * out.strides[last]) * bytes,
                    static_cast<const std::byte*>(self.data) + (from + place(last, p) * self.strides[last]) * bytes,
                    static_cast<std::size_t>(bytes));
      }
      int d = last - 1;
      for (; d >= 0; --d) {
        if (++index[d] < out.sizes[d]) break;
        index[d] = 0;
      }
      if (d < 0) return Error::Ok;
    }
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(pad_mirror, planned<Pad<1, true>>("aten::reflection_pad1d.out"),
           planned<Pad<2, true>>("aten::reflection_pad2d.out"), planned<Pad<3, true>>("aten::reflection_pad3d.out"),
           planned<Pad<1, false>>("aten::replication_pad1d.out"), planned<Pad<2, false>>("aten::replication_pad2d.out"),
           planned<Pad<3, false>>("aten::replication_pad3d.out"))
