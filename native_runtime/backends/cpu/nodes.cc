// Nodes of a blob: their operator, attributes and steps.
#include "backends/cpu/blob.h"

namespace wb::cpu {
namespace {

// The numbers of the schema are those of graph.h.
template <typename A, typename B>
constexpr bool same(A a, B b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(static_cast<int>(fb::Op::MAX) + 1 == engine::kOpCount);
static_assert(static_cast<int>(fb::Fn::MAX) + 1 == engine::kFnCount);
static_assert(same(fb::Op::Reduce, engine::Op::Reduce) && same(fb::Op::Attention, engine::Op::Attention));
static_assert(same(fb::Op::Lstm, engine::Op::Lstm) && same(fb::Op::Pad, engine::Op::Pad));
static_assert(same(fb::Fn::Sigmoid, engine::Fn::Sigmoid) && same(fb::Fn::Clamp, engine::Fn::Clamp));
static_assert(same(fb::Fn::Add, engine::Fn::Add) && same(fb::Fn::Where, engine::Fn::Where));
static_assert(same(fb::ValueKind::Temporary, engine::ValueKind::Temporary));
static_assert(same(fb::Op::Dequantize, engine::Op::Dequantize));
static_assert(same(fb::QuantizationKind::MAX, engine::Quantization::Kind::PerRow));
static_assert(same(fb::ReduceFn::MAX, engine::ReduceFn::L2));
static_assert(same(fb::PadMode::MAX, engine::Attributes::PadMode::Replicate));
static_assert(same(fb::UpsampleMode::MAX, engine::Attributes::UpsampleMode::Bilinear));

template <typename T>
std::uint32_t size_of(const T* vector) {
  return vector == nullptr ? 0 : vector->size();
}

void read_window(const fb::Window& from, engine::Window& to) {
  to.kernel_h = from.kernel_h();
  to.kernel_w = from.kernel_w();
  to.stride_h = from.stride_h();
  to.stride_w = from.stride_w();
  to.dilation_h = from.dilation_h();
  to.dilation_w = from.dilation_w();
  to.pad_top = from.pad_top();
  to.pad_bottom = from.pad_bottom();
  to.pad_left = from.pad_left();
  to.pad_right = from.pad_right();
  to.divisor = from.divisor();
  to.ceil_mode = from.ceil_mode();
  to.count_include_pad = from.count_include_pad();
}

void read_numbers(const fb::Attributes& from, engine::Attributes& to) {
  if (from.window() != nullptr) read_window(*from.window(), to.window);
  if (const fb::WeightOrder* order = from.weight_order(); order != nullptr) {
    to.weight_order = {order->cout(), order->cin(), order->h(), order->w()};
  }
  to.groups = from.groups();
  to.output_padding_h = from.output_padding_h();
  to.output_padding_w = from.output_padding_w();
  to.transpose_b = from.transpose_b();
  to.mask = from.mask();
  to.keep = from.keep();
  to.axis = from.axis();
  to.log = from.log();
  to.largest = from.largest();
  to.correction = from.correction();
  to.eps = from.eps();
  to.scale = from.scale();
  to.causal = from.causal();
  to.layers = from.layers();
  to.hidden = from.hidden();
  to.bidirectional = from.bidirectional();
  to.batch_first = from.batch_first();
  to.begin = from.begin();
  to.end = from.end();
  to.step = from.step();
  to.fill = from.fill();
  to.align_corners = from.align_corners();
  to.scale_h = from.scale_h();
  to.scale_w = from.scale_w();
  to.out_h = from.out_h();
  to.out_w = from.out_w();
}

Error read_lists(const BackendInitContext& context, const fb::Attributes& from, std::uint32_t index,
                 engine::Attributes& to) {
  const std::uint32_t counts[] = {size_of(from.permutation()), size_of(from.sizes()), size_of(from.before()),
                                  size_of(from.after())};
  for (const std::uint32_t count : counts) {
    if (count > engine::kMaxRank) {
      return context.fail(Error::InvalidProgram, "node %u: a list of %u dimensions, more than %d", index, count,
                          engine::kMaxRank);
    }
  }
  if (!is_placed(from.sizes()) || !is_placed(from.before()) || !is_placed(from.after())) {
    return context.fail(Error::InvalidProgram, "node %u: a list of dimensions is not aligned to its elements", index);
  }
  for (std::uint32_t d = 0; d < counts[0]; ++d) to.permutation[d] = from.permutation()->Get(d);
  for (std::uint32_t d = 0; d < counts[1]; ++d) {
    const fb::SizeRule& rule = *from.sizes()->Get(d);
    to.sizes[d] = {rule.value(), rule.from_input()};
  }
  to.rank = static_cast<std::uint8_t>(counts[1]);
  for (std::uint32_t d = 0; d < counts[2]; ++d) to.before[d] = from.before()->Get(d);
  for (std::uint32_t d = 0; d < counts[3]; ++d) to.after[d] = from.after()->Get(d);
  return Error::Ok;
}

Error read_attributes(const BackendInitContext& context, const fb::Attributes& from, std::uint32_t index,
                      engine::Attributes& to) {
  if (from.reduce() > fb::ReduceFn::MAX || from.pad_mode() > fb::PadMode::MAX ||
      from.upsample_mode() > fb::UpsampleMode::MAX) {
    return context.fail(Error::InvalidProgram, "node %u: reduction %u, padding %u, upsampling %u: one is unknown",
                        index, static_cast<unsigned>(from.reduce()), static_cast<unsigned>(from.pad_mode()),
                        static_cast<unsigned>(from.upsample_mode()));
  }
  to.reduce = static_cast<engine::ReduceFn>(from.reduce());
  to.pad_mode = static_cast<engine::Attributes::PadMode>(from.pad_mode());
  to.upsample_mode = static_cast<engine::Attributes::UpsampleMode>(from.upsample_mode());
  read_numbers(from, to);
  return read_lists(context, from, index, to);
}

Error read_steps(const BackendInitContext& context, const fb::Node& from, std::uint32_t index, engine::Node& to) {
  to.post.resize(size_of(from.steps()));
  for (std::uint32_t s = 0; s < to.post.size(); ++s) {
    const fb::Step& step = *from.steps()->Get(s);
    if (step.fn() > fb::Fn::MAX) {
      return context.fail(Error::InvalidProgram, "node %u: step %u is the unknown function %u", index, s,
                          static_cast<unsigned>(step.fn()));
    }
    to.post[s].fn = static_cast<engine::Fn>(step.fn());
    to.post[s].operands[0] = step.operand0();
    to.post[s].operands[1] = step.operand1();
    to.post[s].operands[2] = step.operand2();
    to.post[s].a = step.a();
    to.post[s].b = step.b();
  }
  return Error::Ok;
}

}  // namespace

Error read_node(const BackendInitContext& context, const fb::Node& from, std::uint32_t index, engine::Node& to) {
  if (from.op() > fb::Op::MAX) {
    return context.fail(Error::NotSupported, "node %u: operator %u is unknown to this runtime", index,
                        static_cast<unsigned>(from.op()));
  }
  to.op = static_cast<engine::Op>(from.op());
  for (std::uint32_t i = 0; i < size_of(from.inputs()); ++i) to.inputs.push_back(from.inputs()->Get(i));
  for (std::uint32_t i = 0; i < size_of(from.outputs()); ++i) to.outputs.push_back(from.outputs()->Get(i));
  if (from.attributes() != nullptr) WB_TRY(read_attributes(context, *from.attributes(), index, to.attributes));
  WB_TRY(read_steps(context, from, index, to));
  to.sources.push_back(from.source());
  return Error::Ok;
}

}  // namespace wb::cpu
