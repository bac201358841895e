// The engine of pointwise operators.
#include "kernels/common/pointwise.h"

#include <cmath>
#include <limits>

namespace wb::kernels::WB_ISA {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Rows below this length are gathered into blocks instead of being run one by one.
constexpr std::int64_t kShortRow = 32;

// The one element of a tensor argument.
Error read_element(KernelContext& context, std::uint32_t arg, double* f, std::int64_t* i) {
  const Tensor& tensor = context.tensor(arg);
  WB_TRY(expect_computable(context, arg));
  if (tensor.numel() != 1) {
    return context.fail(Error::InvalidArgument, "argument %u: expected one element, found %lld", arg,
                        static_cast<long long>(tensor.numel()));
  }
  if (tensor.data == nullptr) return Error::Ok;  // not planned yet, while the method is prepared
  find_load(tensor.dtype, Lane::F64)(f, tensor.data, 1, 1);
  find_load(tensor.dtype, Lane::I64)(i, tensor.data, 1, 1);
  return Error::Ok;
}

Error read_params(KernelContext& context, PointwiseState& state) {
  for (int k = 0; k < state.params; ++k) {
    const EValue& arg = context.arg(state.param_args[k]);
    double f = arg.scalar<double>();
    std::int64_t i = arg.tag == Tag::Double && !(std::fabs(f) < 9.2e18) ? (f < 0 ? INT64_MIN : INT64_MAX)
                                                                        : arg.scalar<std::int64_t>();
    switch (state.param_letters[k]) {
      case 'l':
        if (arg.is_none()) f = -kInfinity, i = INT64_MIN;
        break;
      case 'h':
        if (arg.is_none()) f = kInfinity, i = INT64_MAX;
        break;
      case 'g':
        if (arg.string() != "none" && arg.string() != "tanh") {
          return context.fail(Error::InvalidArgument, "argument %u (approximate): expected none or tanh",
                              state.param_args[k]);
        }
        i = arg.string() == "tanh" ? 1 : 0;
        break;
      case 'm':
        if (arg.is_none()) {
          i = 0;
        } else if (arg.string() == "trunc" || arg.string() == "floor") {
          i = arg.string() == "trunc" ? 1 : 2;
        } else {
          return context.fail(Error::InvalidArgument, "argument %u (rounding_mode): expected trunc, floor or None",
                              state.param_args[k]);
        }
        break;
      case 'v': WB_TRY(read_element(context, state.param_args[k], &f, &i)); break;
      default: break;
    }
    state.values.f[k] = f;
    state.values.i[k] = i;
  }
  return Error::Ok;
}

void read_number(const KernelContext& context, PointwiseState& state) {
  const EValue& arg = context.arg(state.number_arg);
  switch (state.in_lanes[state.number_operand]) {
    case Lane::F32: state.number.f32 = arg.scalar<float>(); break;
    case Lane::F64: state.number.f = arg.scalar<double>(); break;
    case Lane::Bool: state.number.b = arg.scalar<bool>(); break;
    default: state.number.i = arg.scalar<std::int64_t>(); break;
  }
}

Error read_signature(KernelContext& context, const PointwiseOp& op, PointwiseState& state) {
  char check[sizeof(op.signature.letters) + 1] = {};
  int n = 0;
  for (; op.signature.letters[n] != '\0'; ++n) {
    switch (op.signature.letters[n]) {
      case 't': check[n] = 't'; break;
      case '#':
      case 's': check[n] = 's'; break;
      case 'l':
      case 'h': check[n] = 'S'; break;
      case 'a': check[n] = 'i'; break;
      case 'c':
      case 'v': check[n] = 't'; break;
      case 'g': check[n] = 'z'; break;
      case 'm': check[n] = 'Z'; break;
      default: check[n] = '*'; break;
    }
  }
  check[n] = 't';
  WB_TRY(check_args(context, check));
  state.out_arg = static_cast<std::uint8_t>(n);
  state.params_constant = true;
  for (int i = 0; i < n; ++i) {
    const char letter = op.signature.letters[i];
    const auto arg = static_cast<std::uint8_t>(i);
    if (letter == 't' || letter == 'c') {
      if (letter == 'c') state.channel_mask |= static_cast<std::uint8_t>(1U << state.operands);
      state.tensor_args[state.operands++] = arg;
      ++state.tensors;
    } else if (letter == '#') {
      state.number_operand = static_cast<std::int8_t>(state.operands++);
      state.number_arg = arg;
      state.params_constant = state.params_constant && context.is_constant(arg);
    } else if (letter == 'a') {
      state.axis_arg = arg;
    } else if (letter != '-') {
      state.param_args[state.params] = arg;
      state.param_letters[state.params++] = letter;
      state.params_constant = state.params_constant && context.is_constant(arg) && letter != 'v';
    }
  }
  return Error::Ok;
}

Lane choose_lane(const KernelContext& context, const PointwiseOp& op, const PointwiseState& state) {
  ResultType type;
  for (int k = 0; k < state.operands; ++k) {
    if (op.rule == LaneRule::Select && k == op.mask_operand) continue;
    if (op.rule == LaneRule::First && k > 0) continue;
    if (k == state.number_operand) {
      type.add(context.arg(state.number_arg));
    } else {
      type.add(context.tensor(state.tensor_args[k]));
    }
  }
  if (op.rule == LaneRule::Promote) {
    for (int k = 0; k < state.params; ++k) {
      if (context.arg(state.param_args[k]).is_scalar()) type.add(context.arg(state.param_args[k]));
    }
  }
  ScalarType result = type.get();
  // A 64-bit output asks for 64-bit arithmetic, e.g. float32 inputs of a kernel that writes float64.
  const ScalarType out = context.tensor(state.out_arg).dtype;
  if (op.rule != LaneRule::Logical && op.out_lane == OutLane::Same && out == ScalarType::Double) {
    result = promote(result, ScalarType::Double);
  }
  switch (op.rule) {
    case LaneRule::Logical: return Lane::Bool;
    case LaneRule::First:
    case LaneRule::Float: return result == ScalarType::Double ? Lane::F64 : Lane::F32;
    case LaneRule::Mode:
      if (state.values.i[0] == 0) return result == ScalarType::Double ? Lane::F64 : Lane::F32;
      break;
    default: break;
  }
  const Lane lane = natural_lane(result);
  if (op.rule != LaneRule::Select && lane == Lane::Bool) return Lane::I64;
  return lane;
}

// With `Select`, operands of one dtype are moved as bits.
bool moves_bits(const KernelContext& context, const PointwiseOp& op, const PointwiseState& state, ScalarType* type) {
  *type = context.tensor(state.out_arg).dtype;
  if (state.number_operand >= 0 || element_size(*type) > 8) return false;
  for (int k = 0; k < state.operands; ++k) {
    if (k != op.mask_operand && context.tensor(state.tensor_args[k]).dtype != *type) return false;
  }
  return true;
}

Error choose_conversions(KernelContext& context, PointwiseState& state) {
  for (int k = 0; k < state.operands && k < 3; ++k) {
    if (k == state.number_operand) continue;
    const ScalarType type = context.tensor(state.tensor_args[k]).dtype;
    state.in_sizes[k] = static_cast<std::uint8_t>(element_size(type));
    state.loads[k] = find_load(type, state.in_lanes[k]);
    if (state.loads[k] == nullptr) {
      return context.fail(Error::NotSupported, "argument %u: no kernel for dtype %s", state.tensor_args[k],
                          name_of(type));
    }
  }
  const ScalarType type = context.tensor(state.out_arg).dtype;
  state.out_size = static_cast<std::uint8_t>(element_size(type));
  state.store = find_store(type, state.out_lane);
  if (state.store == nullptr) {
    return context.fail(Error::NotSupported, "argument %u (out): no kernel for dtype %s", state.out_arg, name_of(type));
  }
  if (is_identity(type, state.out_lane)) state.store = nullptr;
  return Error::Ok;
}

// 1-d operands seen as tensors of the first operand's rank, of size 1 in all dimensions but one.
struct Channel {
  std::int32_t sizes[2][kMaxRank];
  std::int64_t strides[2][kMaxRank];
  Tensor views[2];
  int count = 0;
  int rank = 0;
  int axis = 0;
  bool invalid = false;

  Error place(const KernelContext& context, const Tensor& first, std::uint32_t arg) {
    rank = first.rank;
    WB_TRY(get_dim(context, arg, rank, &axis));
    return rank > 0 ? Error::Ok : context.fail(Error::InvalidArgument, "argument 0: a 0-d tensor has no channels");
  }
  const Tensor* add(const Tensor& tensor) {
    invalid = invalid || tensor.rank != 1;
    Tensor& view = views[count];
    for (int d = 0; d < rank; ++d) {
      sizes[count][d] = d == axis && tensor.rank == 1 ? tensor.sizes[0] : 1;
      strides[count][d] = 1;
    }
    view = tensor;
    view.sizes = sizes[count];
    view.strides = strides[count];
    view.rank = static_cast<std::uint8_t>(rank);
    ++count;
    return &view;
  }
};

Error plan(KernelContext& context, PointwiseState& state) {
  const Tensor* inputs[3] = {};
  const Tensor* operands[3] = {};
  int tensors = 0;
  for (int k = 0; k < state.operands; ++k) {
    if (k != state.number_operand) operands[k] = inputs[tensors++] = &context.tensor(state.tensor_args[k]);
  }
  Tensor& out = context.tensor(state.out_arg);
  Channel channel;
  if (state.channel_mask != 0) {
    WB_TRY(channel.place(context, *operands[0], state.axis_arg));
    tensors = 0;
    for (int k = 0; k < state.operands; ++k) {
      if ((state.channel_mask >> k & 1U) != 0) operands[k] = channel.add(*operands[k]);
      inputs[tensors++] = operands[k];
    }
    if (channel.invalid) return context.fail(Error::InvalidArgument, "the parameters of channels have rank 1");
  }
  Shape shape;
  WB_TRY(broadcast(context, inputs, tensors, &shape));
  WB_TRY(context.resize(out, shape.span()));
  // A number is an operand that is broadcast everywhere.
  std::int32_t one = 1;
  std::int64_t step = 0;
  const std::uint8_t order = 0;
  Tensor number;
  number.sizes = &one;
  number.strides = &step;
  number.dim_order = &order;
  for (int k = 0; k < state.operands; ++k) {
    if (operands[k] == nullptr) operands[k] = &number;
  }
  build_nest(out, operands, state.operands, &state.nest);
  state.flat = state.nest.rank == 1 && state.store == nullptr;
  state.scalar_mask = 0;
  for (int k = 0; k < state.operands; ++k) {
    const std::int64_t stride = state.nest.inner_stride(k + 1);
    if (stride == 0) state.scalar_mask |= 1U << k;
    if (state.loads[k] != nullptr && k != state.number_operand) {
      const ScalarType type = context.tensor(state.tensor_args[k]).dtype;
      state.flat = state.flat && is_identity(type, state.in_lanes[k]);
    }
    state.flat = state.flat && (stride == 0 || stride == 1);
  }
  return Error::Ok;
}

struct Blocks {
  alignas(64) std::byte in[3][kBlock * 8];
  alignas(64) std::byte out[kBlock * 8];
};

struct Operands {
  const std::byte* base[3];
  bool direct[3];  // an array of the lane's type already
  std::byte* out;
};

// One row, cut into blocks where an operand must be converted.
void run_row(const PointwiseState& state, const Operands& operands, const Odometer& at, Blocks& blocks) {
  const std::int64_t n = state.nest.inner();
  bool convert = state.store != nullptr;
  for (int k = 0; k < state.operands; ++k) {
    const std::int64_t stride = state.nest.inner_stride(k + 1);
    convert = convert || !operands.direct[k] || (stride != 0 && stride != 1);
  }
  const std::int64_t step = convert ? kBlock : n;
  for (std::int64_t begin = 0; begin < n; begin += step) {
    const std::int64_t count = n - begin < step ? n - begin : step;
    const void* in[3];
    unsigned mask = 0;
    for (int k = 0; k < state.operands; ++k) {
      const std::int64_t stride = state.nest.inner_stride(k + 1);
      const std::byte* from = operands.base[k] + (at.offset[k + 1] + begin * stride) * state.in_sizes[k];
      if (stride == 0) mask |= 1U << k;
      if (operands.direct[k] && (stride == 0 || stride == 1)) {
        in[k] = from;
      } else {
        if (stride != 0 || begin == 0) state.loads[k](blocks.in[k], from, stride, stride == 0 ? 1 : count);
        in[k] = blocks.in[k];
      }
    }
    std::byte* to = operands.out + (at.offset[0] + begin) * state.out_size;
    state.loop(state.store == nullptr ? to : blocks.out, in, mask, count, state.values);
    if (state.store != nullptr) state.store(to, 1, blocks.out, count);
  }
}

// Short rows: several of them make one block.
void run_gathered(const PointwiseState& state, const Operands& operands, Odometer& at, Blocks& blocks) {
  const std::int64_t row = state.nest.inner();
  const std::int64_t rows = kBlock / row;
  unsigned mask = 0;
  for (int k = 0; k < state.operands; ++k) {
    bool single = true;
    for (int d = 0; d < state.nest.rank; ++d) single = single && state.nest.strides[k + 1][d] == 0;
    if (single) mask |= 1U << k;
  }
  bool more = true;
  while (more) {
    std::byte* to = operands.out + at.offset[0] * state.out_size;
    std::int64_t count = 0;
    for (std::int64_t r = 0; r < rows && more; ++r, count += row) {
      for (int k = 0; k < state.operands; ++k) {
        if ((mask >> k & 1U) != 0 && count != 0) continue;
        const std::byte* from = operands.base[k] + at.offset[k + 1] * state.in_sizes[k];
        state.loads[k](blocks.in[k] + static_cast<std::size_t>(count) * lane_size(state.in_lanes[k]), from,
                       state.nest.inner_stride(k + 1), row);
      }
      more = at.next();
    }
    const void* in[3] = {blocks.in[0], blocks.in[1], blocks.in[2]};
    state.loop(state.store == nullptr ? to : blocks.out, in, mask, count, state.values);
    if (state.store != nullptr) state.store(to, 1, blocks.out, count);
  }
}

void run_general(KernelContext& context, const PointwiseState& state) {
  Blocks blocks;
  Operands operands = {};
  for (int k = 0; k < state.operands; ++k) {
    if (k == state.number_operand) {
      operands.base[k] = reinterpret_cast<const std::byte*>(&state.number);
      operands.direct[k] = true;
    } else {
      const Tensor& tensor = context.tensor(state.tensor_args[k]);
      operands.base[k] = static_cast<const std::byte*>(tensor.data);
      operands.direct[k] = is_identity(tensor.dtype, state.in_lanes[k]);
    }
  }
  operands.out = static_cast<std::byte*>(context.tensor(state.out_arg).data);
  Odometer at(state.nest);
  if (state.nest.rank > 1 && state.nest.inner() < kShortRow) {
    run_gathered(state, operands, at, blocks);
    return;
  }
  do {
    run_row(state, operands, at, blocks);
  } while (at.next());
}

// The load of a number operand, for gathered rows: its value is in the lane already.
LoadFunction number_load(Lane lane) {
  switch (lane) {
    case Lane::F32: return find_load(ScalarType::Float, lane);
    case Lane::F64: return find_load(ScalarType::Double, lane);
    case Lane::Bool: return find_load(ScalarType::Bool, lane);
    default: return find_load(ScalarType::Long, lane);
  }
}

}  // namespace

Error pointwise_prepare(KernelContext& context, const PointwiseOp& op) {
  auto* state = context.allocate_state<PointwiseState>();
  if (state == nullptr) return Error::MemoryAllocationFailed;
  WB_TRY(read_signature(context, op, *state));
  WB_TRY(read_params(context, *state));
  for (std::uint32_t i = 0; i < context.count(); ++i) {
    if (context.arg(i).is_tensor() && op.rule != LaneRule::Select) WB_TRY(expect_computable(context, i));
  }
  state->lane = choose_lane(context, op, *state);
  ScalarType type;
  if (op.rule == LaneRule::Select && moves_bits(context, op, *state, &type)) state->lane = raw_lane(element_size(type));
  state->loop = op.loops[static_cast<int>(state->lane)];
  if (state->loop == nullptr) {
    return context.fail(Error::InvalidType, "no kernel for inputs that promote to %s",
                        state->lane == Lane::I64 ? "integers" : "floating point");
  }
  for (int k = 0; k < state->operands; ++k) state->in_lanes[k] = state->lane;
  if (op.rule == LaneRule::Select) state->in_lanes[op.mask_operand] = Lane::Bool;
  state->out_lane = op.out_lane == OutLane::Bool ? Lane::Bool : state->lane;
  WB_TRY(choose_conversions(context, *state));
  if (state->number_operand >= 0) {
    const Lane lane = state->in_lanes[state->number_operand];
    state->loads[state->number_operand] = number_load(lane);
    state->in_sizes[state->number_operand] = static_cast<std::uint8_t>(lane_size(lane));
    read_number(context, *state);
  }
  if (!is_static(context)) return Error::Ok;
  WB_TRY(plan(context, *state));
  state->ready = true;
  return Error::Ok;
}

Error pointwise_execute(KernelContext& context) {
  auto& state = *static_cast<PointwiseState*>(context.state);
  if (!state.ready) WB_TRY(plan(context, state));
  if (!state.params_constant) {
    WB_TRY(read_params(context, state));
    if (state.number_operand >= 0) read_number(context, state);
  }
  if (state.nest.numel == 0) return Error::Ok;
  if (!state.flat) {
    run_general(context, state);
    return Error::Ok;
  }
  const void* in[3];
  for (int k = 0; k < state.operands; ++k) {
    in[k] =
        k == state.number_operand ? static_cast<const void*>(&state.number) : context.tensor(state.tensor_args[k]).data;
  }
  state.loop(context.tensor(state.out_arg).data, in, state.scalar_mask, state.nest.numel, state.values);
  return Error::Ok;
}

extern const KernelTable table_common_pointwise;
const KernelTable table_common_pointwise = {nullptr, 0};

}  // namespace wb::kernels::WB_ISA
