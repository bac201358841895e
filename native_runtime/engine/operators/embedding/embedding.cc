// Embedding and Gather: runs of elements picked by indices.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "engine/names.h"
#include "engine/operators/common/epilogue.h"
#include "engine/operators/common/quantize.h"
#include "engine/operators/common/work.h"
#include "engine/operators/move/runs.h"

namespace wb::engine::WB_ISA {
namespace {

std::int64_t index_at(const TensorView& ids, std::int64_t i) {
  return ids.dtype == ScalarType::Long ? ids.as<const std::int64_t>()[i] : ids.as<const std::int32_t>()[i];
}

Error pick_prepare(PrepareContext& context) {
  const ScalarType ids = context.operands.inputs[1].dtype;
  const ScalarType in = context.operands.inputs[0].dtype;
  const ScalarType out = context.operands.outputs[0].dtype;
  const bool quantized = context.operands.inputs[0].quantization != nullptr && out == ScalarType::Float;
  if ((ids == ScalarType::Long || ids == ScalarType::Int) && (in == out || quantized)) return Error::Ok;
  return context.setup.fail(Error::NotSupported,
                            "expected indices of int64 or int32 and results like the data, found "
                            "%s, %s from %s",
                            name_of(ids), name_of(out), name_of(in));
}

Error pick_shape(ShapeContext& /*context*/) { return Error::Ok; }

// Rows of [rows, bytes] at `from` one after the other to `to`; an index that is no row's is reported, its row zero.
struct Picker {
  const RunContext& context;
  std::int64_t rows;
  std::size_t bytes;
  bool wraps;  // negative ones count from the end

  void pick(std::int64_t i, const std::byte* from, std::byte* to) const {
    const std::int64_t id = index_at(context.operands.inputs[1], i);
    const std::int64_t row = wraps && id < 0 ? id + rows : id;
    if (row < 0 || row >= rows) {
      if (context.fault != nullptr) context.fault->raise(context.node, id, rows);
      if (bytes != 0) std::memset(to, 0, bytes);
      return;
    }
    copy_run(to, from + row * static_cast<std::int64_t>(bytes), bytes);
  }
};

// Rows of integers as numbers. Each row has a scale, or all have one.
void embed_integers(const RunContext& context) {
  const TensorView& table = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const Quantization& q = *table.quantization;
  const std::int64_t count = context.operands.inputs[1].shape.numel();
  const std::int64_t rows = table.shape.sizes[0];
  const std::int64_t width = table.shape.sizes[1];
  const bool by_row = q.kind == Quantization::Kind::PerChannel;
  const Epilogue epilogue(context);
  split(context.pool, count, count * width, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* to = out.as<float>() + i * width;
      const std::int64_t row = index_at(context.operands.inputs[1], i);
      if (row < 0 || row >= rows) {
        if (context.fault != nullptr) context.fault->raise(context.node, row, rows);
        std::fill_n(to, width, 0.0F);
        continue;
      }
      const float scale = by_row ? q.scales[row] : q.scale;
      const std::int32_t zero = by_row && q.zero_points != nullptr ? q.zero_points[row] : q.zero_point;
      if (table.dtype == ScalarType::Char) {
        dequantize_row(table.as<const std::int8_t>() + row * width, width, scale, zero, to);
      } else {
        dequantize_row(table.as<const std::uint8_t>() + row * width, width, scale, zero, to);
      }
      if (!epilogue.empty()) epilogue.apply(to, width, i, 1, 0, width);
    }
  });
}

bool embedding_quantized(const Graph& graph, const Node& node) {
  const Value& table = graph.values[node.inputs[0]];
  const Quantization& q = table.quantization;
  const bool bytes = table.dtype == ScalarType::Char || table.dtype == ScalarType::Byte;
  const bool rows =
      q.kind == Quantization::Kind::PerTensor || (q.kind == Quantization::Kind::PerChannel && q.axis == 0);
  const auto plain = [&](ValueId id) { return !graph.values[id].quantization.present(); };
  return bytes && rows && q.bits == 8 && graph.values[node.outputs[0]].dtype == ScalarType::Float &&
         std::ranges::all_of(node.post_inputs, plain);
}

void embedding_run(const RunContext& context) {
  if (context.operands.inputs[0].quantization != nullptr) return embed_integers(context);
  const TensorView& table = context.operands.inputs[0];
  const TensorView& out = context.operands.outputs[0];
  const std::int64_t count = context.operands.inputs[1].shape.numel();
  const std::int64_t width = table.shape.sizes[1];
  const Picker picker{context, table.shape.sizes[0], static_cast<std::size_t>(width) * element_size(table.dtype),
                      false};
  const Epilogue epilogue(context);
  split(context.pool, count, count * width, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = begin; i < end; ++i) {
      picker.pick(i, table.as<const std::byte>(), out.as<std::byte>() + i * static_cast<std::int64_t>(picker.bytes));
      if (!epilogue.empty()) epilogue.apply(out.as<float>() + i * width, width, i, 1, 0, width);
    }
  });
}

void gather_run(const RunContext& context) {
  const TensorView& from = context.operands.inputs[0];
  const TensorView& to = context.operands.outputs[0];
  const int axis = context.node.attributes.axis;
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int d = 0; d < axis; ++d) outer *= to.shape.sizes[d];
  for (int d = axis + 1; d < to.shape.rank; ++d) inner *= to.shape.sizes[d];
  const std::int64_t count = to.shape.sizes[axis];
  const Picker picker{context, from.shape.sizes[axis], static_cast<std::size_t>(inner) * element_size(from.dtype),
                      true};
  const auto bytes = static_cast<std::int64_t>(picker.bytes);
  split(context.pool, outer * count, outer * count * std::max<std::int64_t>(inner, 8),
        [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
          for (std::int64_t i = begin; i < end; ++i) {
            picker.pick(i % count, from.as<const std::byte>() + i / count * picker.rows * bytes,
                        to.as<std::byte>() + i * bytes);
          }
        });
}

}  // namespace
}  // namespace wb::engine::WB_ISA

WB_ENGINE_OPERATORS(embedding_embedding,
                    {Op::Embedding, pick_prepare, pick_shape, embedding_run, epilogue_fuses, embedding_quantized},
                    {Op::Gather, pick_prepare, pick_shape, gather_run})
