// The checks that layer and group norm share: same roles, at other places among the arguments.
#pragma once

#include "kernels/dense.h"

namespace wb::kernels::WB_ISA {

struct NormArguments {
  std::uint32_t input, weight, bias, out, mean, rstd;
};

// Tags by `signature`; floating-point dtypes; an output of the input's dtype and rank. Sets the lane to compute in.
inline Error check_norm(KernelContext& context, const char* signature, const NormArguments& at, Lane* lane) {
  WB_TRY(check_args(context, signature));
  for (const std::uint32_t arg : {at.input, at.out, at.mean, at.rstd}) WB_TRY(expect_floating(context, arg));
  for (const std::uint32_t arg : {at.weight, at.bias}) {
    if (context.arg(arg).is_tensor()) WB_TRY(expect_floating(context, arg));
  }
  WB_TRY(expect_same_dtype(context, at.input, at.out));
  WB_TRY(expect_rank(context, at.out, context.tensor(at.input).rank));
  *lane = float_lane(context.tensor(at.input).dtype);
  return Error::Ok;
}

}  // namespace wb::kernels::WB_ISA
