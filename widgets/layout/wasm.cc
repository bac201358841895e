// Exports for WebAssembly; engine.ts is their typed face. Plain pointers and numbers: the caller writes the columns
// into memory from `layout_alloc` and reads the result's before `layout_release`.
#include <cstdint>
#include <cstdlib>

#include "layout.h"

#define WB_EXPORT(name) extern "C" __attribute__((export_name(#name), used))

// The library's own would print what went wrong, and with it bring in all of printf: 10 KB for nothing, as the caller
// sees a trap either way.
_LIBCPP_BEGIN_NAMESPACE_STD
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) noexcept { std::abort(); }
_LIBCPP_END_NAMESPACE_STD

namespace {

wb::layout::Output result;
wb::layout::Status status;

template <typename T>
std::span<const T> column(const T* data, int32_t size) {
  return {data, static_cast<size_t>(size)};
}

}  // namespace

WB_EXPORT(layout_alloc) void* layout_alloc(int32_t bytes) { return std::malloc(static_cast<size_t>(bytes)); }

WB_EXPORT(layout_free) void layout_free(void* memory) { std::free(memory); }

// `boxes`: width, height, anchor_x, anchor_y, [n] each; `edges`: src, dst, weight, [m] each. Returns the fault, 0:
// none.
WB_EXPORT(layout_run)
int32_t layout_run(int32_t n, int32_t m, const float* boxes, const int32_t* edges, float gap_x, float gap_y,
                   float margin, int32_t sweeps, int32_t max_span) {
  const wb::layout::Input input{column(boxes, n),
                                column(boxes + n, n),
                                column(edges, m),
                                column(edges + m, m),
                                column(edges + 2 * static_cast<size_t>(m), m),
                                column(boxes + 2 * static_cast<size_t>(n), n),
                                column(boxes + 3 * static_cast<size_t>(n), n),
                                {gap_x, gap_y, margin, sweeps, max_span}};
  result = {};
  status = wb::layout::layout(input, result);
  return static_cast<int32_t>(status.fault);
}

WB_EXPORT(layout_fault_index) int32_t layout_fault_index() { return status.index; }
WB_EXPORT(layout_fault_text) const char* layout_fault_text() { return wb::layout::describe(status.fault); }

WB_EXPORT(layout_x) const float* layout_x() { return result.x.data(); }
WB_EXPORT(layout_y) const float* layout_y() { return result.y.data(); }
WB_EXPORT(layout_width) float layout_width() { return result.width; }
WB_EXPORT(layout_height) float layout_height() { return result.height; }
WB_EXPORT(layout_edge_start) const int32_t* layout_edge_start() { return result.edge_start.data(); }
WB_EXPORT(layout_points) const float* layout_points() { return result.points.data(); }
WB_EXPORT(layout_point_count) int32_t layout_point_count() { return static_cast<int32_t>(result.points.size() / 2); }

WB_EXPORT(layout_release) void layout_release() { result = {}; }
