#include "engine/operators/recurrent/plan.h"

#include <algorithm>
#include <new>

namespace wb::engine::WB_ISA::recurrent {
namespace {

constexpr std::int64_t kGateFloats = 98304;  // of a chunk, about: with the weights they fit the second-level cache
constexpr double kSmallWork = 5e5;           // multiplications that are not worth a second thread
constexpr std::int64_t kRowsOfPart = 8;
constexpr std::int64_t kChunksOfLayer = 10;

const char* name_of(const Plan& plan) { return plan.is_lstm ? "lstm" : "gru"; }

Error check_shape(Setup& setup, const Plan& plan, const char* what, std::int64_t which, const TensorView& tensor,
                  std::initializer_list<std::int64_t> sizes) {
  bool fits = tensor.shape.rank == sizes.size();
  int d = 0;
  for (const std::int64_t size : sizes) fits = fits && tensor.shape.sizes[d++] == size;
  if (fits) return Error::Ok;
  char wanted[96];
  int length = 0;
  for (const std::int64_t size : sizes) {
    length += std::snprintf(wanted + length, sizeof wanted - static_cast<std::size_t>(length), "%s%lld",
                            length == 0 ? "" : ", ", static_cast<long long>(size));
  }
  return setup.fail(Error::InvalidArgument, "%s: %s %lld must be [%s], found %d dimensions, the first of %lld",
                    name_of(plan), what, static_cast<long long>(which), wanted, tensor.shape.rank,
                    static_cast<long long>(tensor.shape.sizes[0]));
}

Error check_weights(Setup& setup, const Plan& plan, const TensorView* four, std::int64_t which, std::int64_t inputs) {
  const std::int64_t rows = (plan.is_lstm ? 4 : 3) * plan.hidden;
  for (int i = 0; i < 4; ++i) {
    const TensorView& tensor = four[i];
    if (i >= 2 && !tensor.present) continue;
    if (!tensor.present || !tensor.constant || tensor.data == nullptr ||
        (tensor.dtype != ScalarType::Float && tensor.dtype != ScalarType::Half)) {
      return setup.fail(Error::NotSupported,
                        "%s: weight %d of layer and direction %lld must be a constant of float32 or float16",
                        name_of(plan), i, static_cast<long long>(which));
    }
  }
  WB_TRY(check_shape(setup, plan, "weight_ih", which, four[0], {rows, inputs}));
  WB_TRY(check_shape(setup, plan, "weight_hh", which, four[1], {rows, plan.hidden}));
  if (four[2].present) WB_TRY(check_shape(setup, plan, "bias_ih", which, four[2], {rows}));
  if (four[3].present) WB_TRY(check_shape(setup, plan, "bias_hh", which, four[3], {rows}));
  return Error::Ok;
}

// A sequence, or a state if `state` is set, if it is there.
Error check_operand(Setup& setup, const Plan& plan, const char* what, const TensorView& tensor, bool state,
                    std::int64_t columns) {
  if (!tensor.present) return Error::Ok;
  if (tensor.dtype != ScalarType::Float) {
    return setup.fail(Error::NotSupported, "%s: the %s is of type %d; it must be float32", name_of(plan), what,
                      static_cast<int>(tensor.dtype));
  }
  if (state) {
    return check_shape(setup, plan, what, 0, tensor, {plan.layers * plan.directions, plan.batch, columns});
  }
  if (plan.batch_first) return check_shape(setup, plan, what, 0, tensor, {plan.batch, plan.steps, columns});
  return check_shape(setup, plan, what, 0, tensor, {plan.steps, plan.batch, columns});
}

void choose_sharing(int threads, Plan* plan) {
  double work = 0;
  for (std::int64_t i = 0; i < plan->layers * plan->directions; ++i) {
    const Weights& weights = plan->weights[i];
    work += static_cast<double>(weights.columns()) * static_cast<double>(weights.inputs + weights.hidden);
  }
  work *= static_cast<double>(plan->steps) * static_cast<double>(plan->batch);
  plan->sharing = Sharing::Alone;
  plan->parts = 1;
  if (threads == 1 || work < kSmallWork) return;
  if (plan->batch >= 2 * kRowsOfPart) {
    plan->sharing = Sharing::Batch;
    plan->parts = std::min<std::int64_t>(threads, plan->batch / kRowsOfPart);
  } else if (plan->directions == 2) {
    plan->sharing = Sharing::Directions;
  } else if (plan->layers > 1 && plan->steps >= 2 * kChunksOfLayer) {
    plan->sharing = Sharing::Layers;
  }
}

std::int64_t aligned(std::int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

Error make_plan(PrepareContext& context, bool is_lstm, Plan* plan) {
  Setup& setup = context.setup;
  const Attributes& attributes = context.node.attributes;
  const Operands& operands = context.operands;
  *plan = Plan{};
  plan->is_lstm = is_lstm;
  plan->layers = attributes.layers;
  plan->directions = attributes.bidirectional ? 2 : 1;
  plan->hidden = attributes.hidden;
  plan->batch_first = attributes.batch_first;
  const std::int64_t first = plan->input_operands();
  const std::uint32_t outputs = is_lstm ? 3 : 2;
  const std::int64_t given = static_cast<std::int64_t>(operands.input_count) - first;
  if (plan->layers < 1 || plan->hidden < 1 || plan->layers > given || given != 4 * plan->layers * plan->directions ||
      operands.output_count != outputs) {
    return setup.fail(Error::InvalidProgram,
                      "%s: %u inputs and %u outputs don't fit %lld layers of %lld units in %lld directions",
                      name_of(*plan), operands.input_count, operands.output_count, static_cast<long long>(plan->layers),
                      static_cast<long long>(plan->hidden), static_cast<long long>(plan->directions));
  }
  const TensorView& x = operands.inputs[0];
  if (x.shape.rank != 3) {
    return setup.fail(Error::InvalidProgram, "%s: the input has %d dimensions, 3 are needed", name_of(*plan),
                      x.shape.rank);
  }
  plan->inputs = x.shape.sizes[2];
  const std::int64_t count = plan->layers * plan->directions;
  void* memory = setup.allocate(static_cast<std::size_t>(count) * sizeof(Weights));
  if (memory == nullptr) return Error::MemoryAllocationFailed;
  plan->weights = static_cast<Weights*>(memory);
  for (std::int64_t i = 0; i < count; ++i) {
    Weights* weights = new (plan->weights + i) Weights;
    weights->gates = is_lstm ? 4 : 3;
    weights->inputs = i < plan->directions ? plan->inputs : plan->directions * plan->hidden;
    weights->hidden = plan->hidden;
    const TensorView* four = operands.inputs + first + 4 * i;
    WB_TRY(check_weights(setup, *plan, four, i, weights->inputs));
    WB_TRY(pack(setup, four, weights));
    plan->most_columns = std::max(plan->most_columns, weights->columns());
  }
  for (std::uint32_t i = static_cast<std::uint32_t>(first); i < operands.input_count && i < 64; ++i) {
    context.packed_inputs |= std::uint64_t{1} << i;
  }
  return Error::Ok;
}

Error size_plan(ShapeContext& context, Plan* plan) {
  Setup& setup = context.setup;
  const Operands& operands = context.operands;
  const TensorView& x = operands.inputs[0];
  plan->steps = x.shape.sizes[plan->batch_first ? 1 : 0];
  plan->batch = x.shape.sizes[plan->batch_first ? 0 : 1];
  const std::int64_t states = plan->layers * plan->directions;
  const TensorView* outputs = operands.outputs;
  WB_TRY(check_operand(setup, *plan, "input", x, false, plan->inputs));
  WB_TRY(check_operand(setup, *plan, "initial hidden state", operands.inputs[1], true, plan->hidden));
  WB_TRY(check_operand(setup, *plan, "output", outputs[0], false, plan->directions * plan->hidden));
  WB_TRY(check_operand(setup, *plan, "last hidden state", outputs[1], true, plan->hidden));
  if (plan->is_lstm) {
    WB_TRY(check_operand(setup, *plan, "initial cell", operands.inputs[2], true, plan->hidden));
    WB_TRY(check_operand(setup, *plan, "last cell", outputs[2], true, plan->hidden));
  }
  choose_sharing(context.threads, plan);
  const std::int64_t step_floats = plan->batch * plan->most_columns;
  plan->slot_floats = aligned(std::min(plan->steps * step_floats, std::max(kGateFloats, step_floats)));
  plan->chunk = std::clamp<std::int64_t>(kGateFloats / std::max<std::int64_t>(step_floats, 1), 1,
                                         std::max<std::int64_t>(plan->steps, 1));
  if (plan->sharing == Sharing::Layers) {
    plan->chunk = std::min(plan->chunk, (plan->steps + kChunksOfLayer - 1) / kChunksOfLayer);
  }
  // As many as any way of sharing needs, so that smaller sizes never need more memory.
  const std::int64_t alone = plan->layers > 1 ? 2 : 1;  // two layers overlap
  const std::int64_t slots = context.threads == 1 ? alone : std::max<std::int64_t>({2, context.threads, plan->layers});
  plan->cells_at = slots * plan->slot_floats;
  plan->hidden_at = plan->cells_at + (plan->is_lstm ? states * plan->batch * plan->padded_hidden() : 0);
  plan->sequences_at = plan->hidden_at + (outputs[1].present ? 0 : aligned(states * plan->batch * plan->hidden));
  const std::int64_t sequences = (plan->layers > 1 ? 1 : 0) + (outputs[0].present ? 0 : 1);
  plan->progress_at = plan->sequences_at + sequences * aligned(plan->sequence_floats());
  const std::int64_t floats = plan->progress_at + plan->layers * kProgressFloats;
  context.scratch = static_cast<std::size_t>(floats) * sizeof(float);
  return Error::Ok;
}

}  // namespace wb::engine::WB_ISA::recurrent
