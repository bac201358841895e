// An operator outside of the project: `example::scaled_square.out(x, scale, *, out)`, out = scale * x * x for float32.
//
//   g++ -std=c++20 -O2 -fPIC -shared scaled_square.cc -o scaled_square.so -I "$(python -c 'import workbench.runtime as
//   r; print(r.include_dir())')" python -c "from workbench.runtime import Runtime;
//   Runtime.get().load_plugin('scaled_square.so')"
#include <workbench_native/core/plugin.h>

namespace {

using wb::Error;
using wb::KernelContext;
using wb::ScalarType;
using wb::Tensor;

// Once, while the method is loaded: everything that the file may have got wrong.
Error prepare(KernelContext& context) {
  if (context.count() != 3) {
    return context.fail(Error::InvalidProgram, "expected 3 arguments, found %u", context.count());
  }
  for (const std::uint32_t i : {0U, 2U}) {
    if (!context.arg(i).is_tensor() || context.tensor(i).dtype != ScalarType::Float) {
      return context.fail(Error::InvalidType, "argument %u: expected a float32 tensor", i);
    }
  }
  if (!context.arg(1).is_scalar()) {
    return context.fail(Error::InvalidType, "argument 1 (scale): expected a number, found %s",
                        wb::name_of(context.arg(1).tag));
  }
  const Tensor& in = context.tensor(0);
  const Tensor& out = context.tensor(2);
  if (in.rank != out.rank) return context.fail(Error::InvalidProgram, "argument 2 (out): expected rank %d", in.rank);
  for (int d = 0; d < in.rank; ++d) {
    if (in.dim_order[d] != out.dim_order[d]) {
      return context.fail(Error::NotSupported, "argument 2 (out): expected the dim order of argument 0");
    }
  }
  return Error::Ok;
}

// Each time: sizes may have changed, everything else is as prepare saw it.
Error execute(KernelContext& context) {
  const Tensor& in = context.tensor(0);
  Tensor& out = context.tensor(2);
  WB_TRY(context.resize(out, in.shape()));
  const auto scale = context.arg(1).scalar<float>();
  const auto* x = in.const_data<float>();
  auto* y = out.mutable_data<float>();
  for (std::int64_t i = 0; i < in.numel(); ++i) y[i] = scale * x[i] * x[i];
  return Error::Ok;
}

constexpr wb::Kernel kernels[] = {{"example::scaled_square.out", prepare, execute}};
constexpr wb::Plugin plugin = {.name = "scaled_square", .kernels = kernels, .kernel_count = 1};

}  // namespace

WB_PLUGIN_EXPORT const wb::Plugin* workbench_plugin() { return &plugin; }
