// Constants of dense operators: weights packed, vectors as float.
#pragma once

#include "engine/operator.h"
#include "engine/operators/matmul/packed.h"

namespace wb::engine::WB_ISA::dense {

// A number for a format of packed weights: its kind and the numbers that it depends on, mixed (FNV-1a).
class FormatKey {
 public:
  explicit FormatKey(std::uint64_t kind) { add(static_cast<std::int64_t>(kind)); }
  FormatKey& add(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      value_ = (value_ ^ ((static_cast<std::uint64_t>(number) >> shift) & 0xff)) * 0x100000001b3ULL;
    }
    return *this;
  }
  FormatKey& add(const MatrixSource& source) {
    return add(static_cast<std::int64_t>(source.dtype))
        .add(source.inner)
        .add(source.kernel_h)
        .add(source.kernel_w)
        .add(source.column)
        .add(source.row)
        .add(source.tap_h)
        .add(source.tap_w);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

inline constexpr std::uint64_t kMatrixFormat = 1, kWinogradFormat = 2, kDepthwiseFormat = 3, kPhaseFormat = 4;

// Sets matrix->data (k and n are set) to `count` packed matrices one after the other; the source of the next one stands
// `next` elements further.
Error pack_constant(Setup& setup, const MatrixSource& source, std::int64_t count, std::int64_t next,
                    PackedMatrix* matrix);

// Notes that run never reads input i.
inline void mark_packed(PrepareContext& context, int i) { context.packed_inputs |= std::uint64_t{1} << i; }

// A copy of the constant as float that lives as long as the program (the original may go); null for an input that is
// missing or not constant.
Error constant_floats(PrepareContext& context, std::uint32_t input, const float** data);

}  // namespace wb::engine::WB_ISA::dense
