// Constants of dense operators: weights packed, vectors as float.
#pragma once

#include <algorithm>

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

// Calls pack(first panel, last panel) for all panels of a right-hand side of k rows and n columns, shared among the
// threads. Some at a time, so that what was read of the source can be given back before the next part is read.
template <typename Pack>
void pack_panels(Setup& setup, const MatrixSource& source, std::int64_t k, std::int64_t n, Pack&& pack) {
  constexpr std::int64_t kGroupElements = 128 * 1024;
  constexpr std::int64_t kPartElements = 16 * 1024;  // worth a thread
  const std::int64_t panels = (n + kPanel - 1) / kPanel;
  const std::int64_t panel_elements = std::max<std::int64_t>(k * kPanel, 1);
  const std::int64_t group = std::max<std::int64_t>(kGroupElements / panel_elements, 1);
  const auto element = static_cast<std::int64_t>(element_size(source.dtype));
  // A column after the other, without gaps: then panels are parts of the source.
  const bool dense = source.column == k && (source.inner_first() || source.taps_first());
  for (std::int64_t first = 0; first < panels; first += group) {
    const std::int64_t last = std::min(first + group, panels);
    const std::int64_t parts = std::min(last - first, (last - first) * panel_elements / kPartElements);
    if (parts < 2) {
      pack(first, last);
    } else {
      Pool::instance().parallel(parts, [&](std::int64_t i, int /*thread*/) {
        pack(first + i * (last - first) / parts, first + (i + 1) * (last - first) / parts);
      });
    }
    if (!dense) continue;
    const std::int64_t columns = std::min(last * kPanel, n) - first * kPanel;
    setup.packed_part(static_cast<const std::byte*>(source.data) + first * kPanel * k * element,
                      static_cast<std::size_t>(columns * k * element));
  }
}

// Notes that run never reads input i.
inline void mark_packed(PrepareContext& context, int i) { context.packed_inputs |= std::uint64_t{1} << i; }

// A copy of the constant as float that lives as long as the program (the original may go); null for an input that is
// missing or not constant.
Error constant_floats(PrepareContext& context, std::uint32_t input, const float** data);

}  // namespace wb::engine::WB_ISA::dense
