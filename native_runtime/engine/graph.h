// The graph that the engine runs. A front end (a backend that reads its blob) builds it with GraphBuilder; the compiler
// rewrites it (layout, fusion) and makes a Program of it.
//
// A node whose values are quantized computes what it would compute of the numbers that they stand for, and quantizes
// the result. Where an operator has no method for integers, a pass puts Dequantize and Quantize nodes round it.
//
// All values are dense and stand in memory in the order of their sizes. Images are N, H, W, C: a front end whose images
// are N, C, H, W says so with Transpose nodes, and the layout pass moves, cancels and merges them.
//
// Sizes are upper bounds where a dimension is dynamic. Whatever a node needs to know about sizes follows from those of
// its inputs, so that a program runs on any smaller sizes without being compiled again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/scalar_type.h"

namespace wb::engine {

inline constexpr int kMaxRank = 8;
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = 0xffffffffU;

struct Shape {
  std::int64_t sizes[kMaxRank] = {};
  std::uint8_t rank = 0;

  [[nodiscard]] std::int64_t numel() const {
    std::int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= sizes[d];
    return count;
  }
  bool operator==(const Shape& other) const {
    if (rank != other.rank) return false;
    for (int d = 0; d < rank; ++d) {
      if (sizes[d] != other.sizes[d]) return false;
    }
    return true;
  }
};

enum class ValueKind : std::uint8_t { Input, Output, Constant, Temporary };

// How the integers of a value stand for numbers: number = (integer - zero point) scale.
struct Quantization {
  enum class Kind : std::uint8_t {
    None,
    PerTensor,   // `scale`, `zero_point`
    PerChannel,  // a constant: index i along `axis` has scales[i], and zero_points[i] if they are given
    PerGroup,    // a constant [n, k]: row r, column c has scales[r ceil(k / group) + c / group]
    PerRow,      // found at run time for each row of the last dimension: RowQuantization stands behind the integers
  } kind = Kind::None;
  // 4: of a constant whose integers are 0 to 15. Two stand in a byte, the first in its low half; each row of the last
  // dimension begins a byte.
  std::uint8_t bits = 8;
  int axis = 0;
  std::int64_t group = 0;
  float scale = 1;
  std::int32_t zero_point = 0;
  const float* scales = nullptr;
  const std::int32_t* zero_points = nullptr;  // PerChannel; null: zero_point for all

  [[nodiscard]] bool present() const { return kind != Kind::None; }
};
// The same integers stand for the same numbers.
[[nodiscard]] bool same_quantization(const Quantization& a, const Quantization& b);

// Of each row of a value quantized PerRow; they stand after its integers, from the next multiple of 64 bytes on.
struct RowQuantization {
  float scale = 1;
  std::int32_t zero_point = 0;
};

struct Value {
  ValueKind kind = ValueKind::Temporary;
  ScalarType dtype = ScalarType::Float;
  Shape shape;
  std::uint8_t dynamic = 0;  // bit d: dimension d may be smaller than shape.sizes[d]
  // Of Input and Output: which one. Inputs and outputs are numbered apart, each from 0.
  std::uint32_t external = 0;
  // Of Constant: its elements, aligned to their size. They may go once the program is compiled, unless `keep` is set.
  const void* data = nullptr;
  // Of a value of Char or Byte (activations, weights) or Int (a bias) that stands for numbers.
  Quantization quantization;
};

// Bytes of a value, with what its quantization adds.
[[nodiscard]] std::size_t bytes_of(const Value& value);

// What a node computes. Shapes are given as the operator sees them; ... stands for any number of dimensions.
enum class Op : std::uint8_t {
  // out = fn(in0, in1, in2) element by element, inputs broadcast as in PyTorch. After fusion: a program of many.
  Pointwise,
  // [..., m, k] x [..., k, n] (+ [n]) -> [..., m, n]; leading dimensions broadcast. `transpose_b`: in1 is [..., n, k].
  // Inputs: a, b, bias or kNoValue.
  MatMul,
  // [n, h, w, cin] -> [n, oh, ow, cout]. Inputs: x, weight (constant, see WeightOrder), bias [cout] or kNoValue.
  Convolution,
  // The gradient of Convolution with regard to its input: [n, h, w, cin] -> [n, oh, ow, cout].
  TransposedConvolution,
  // [n, h, w, c] -> [n, oh, ow, c]
  MaxPool,
  AvgPool,
  // Over the dimensions of `mask`; they stay with size 1 if `keep`.
  Reduce,
  // Index of the largest (smallest) element along `axis`, int64.
  ArgReduce,
  // Over `axis`.
  Softmax,
  // Over the last `axis` dimensions: (x - mean) / sqrt(var + eps) weight + bias. Inputs: x, weight, bias (or kNoValue).
  LayerNorm,
  RmsNorm,  // x / sqrt(mean(x^2) + eps) weight
  // [n, ..., c], statistics over ... and each of `groups` groups of c. Inputs: x, weight [c], bias [c] (or kNoValue).
  GroupNorm,
  // softmax(q k^T scale + mask) v for q [..., l, d], k [..., s, d], v [..., s, e], mask broadcast to [..., l, s]
  // (float,
  // or bool: true takes part) or kNoValue. `causal`: key j takes part for j <= i. Heads of k and v may be fewer
  // (grouped).
  Attention,
  // in1 picks rows of in0 [n, d]: ids [...] -> [..., d]
  Embedding,
  // in0 along `axis` by indices in1 (1-D)
  Gather,
  // Inputs: x, h0 or kNoValue, c0 or kNoValue (Lstm only), then for each layer and direction: weight_ih [g H, I],
  // weight_hh [g H, H], bias_ih, bias_hh ([g H] or kNoValue). Gates stand as in PyTorch (i f g o; r z n).
  // x is [t, n, i] or, if `batch_first`, [n, t, i]. Outputs: y, h, c (Lstm only); each may be kNoValue.
  Lstm,
  Gru,
  // out dimension d is in dimension permutation[d]
  Transpose,
  // Sizes of the result: `sizes`
  Reshape,
  // in0 broadcast to `sizes`
  Expand,
  // Along `axis`
  Concat,
  // Elements begin, begin + step, ... below end along `axis`; negative numbers count from the end
  Slice,
  // `before` and `after` each dimension; negative ones cut
  Pad,
  // [n, h, w, c] -> [n, oh, ow, c]
  Upsample,
  // To the dtype of the output, as PyTorch converts
  Convert,
  // in0 itself
  Copy,
  // in0 (numbers, or integers that stand for some) as integers that stand for them as the output's quantization says:
  // clamp(round(x / scale) + zero point), halves to even. PerRow: finds scale and zero point of each row so that its
  // smallest and largest number, and 0, are in range.
  Quantize,
  // The numbers that the integers of in0 stand for
  Dequantize,
};
inline constexpr int kOpCount = static_cast<int>(Op::Dequantize) + 1;

// Functions of Pointwise nodes and of epilogues. a and b are the parameters (Pointwise::a, b), x, y, z the inputs.
enum class Fn : std::uint8_t {
  // one input
  Identity,
  Abs,
  Neg,
  Ceil,
  Floor,
  Round,
  Trunc,
  Sign,
  Square,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Exp,
  Expm1,
  Log,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Erf,
  Sigmoid,
  Silu,
  HardSigmoid,
  HardSwish,
  Gelu,      // x/2 (1 + erf(x / sqrt 2))
  GeluTanh,  // its approximation by tanh
  Mish,
  Softplus,   // a: beta, b: threshold
  Elu,        // x > 0 ? x : a (exp(x) - 1)
  LeakyRelu,  // x >= 0 ? x : a x
  Clamp,      // min(max(x, a), b); NaN stays
  PowScalar,  // x^a
  AddScalar,
  MulScalar,  // x + a, x a
  ReverseSubScalar,
  ReverseDivScalar,  // a - x, a / x
  LogicalNot,
  IsNan,
  // two inputs
  Add,
  Sub,
  Mul,
  Div,
  Maximum,
  Minimum,
  Pow,
  SquaredDifference,
  Prelu,
  Copysign,
  Atan2,
  Fmod,
  Remainder,
  AddScaled,  // x + a y
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  LogicalAnd,
  LogicalOr,
  LogicalXor,  // bool
  // three inputs
  Where,  // x ? y : z
};
inline constexpr int kFnCount = static_cast<int>(Fn::Where) + 1;
[[nodiscard]] int arity_of(Fn fn);

enum class ReduceFn : std::uint8_t { Sum, Mean, Max, Min, Prod, Any, All, Variance, L1, L2 };

// One step of a pointwise program. Operands are registers: register 0 is what the program starts from (in0, or the
// element that the fused producer computed), further ones are made by the steps in order; inputs have numbers from
// kInputRegister on.
inline constexpr std::uint8_t kInputRegister = 128;
struct PointwiseStep {
  Fn fn = Fn::Identity;
  std::uint8_t operands[3] = {};
  float a = 0, b = 0;
  std::uint32_t source = 0;  // index into Node::sources
};

// Where an element of a convolution's weight stands: weight[o][i][y][x] at o cout + i cin + y h + x w, in elements; i
// counts within a group. PyTorch's is {cin kh kw, kh kw, kw, 1}; XNNPACK's is {kh kw cin, 1, kw cin, cin}.
struct WeightOrder {
  std::int64_t cout = 0, cin = 0, h = 0, w = 0;
};

struct Window {
  std::int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;  // may be negative: rows are cut
  bool ceil_mode = false;                                                 // pools
  bool count_include_pad = false;                                         // AvgPool
  std::int64_t divisor = 0;                                               // AvgPool; 0: the number of elements
};

// A size of a result: a number, a dimension of in0, or what is left over.
struct SizeRule {
  static constexpr std::int64_t kInfer = -1;
  std::int64_t value = 0;       // >= 0, or kInfer (one of a Reshape)
  std::int8_t from_input = -1;  // >= 0: this dimension of in0, times value if value > 0
};

// How the heads of an operand of Attention stand, so that transposes round it need not be computed.
struct HeadOrder {
  enum class Kind : std::uint8_t {
    Outer,    // [..., h, l, d], as Op says
    Inner,    // [..., l, h, d]
    Columns,  // [..., l, c]: head i is the columns [begin + i size, begin + (i + 1) size)
  } kind = Kind::Outer;
  std::int64_t count = 0, size = 0, begin = 0;  // Columns
};

// The attributes of all operators; each reads those that its comment in Op names.
struct Attributes {
  // Convolution, TransposedConvolution, pools
  Window window;
  WeightOrder weight_order;
  std::int64_t groups = 1;
  std::int64_t output_padding_h = 0, output_padding_w = 0;
  // MatMul
  bool transpose_b = false;
  // Reduce, ArgReduce, Softmax, LayerNorm, Gather, Concat, Slice
  ReduceFn reduce = ReduceFn::Sum;
  std::uint32_t mask = 0;
  bool keep = false;
  int axis = 0;
  bool log = false;       // Softmax
  bool largest = true;    // ArgReduce
  double correction = 1;  // Variance
  double eps = 0;
  // Attention
  double scale = 1;
  bool causal = false;
  HeadOrder head_orders[4];  // of q, k, v, and the output
  // Lstm, Gru
  std::int64_t layers = 1, hidden = 0;
  bool bidirectional = false, batch_first = false;
  // Transpose, Reshape, Expand, Slice, Pad
  std::uint8_t permutation[kMaxRank] = {};
  SizeRule sizes[kMaxRank];
  std::uint8_t rank = 0;  // of sizes
  std::int64_t begin = 0, end = 0, step = 1;
  std::int64_t before[kMaxRank] = {}, after[kMaxRank] = {};
  enum class PadMode : std::uint8_t { Constant, Reflect, Replicate } pad_mode = PadMode::Constant;
  double fill = 0;
  // Upsample
  enum class UpsampleMode : std::uint8_t { Nearest, Bilinear } upsample_mode = UpsampleMode::Bilinear;
  bool align_corners = false;
  double scale_h = 0, scale_w = 0;  // output / input; 0: from the sizes
  // Upsample to fixed sizes when > 0
  std::int64_t out_h = 0, out_w = 0;
};

struct Node {
  Op op = Op::Copy;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  // Pointwise: what is computed (a front end gives one step). Others: what is done to each element of output 0 before
  // it is stored (fusion adds it); register 0 is that element. Operands from kInputRegister on are post_inputs of the
  // node, of Pointwise its inputs.
  std::vector<PointwiseStep> post;
  std::vector<ValueId> post_inputs;
  // The front end's nodes that this one stands for, first to last; fusion appends. They name the events of the trace.
  std::vector<std::int32_t> sources;
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;  // in an order in which every value is written before it is read
  std::uint32_t inputs = 0, outputs = 0;
};

}  // namespace wb::engine
