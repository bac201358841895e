#include <algorithm>

#include "kernels/convolution/methods.h"
#include "kernels/gemm/gemm.h"

namespace wb::kernels::WB_ISA {
namespace {

constexpr std::int64_t kSlabBytes = 512 * 1024;  // with a packed block, about what a second-level cache holds
constexpr std::int64_t kDepthwiseSlabBytes = 64 * 1024;
constexpr std::int64_t kSpreadBytes = 1024 * 1024;

std::size_t packed_bytes(std::int64_t n, std::int64_t k, std::size_t element) {
  return element == sizeof(double) ? gemm_scratch<double>(n, k) : gemm_scratch<float>(n, k);
}

// Pixels have one distance in memory, from the first to the last.
bool uniform_pixels(const ConvGeometry& g, const Strides4& strides, std::int64_t h, std::int64_t w) {
  return h <= 1 || g.batch == 0 || strides.h == w * strides.w;
}

bool plan_product(const ConvGeometry& g, std::size_t element, ConvPlan* plan) {
  const auto size = static_cast<std::int64_t>(element);
  plan->method = ConvMethod::Product;
  if (!plan_slab(g, g.cin_group(), kSlabBytes / size, &plan->slab)) return false;
  plan->scratch = round_scratch(static_cast<std::size_t>(g.cin_group() * plan->slab.plane + kSlabSlack) * element) +
                  packed_bytes(plan->slab.block * g.ow, g.depth(), element);
  return true;
}

bool plan_depthwise(const ConvGeometry& g, std::size_t element, ConvPlan* plan) {
  plan->method = ConvMethod::Depthwise;
  if (!plan_slab(g, 1, kDepthwiseSlabBytes / static_cast<std::int64_t>(element), &plan->slab)) return false;
  plan->scratch = round_scratch(static_cast<std::size_t>(g.taps()) * sizeof(std::int64_t)) +
                  round_scratch(static_cast<std::size_t>(g.ow) * element) +
                  round_scratch(static_cast<std::size_t>(plan->slab.plane + kSlabSlack) * element);
  return true;
}

bool plan_transposed(const ConvGeometry& g, std::size_t element, ConvPlan* plan) {
  plan->method = ConvMethod::Transposed;
  const std::int64_t limit = kSpreadBytes / static_cast<std::int64_t>(element);
  std::int64_t row = 0;  // products of one channel and input row
  if (__builtin_mul_overflow(g.taps(), std::max<std::int64_t>(g.w, 1), &row)) return false;
  plan->block_rows = std::clamp<std::int64_t>(limit / row, 1, std::max<std::int64_t>(g.h, 1));
  plan->block_channels =
      std::clamp<std::int64_t>(limit / (row * plan->block_rows), 1, std::max<std::int64_t>(g.cout_group(), 1));
  plan->scratch = round_scratch(static_cast<std::size_t>(plan->block_channels * row * plan->block_rows) * element) +
                  packed_bytes(plan->block_rows * g.w, g.cin_group(), element);
  return true;
}

}  // namespace

bool plan_convolution(const ConvGeometry& g, bool out_channels_inner, std::size_t element, ConvPlan* plan) {
  if (g.transposed) return plan_transposed(g, element, plan);
  const bool plain = g.sh == 1 && g.sw == 1 && g.ph == 0 && g.pw == 0;
  if (g.taps() == 1 && plain && uniform_pixels(g, g.in, g.h, g.w)) {
    plan->method = ConvMethod::Pointwise;
    plan->scratch = packed_bytes(std::max(g.pixels(), g.cout_group()), g.cin_group(), element);
    return true;
  }
  if (g.cin_group() == 1 && g.groups > 1) {
    if (g.cout_group() == 1 && g.in.c == 1 && out_channels_inner) {
      plan->method = ConvMethod::DepthwiseChannels;
      plan->scratch = round_scratch(static_cast<std::size_t>(g.taps() * g.cin) * element);
      return true;
    }
    return plan_depthwise(g, element, plan);
  }
  return plan_product(g, element, plan);
}

extern const KernelTable table_convolution_plan;
const KernelTable table_convolution_plan = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
