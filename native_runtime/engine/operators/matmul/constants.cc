#include "engine/operators/matmul/constants.h"

namespace wb::engine::WB_ISA::dense {

Error pack_constant(Setup& setup, const MatrixSource& source, std::int64_t count, std::int64_t next,
                    PackedMatrix* matrix) {
  const std::uint64_t format =
      FormatKey(kMatrixFormat).add(source).add(matrix->k).add(matrix->n).add(count).add(next).value();
  bool ready = false;
  const std::size_t bytes = matrix->bytes() * static_cast<std::size_t>(count);
  auto* packed = static_cast<float*>(setup.allocate_packed(source.data, format, bytes, &ready));
  if (packed == nullptr) {
    return setup.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes of packed weights", bytes);
  }
  matrix->data = packed;
  if (ready) return Error::Ok;
  const auto element = static_cast<std::int64_t>(element_size(source.dtype));
  for (std::int64_t i = 0; i < count; ++i) {
    MatrixSource one = source;
    one.data = static_cast<const std::byte*>(source.data) + i * next * element;
    float* const to = packed + i * matrix->k * matrix->columns();
    pack_panels(setup, one, matrix->k, matrix->n,
                [&](std::int64_t first, std::int64_t last) { pack_matrix(*matrix, one, first, last, to); });
  }
  return Error::Ok;
}

Error constant_floats(PrepareContext& context, std::uint32_t input, const float** data) {
  *data = nullptr;
  if (input >= context.operands.input_count) return Error::Ok;
  Setup& setup = context.setup;
  const TensorView& view = context.operands.inputs[input];
  if (!view.present || !view.constant) return Error::Ok;
  const std::int64_t n = view.shape.numel();
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
  auto* copy = static_cast<float*>(setup.allocate(bytes == 0 ? 64 : bytes));
  if (copy == nullptr) return setup.fail(Error::MemoryAllocationFailed, "no memory for a constant of %zu bytes", bytes);
  convert_floats(view.data, view.dtype, n, copy);
  *data = copy;
  mark_packed(context, static_cast<int>(input));
  return Error::Ok;
}

}  // namespace wb::engine::WB_ISA::dense
