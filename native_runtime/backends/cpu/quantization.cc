// How the integers of a value stand for numbers. That it suits the value is left to the compiler; what it points to is
// checked here.
#include <algorithm>
#include <cstring>

#include "backends/cpu/blob.h"

namespace wb::cpu {
namespace {

using Kind = engine::Quantization::Kind;

template <typename T>
std::uint32_t size_of(const T* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// Scales that the value has; 0 when it has none, or its axis or group are out of range, which the compiler says.
std::int64_t count_of(const engine::Quantization& quantization, const engine::Shape& shape) {
  if (quantization.kind == Kind::PerChannel && quantization.axis >= 0 && quantization.axis < shape.rank) {
    return shape.sizes[quantization.axis];
  }
  if (quantization.kind == Kind::PerGroup && quantization.group > 0 && shape.rank == 2) {
    return shape.sizes[0] * ((shape.sizes[1] - 1) / quantization.group + 1);
  }
  return 0;
}

template <typename T>
Result<const T*> copied(const BackendInitContext& context, const flatbuffers::Vector<T>* list, std::uint32_t index,
                        const char* name, std::int64_t count) {
  if (size_of(list) != static_cast<std::uint64_t>(count)) {
    return context.fail(Error::InvalidProgram, "value %u: expected %lld %s, found %u", index,
                        static_cast<long long>(count), name, size_of(list));
  }
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  auto* memory = static_cast<T*>(context.allocate(bytes == 0 ? 1 : bytes, 64));
  if (memory == nullptr) return context.fail(Error::MemoryAllocationFailed, "no memory for %zu bytes", bytes);
  if (bytes != 0) std::memcpy(memory, list->Data(), bytes);
  return const_cast<const T*>(memory);
}

Result<const float*> named(const BackendInitContext& context, const flatbuffers::String& key, std::uint32_t index,
                           std::int64_t count) {
  auto found = context.named_data->get(key.string_view());
  if (!found.ok()) return context.fail(found.error(), "value %u: the program has no data with its scales", index);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  if (found->size() < bytes || reinterpret_cast<std::uintptr_t>(found->data()) % sizeof(float) != 0) {
    return context.fail(Error::InvalidProgram, "value %u: expected %zu aligned bytes of scales, found %zu", index,
                        bytes, found->size());
  }
  return reinterpret_cast<const float*>(found->data());
}

}  // namespace

Error read_quantization(const BackendInitContext& context, const fb::Value& from, std::uint32_t index,
                        engine::Value& to) {
  const fb::Quantization* given = from.quantization();
  if (given == nullptr) return Error::Ok;
  if (given->kind() > fb::QuantizationKind::MAX || (given->bits() != 4 && given->bits() != 8)) {
    return context.fail(Error::InvalidProgram, "value %u: quantization of kind %u with %u bits", index,
                        static_cast<unsigned>(given->kind()), given->bits());
  }
  engine::Quantization& q = to.quantization;
  q.kind = static_cast<Kind>(given->kind());
  q.bits = given->bits();
  q.axis = given->axis();
  q.group = given->group();
  q.scale = given->scale();
  q.zero_point = given->zero_point();
  if (q.kind != Kind::PerChannel && q.kind != Kind::PerGroup) return Error::Ok;
  const std::int64_t count = count_of(q, to.shape);
  if (given->scales_key() != nullptr) {
    WB_ASSIGN(q.scales, named(context, *given->scales_key(), index, count));
  } else {
    WB_ASSIGN(q.scales, copied(context, given->scales(), index, "scales", count));
  }
  if (given->zero_points() != nullptr) {
    WB_ASSIGN(q.zero_points, copied(context, given->zero_points(), index, "zero points", count));
  }
  return Error::Ok;
}

}  // namespace wb::cpu
