// What a convolution computes, independent of how.
//
//   out[n, co, oy, ox] = bias[co] + sum over ci, ky, kx of
//       weight[co, ci, ky, kx] input[n, g(co) + ci, oy sh - ph + ky dh, ox sw - pw + kx dw]
//
// A transposed convolution spreads each input over the outputs that this sum would have read. 1-D convolutions have
// height 1.
#pragma once

#include "kernels/dense.h"

namespace wb::kernels::WB_ISA {

// Strides of the four dimensions of a tensor, in elements.
struct Strides4 {
  std::int64_t n = 0, c = 0, h = 0, w = 0;
};

struct ConvGeometry {
  std::int64_t batch = 0, cin = 0, cout = 0, groups = 1;
  std::int64_t h = 0, w = 0, oh = 0, ow = 0, kh = 1, kw = 1;
  std::int64_t sh = 1, sw = 1, ph = 0, pw = 0, dh = 1, dw = 1, adjust_h = 0, adjust_w = 0;
  bool transposed = false;
  Strides4 in, out, weight;  // of weight: n is its first dimension, c its second

  [[nodiscard]] std::int64_t cin_group() const { return cin / groups; }
  [[nodiscard]] std::int64_t cout_group() const { return cout / groups; }
  [[nodiscard]] std::int64_t taps() const { return kh * kw; }
  [[nodiscard]] std::int64_t depth() const { return cin_group() * taps(); }  // terms of the sum
  [[nodiscard]] std::int64_t pixels() const { return oh * ow; }
  // The weight in memory is [first][second][ky][kx].
  [[nodiscard]] bool weight_contiguous() const {
    const std::int64_t second = transposed ? cout_group() : cin_group();
    return (kw == 1 || weight.w == 1) && (kh == 1 || weight.h == kw) && (second == 1 || weight.c == taps()) &&
           weight.n == second * taps();
  }
};

inline Strides4 strides4(const Tensor& tensor) {
  if (tensor.rank == 3) return {tensor.strides[0], tensor.strides[1], 0, tensor.strides[2]};
  return {tensor.strides[0], tensor.strides[1], tensor.strides[2], tensor.strides[3]};
}

// Reads the arguments of aten::convolution (input, weight, bias, stride, padding, dilation, transposed, output_padding,
// groups) into the geometry, and checks all of them.
Error read_geometry(KernelContext& context, ConvGeometry& geometry);

// The operands of one convolution as arrays of the type to compute in.
template <typename T>
struct ConvData {
  const T* input;
  const T* weight;  // contiguous
  const T* bias;    // may be null
  T* out;
};

}  // namespace wb::kernels::WB_ISA
