// Convert: to another element type, as PyTorch does.
#include "kernels/common/convert.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "engine/names.h"
#include "engine/operator.h"
#include "engine/operators/common/half.h"
#include "engine/operators/common/work.h"

namespace wb::engine::WB_ISA {
namespace {

using kernels::WB_ISA::Lane;

constexpr std::int64_t kPiece = 512;

Error convert_prepare(PrepareContext& context) {
  const ScalarType in = context.operands.inputs[0].dtype;
  const ScalarType out = context.operands.outputs[0].dtype;
  if (kernels::WB_ISA::is_computable(in) && kernels::WB_ISA::is_computable(out)) return Error::Ok;
  return context.setup.fail(Error::NotSupported, "a conversion of %s to %s", name_of(in), name_of(out));
}

Error convert_shape(ShapeContext& /*context*/) { return Error::Ok; }

void convert_piece(ScalarType from, const std::byte* in, ScalarType to, std::byte* out, std::int64_t n) {
  if (from == to) {
    std::memcpy(out, in, static_cast<std::size_t>(n) * element_size(to));
    return;
  }
  if (from == ScalarType::Half && to == ScalarType::Float) {
    return floats_from_halves(in, reinterpret_cast<float*>(out), n);
  }
  if (from == ScalarType::Float && to == ScalarType::Half) {
    return halves_from_floats(reinterpret_cast<const float*>(in), out, n);
  }
  if (from == ScalarType::Bool && to == ScalarType::Float) {
    // Its bytes are 0 and 1: as numbers, which vectorizes.
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
    auto* floats = reinterpret_cast<float*>(out);
    for (std::int64_t i = 0; i < n; ++i) floats[i] = bytes[i] != 0 ? 1.0F : 0.0F;
    return;
  }
  const Lane lane = kernels::WB_ISA::cast_lane(from, to);
  const auto load = kernels::WB_ISA::find_load(from, lane);
  const auto store = kernels::WB_ISA::find_store(to, lane);
  if (kernels::WB_ISA::is_identity(to, lane)) return load(out, in, 1, n);
  if (kernels::WB_ISA::is_identity(from, lane)) return store(out, 1, in, n);
  alignas(64) std::byte block[kPiece * sizeof(std::int64_t)];
  load(block, in, 1, n);
  store(out, 1, block, n);
}

void convert_run(const RunContext& context) {
  const TensorView& in = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const std::int64_t numel = out.shape.numel();
  const auto in_size = static_cast<std::int64_t>(element_size(in.dtype));
  const auto out_size = static_cast<std::int64_t>(element_size(out.dtype));
  split(context.pool, (numel + kPiece - 1) / kPiece, numel, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin * kPiece; i < std::min(numel, end * kPiece); i += kPiece) {
      convert_piece(in.dtype, in.as<const std::byte>() + i * in_size, out.dtype, out.as<std::byte>() + i * out_size,
                    std::min(kPiece, numel - i));
    }
  });
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(convert_convert, {Op::Convert, convert_prepare, convert_shape, convert_run})
