// How the integers of a value stand for numbers. Zero points of weights are no part of the format: those of 8 bits have
// 0, those of 4 bits 8.
#include <bit>
#include <cstring>

#include "backends/xnnpack/builder.h"

namespace wb::xnnpack {
namespace {

using Kind = engine::Quantization::Kind;

struct Meaning {
  fb::DataType type;
  ScalarType dtype;
  std::uint8_t bits;
  Kind kind;
  std::int32_t zero_point;
};
constexpr Meaning kMeanings[] = {
    {fb::DataType::QINT8, ScalarType::Char, 8, Kind::PerTensor, 0},
    {fb::DataType::QUINT8, ScalarType::Byte, 8, Kind::PerTensor, 0},
    {fb::DataType::QINT32, ScalarType::Int, 8, Kind::PerTensor, 0},
    {fb::DataType::QCINT8, ScalarType::Char, 8, Kind::PerChannel, 0},
    {fb::DataType::QCINT32, ScalarType::Int, 8, Kind::PerChannel, 0},
    {fb::DataType::QCINT4, ScalarType::Byte, 4, Kind::PerChannel, 8},
    {fb::DataType::QBINT4, ScalarType::Byte, 4, Kind::PerGroup, 8},
    {fb::DataType::QDINT8, ScalarType::Char, 8, Kind::PerRow, 0},
    {fb::DataType::QPINT8, ScalarType::Char, 8, Kind::PerRow, 0},
};

const Meaning* meaning_of(fb::DataType type) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.type == type) return &meaning;
  }
  return nullptr;
}

float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// The table that says the parameters, by the way in which the type counts them.
fb::QuantParams table_of(Kind kind) {
  switch (kind) {
    case Kind::PerChannel: return fb::QuantParams::PerChannelQuant;
    case Kind::PerGroup: return fb::QuantParams::PerChannelGroupQuant;
    case Kind::PerRow: return fb::QuantParams::PerTokenDynamicQuant;
    default: return fb::QuantParams::PerTensorQuant;
  }
}

}  // namespace

bool is_quantized(fb::DataType type) { return meaning_of(type) != nullptr; }

// Scales that stand among the constants, or in the graph, which need not stay: copied.
Result<const float*> Builder::read_scales(std::uint32_t index, const flatbuffers::Vector<float>* inline_scales,
                                          std::uint32_t buffer, std::uint32_t number, std::int64_t expected,
                                          bool bfloat16) {
  const std::uint32_t found = buffer != 0 ? number : count(inline_scales);
  if (std::int64_t{found} != expected) {
    return context_.fail(Error::InvalidProgram, "value %u: expected %lld scales, found %u", ids_[index],
                         static_cast<long long>(expected), found);
  }
  auto* scales = static_cast<float*>(context_.allocate(std::size_t{found} * sizeof(float) + 1, 64));
  if (scales == nullptr) return context_.fail(Error::MemoryAllocationFailed, "no memory for %u scales", found);
  if (buffer == 0) {
    for (std::uint32_t i = 0; i < found; ++i) scales[i] = inline_scales->Get(i);
    return const_cast<const float*>(scales);
  }
  const std::size_t width = bfloat16 ? sizeof(std::uint16_t) : sizeof(float);
  auto data = find_constant(context_, blob_, buffer, std::uint64_t{found} * width, width);
  if (!data.ok()) return context_.fail(data.error(), "the scales of value %u", ids_[index]);
  if (!bfloat16) {
    std::memcpy(scales, data->data(), std::size_t{found} * width);
    return const_cast<const float*>(scales);
  }
  const auto* halves = reinterpret_cast<const std::uint16_t*>(data->data());
  for (std::uint32_t i = 0; i < found; ++i) scales[i] = from_bfloat16(halves[i]);
  return const_cast<const float*>(scales);
}

Error Builder::read_channels(std::uint32_t index, const fb::PerChannelQuant& from, engine::Value& value) {
  engine::Quantization& q = value.quantization;
  q.axis = from.channel_dim();
  if (q.axis < 0 || q.axis >= value.shape.rank) {
    return context_.fail(Error::InvalidProgram, "value %u: channels along dimension %d of %d", ids_[index], q.axis,
                         value.shape.rank);
  }
  WB_ASSIGN(q.scales, read_scales(index, from.scale(), from.scale_buffer_idx(), from.num_scales(),
                                  value.shape.sizes[q.axis], false));
  return Error::Ok;
}

Error Builder::read_groups(std::uint32_t index, const fb::PerChannelGroupQuant& from, engine::Value& value) {
  engine::Quantization& q = value.quantization;
  q.group = from.group_size();
  if (value.shape.rank != 2 || from.channel_dim() != 0 || q.group < 1) {
    return context_.fail(Error::InvalidProgram,
                         "value %u: groups of %lld along dimension %d of %d: expected a matrix and its rows",
                         ids_[index], static_cast<long long>(q.group), from.channel_dim(), value.shape.rank);
  }
  const std::int64_t columns = value.shape.sizes[1];
  const std::int64_t expected = value.shape.sizes[0] * (columns / q.group + (columns % q.group != 0 ? 1 : 0));
  WB_ASSIGN(q.scales, read_scales(index, from.scale(), from.scale_buffer_idx(), from.num_scales(), expected, true));
  return Error::Ok;
}

// After type and sizes.
Error Builder::read_quantization(std::uint32_t index, const fb::QuantizedTensor& wire) {
  engine::Value& value = graph.values[index];
  const fb::DataType type = wire.tensor_value()->datatype();
  const Meaning& meaning = *meaning_of(type);
  if (wire.quant_params_type() != table_of(meaning.kind) || wire.quant_params() == nullptr) {
    return context_.fail(Error::InvalidProgram, "value %u of type %s: expected %s, found %s", ids_[index],
                         fb::EnumNameDataType(type), fb::EnumNameQuantParams(table_of(meaning.kind)),
                         fb::EnumNameQuantParams(wire.quant_params_type()));
  }
  engine::Quantization& q = value.quantization;
  q.kind = meaning.kind;
  q.bits = meaning.bits;
  q.zero_point = meaning.zero_point;
  switch (meaning.kind) {
    case Kind::PerChannel: return read_channels(index, *wire.quant_params_as_PerChannelQuant(), value);
    case Kind::PerGroup: return read_groups(index, *wire.quant_params_as_PerChannelGroupQuant(), value);
    case Kind::PerRow: {
      const std::int32_t shared = wire.quant_params_as_PerTokenDynamicQuant()->num_nonbatch_dims();
      if (shared < 1 || shared > value.shape.rank) {
        return context_.fail(Error::InvalidProgram, "value %u: one scale for %d of its %d dimensions", ids_[index],
                             shared, value.shape.rank);
      }
      if (shared == 1) return Error::Ok;
      // Pixels of an image share a scale: the numbers are kept, rounded (build_convert).
      value.quantization = {};
      value.dtype = ScalarType::Float;
      rounded_.push_back({index, shared});
      return Error::Ok;
    }
    default: {
      const fb::PerTensorQuant& from = *wire.quant_params_as_PerTensorQuant();
      q.scale = from.scale();
      q.zero_point = from.zero_point();
      return Error::Ok;
    }
  }
}

ScalarType dtype_of(fb::DataType type) {
  const Meaning* meaning = meaning_of(type);
  return meaning == nullptr ? ScalarType::Float : meaning->dtype;
}

int Builder::rounded_dims(ValueId id) const {
  for (const Rounded& rounded : rounded_) {
    if (rounded.value == id) return rounded.dims;
  }
  return 0;
}

}  // namespace wb::xnnpack
