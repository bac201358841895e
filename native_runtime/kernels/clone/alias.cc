// aten::alias_copy.out: a copy of the input, same shape and dim order.
#include <cstring>

#include "kernels/registry.h"

namespace wb::kernels::WB_ISA {
namespace {

Error prepare(KernelContext& context) {
  if (context.count() != 2) {
    return context.fail(Error::InvalidProgram, "expected 2 arguments, found %u", context.count());
  }
  for (std::uint32_t i = 0; i < 2; ++i) {
    if (!context.arg(i).is_tensor()) {
      return context.fail(Error::InvalidType, "argument %u: expected Tensor, found %s", i, name_of(context.arg(i).tag));
    }
  }
  if (context.tensor(0).dtype != context.tensor(1).dtype) {
    return context.fail(Error::InvalidType, "argument 1 (out): expected %s as in argument 0, found %s",
                        name_of(context.tensor(0).dtype), name_of(context.tensor(1).dtype));
  }
  return Error::Ok;
}

Error execute(KernelContext& context) {
  const Tensor& in = context.tensor(0);
  Tensor& out = context.tensor(1);
  WB_TRY(context.resize(out, in.shape()));
  if (in.nbytes() != 0) std::memcpy(out.data, in.data, in.nbytes());
  return Error::Ok;
}

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(clone_alias, {"aten::alias_copy.out", prepare, execute})
