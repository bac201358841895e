// Values, arenas and the memory of tensors.
#include <cstring>
#include <new>

#include "executor/loader.h"

namespace wb {
namespace {

using ull = unsigned long long;

constexpr std::size_t kArenaAlignment = 64;
constexpr std::uint8_t kNoDimensions[1] = {};

bool is_aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

std::uint32_t count_tensors(const fb::ExecutionPlan& plan) {
  std::uint32_t tensors = 0;
  for (std::uint32_t i = 0; i < count(plan.values()); ++i) {
    tensors += plan.values()->Get(i)->val_type() == fb::KernelTypes::Tensor ? 1 : 0;
  }
  return tensors;
}

}  // namespace

Result<std::span<const std::byte>> MergedData::get(std::string_view key) const {
  for (const DataFile* file : files_) {
    if (auto found = file->get(key); found.ok()) return found;
  }
  return program_.get(key);
}

void MergedData::release(std::span<const std::byte> part) const {
  for (const DataFile* file : files_) file->release(part);
  program_.release(part);
}

Error MethodLoader::make_arenas() {
  const auto* sizes = plan_.non_const_buffer_sizes();
  method_.arenas_ = method_.memory_.array<std::byte*>(count(sizes));
  if (method_.arenas_ == nullptr) return no_memory();
  for (std::uint32_t i = 1; i < count(sizes); ++i) {
    const auto size = static_cast<std::uint64_t>(sizes->Get(i));
    const std::uint64_t limit = i - 1 < options_.arena_limits.size() ? options_.arena_limits[i - 1] : 0;
    if (limit != 0 && size > limit) {
      return fail(Error::OutOfResources, "arena %u needs %llu bytes, the limit is %llu", i, static_cast<ull>(size),
                  static_cast<ull>(limit));
    }
    method_.arenas_[i] = static_cast<std::byte*>(method_.memory_.allocate(size, kArenaAlignment));
    if (method_.arenas_[i] == nullptr) {
      return fail(Error::MemoryAllocationFailed, "no memory for arena %u of %llu bytes", i, static_cast<ull>(size));
    }
    method_.stats_.arena_bytes += size;
  }
  return Error::Ok;
}

Error MethodLoader::make_values() {
  const std::uint32_t values = count(plan_.values());
  const std::uint32_t tensors = count_tensors(plan_);
  MethodMemory& memory = method_.memory_;
  method_.values_ = memory.array<EValue>(std::size_t{values} + 1);
  method_.tensors_ = memory.array<Tensor>(tensors);
  method_.tensor_records_ = memory.array<const fb::Tensor*>(tensors);
  method_.storage_ = memory.array<Storage>(tensors);
  method_.heap_ = memory.array<void*>(tensors);
  if (method_.values_ == nullptr || method_.tensors_ == nullptr || method_.tensor_records_ == nullptr ||
      method_.storage_ == nullptr || method_.heap_ == nullptr) {
    return no_memory();
  }
  for (std::uint32_t i = 0; i <= values; ++i) new (&method_.values_[i]) EValue();
  method_.value_count_ = values;
  for (std::uint32_t i = 0; i < values; ++i) WB_TRY(make_value(i));
  return Error::Ok;
}

Error MethodLoader::make_value(std::uint32_t index) {
  const fb::EValue& record = *plan_.values()->Get(index);
  EValue& value = method_.values_[index];
  switch (record.val_type()) {
    case fb::KernelTypes::Int: value.set(std::int64_t{record.val_as_Int()->int_val()}); return Error::Ok;
    case fb::KernelTypes::Bool: value.set(record.val_as_Bool()->bool_val()); return Error::Ok;
    case fb::KernelTypes::Double: value.set(record.val_as_Double()->double_val()); return Error::Ok;
    case fb::KernelTypes::String: {
      const std::string_view text = view(record.val_as_String()->string_val());
      value.tag = Tag::String;
      value.payload.string = {text.data(), static_cast<std::uint32_t>(text.size())};
      return Error::Ok;
    }
    case fb::KernelTypes::Tensor: return make_tensor(index, *record.val_as_Tensor());
    case fb::KernelTypes::IntList:
    case fb::KernelTypes::DoubleList:
    case fb::KernelTypes::BoolList:
    case fb::KernelTypes::TensorList:
    case fb::KernelTypes::OptionalTensorList: return make_list(index);
    default: return Error::Ok;  // None
  }
}

template <typename T>
Error MethodLoader::make_value_list(std::uint32_t, const flatbuffers::Vector<T>* items, EValue*** list,
                                    std::uint32_t* size) {
  *size = count(items);
  *list = method_.memory_.array<EValue*>(*size);
  if (*list == nullptr) return no_memory();
  for (std::uint32_t i = 0; i < *size; ++i) {
    const std::int64_t item = items->Get(i);
    (*list)[i] = &method_.values_[item < 0 ? method_.value_count_ : static_cast<std::uint32_t>(item)];
  }
  return Error::Ok;
}

Error MethodLoader::make_list(std::uint32_t index) {
  const fb::EValue& record = *plan_.values()->Get(index);
  EValue& value = method_.values_[index];
  switch (record.val_type()) {
    case fb::KernelTypes::IntList: {
      EValue** items = nullptr;
      IntListRef list;
      WB_TRY(make_value_list(index, record.val_as_IntList()->items(), &items, &list.size));
      list.items = items;
      list.unboxed = method_.memory_.array<std::int64_t>(list.size);
      if (list.unboxed == nullptr) return no_memory();
      value.tag = Tag::IntList;
      value.payload.int_list = list;
      return Error::Ok;
    }
    case fb::KernelTypes::DoubleList: {
      const auto* items = record.val_as_DoubleList()->items();
      auto* copy = method_.memory_.array<double>(count(items));
      if (copy == nullptr) return no_memory();
      for (std::uint32_t i = 0; i < count(items); ++i) copy[i] = items->Get(i);
      value.tag = Tag::DoubleList;
      value.payload.double_list = {copy, count(items)};
      return Error::Ok;
    }
    case fb::KernelTypes::BoolList: {
      const auto* items = record.val_as_BoolList()->items();
      auto* copy = method_.memory_.array<bool>(count(items));
      if (copy == nullptr) return no_memory();
      for (std::uint32_t i = 0; i < count(items); ++i) copy[i] = items->Get(i) != 0;
      value.tag = Tag::BoolList;
      value.payload.bool_list = {copy, count(items)};
      return Error::Ok;
    }
    default: break;
  }
  const bool optional = record.val_type() == fb::KernelTypes::OptionalTensorList;
  const auto* items = optional ? record.val_as_OptionalTensorList()->items() : record.val_as_TensorList()->items();
  EValue** list = nullptr;
  std::uint32_t size = 0;
  WB_TRY(make_value_list(index, items, &list, &size));
  value.tag = optional ? Tag::OptionalTensorList : Tag::TensorList;
  value.payload.tensor_list = {list, size};
  return Error::Ok;
}

Error MethodLoader::make_tensor(std::uint32_t index, const fb::Tensor& record) {
  const std::uint32_t rank = count(record.sizes());
  const std::uint32_t position = method_.tensor_count_;
  Tensor& tensor = *new (&method_.tensors_[position]) Tensor();
  tensor.sizes = method_.memory_.array<std::int32_t>(rank);
  tensor.strides = method_.memory_.array<std::int64_t>(rank);
  if (tensor.sizes == nullptr || tensor.strides == nullptr) return no_memory();
  for (std::uint32_t d = 0; d < rank; ++d) tensor.sizes[d] = record.sizes()->Get(d);
  tensor.dim_order = record.dim_order() == nullptr ? kNoDimensions : record.dim_order()->data();
  tensor.rank = static_cast<std::uint8_t>(rank);
  tensor.dtype = static_cast<ScalarType>(record.scalar_type());
  tensor.dynamism = static_cast<ShapeDynamism>(record.shape_dynamism());
  strides_from_dim_order({tensor.sizes, rank}, tensor.dim_order, tensor.strides);
  tensor.capacity = tensor.nbytes();
  method_.tensor_records_[position] = &record;
  ++method_.tensor_count_;

  EValue& value = method_.values_[index];
  value.tag = Tag::Tensor;
  value.payload.tensor = &tensor;
  return bind_storage(index, record, tensor, &method_.storage_[position]);
}

Error MethodLoader::bind_storage(std::uint32_t index, const fb::Tensor& record, Tensor& tensor, Storage* storage) {
  const fb::AllocationDetails* allocation = record.allocation_info();
  const fb::ExtraTensorInfo* extra = record.extra_tensor_info();
  std::span<const std::byte> stored;
  bool has_stored = true;
  if (extra != nullptr && extra->location() == fb::TensorDataLocation::EXTERNAL) {
    WB_TRY(bind_external(index, record, tensor, &stored));
  } else if (record.data_buffer_idx() == 0) {
    has_stored = false;
  } else if (allocation != nullptr) {
    stored = program_.mutable_data(extra == nullptr ? 0 : extra->mutable_data_segments_idx(), record.data_buffer_idx());
  } else {
    stored = program_.constant(record.data_buffer_idx());
  }
  const std::size_t bytes = tensor.nbytes();
  if (has_stored && tensor.dtype == ScalarType::Bool) {
    for (std::size_t i = 0; i < bytes; ++i) {
      if (static_cast<unsigned>(stored[i]) > 1)
        return fail(Error::InvalidProgram, "value %u: element %zu is no bool", index, i);
    }
  }
  if (allocation != nullptr) {
    const std::uint64_t offset =
        (std::uint64_t{allocation->memory_offset_high()} << 32) | allocation->memory_offset_low();
    tensor.data = method_.arenas_[allocation->memory_id()] + offset;
    *storage = Storage::Arena;
    if (has_stored && bytes != 0) std::memcpy(tensor.data, stored.data(), bytes);
    return Error::Ok;
  }
  if (!has_stored) return Error::Ok;
  *storage = Storage::Constant;
  tensor.data = const_cast<std::byte*>(stored.data());
  if (bytes != 0 && !is_aligned(stored.data(), element_size(tensor.dtype))) {
    tensor.data = method_.memory_.allocate(bytes, kArenaAlignment);
    if (tensor.data == nullptr) return no_memory();
    std::memcpy(tensor.data, stored.data(), bytes);
  }
  return Error::Ok;
}

Error MethodLoader::bind_external(std::uint32_t index, const fb::Tensor& record, Tensor& tensor,
                                  std::span<const std::byte>* data) {
  const std::string_view name = view(record.extra_tensor_info()->fully_qualified_name());
  const auto length = static_cast<int>(name.size());
  const auto found = data_.get(name);
  if (!found.ok()) {
    return fail(Error::NotFound, "value %u: the data of %.*s is in none of the %zu data files given", index, length,
                name.data(), options_.data_files.size());
  }
  *data = found.get();
  for (const DataFile* file : options_.data_files) {
    const auto* layout = file->layout(name);
    if (layout == nullptr) continue;
    if (static_cast<ScalarType>(layout->scalar_type()) != tensor.dtype) {
      return fail(Error::InvalidExternalData, "value %u: %.*s: expected %s, the data file has %s", index, length,
                  name.data(), name_of(tensor.dtype), name_of(static_cast<ScalarType>(layout->scalar_type())));
    }
    break;
  }
  if (data->size() < tensor.nbytes()) {
    return fail(Error::InvalidExternalData, "value %u: %.*s: expected %zu bytes, the data file has %zu", index, length,
                name.data(), tensor.nbytes(), data->size());
  }
  return Error::Ok;
}

Error MethodLoader::bind_inputs_and_outputs() {
  for (std::uint32_t i = 0; i < method_.input_count(); ++i) {
    const EValue& value = method_.input(i);
    if (!value.is_tensor()) continue;
    Storage& storage = method_.storage_[method_.index_of(value.tensor())];
    if (storage == Storage::Constant) return fail(Error::InvalidProgram, "input %u is a constant", i);
    if (storage == Storage::None) storage = Storage::Caller;
  }
  // What moves and views point elsewhere gets no memory of its own.
  bool* borrowed = method_.memory_.array<bool>(method_.tensor_count_);
  if (borrowed == nullptr) return no_memory();
  for (std::uint32_t i = 0; i < method_.saved_count_; ++i) {
    const EValue& value = *method_.saved_[i].value;
    if (value.is_tensor()) borrowed[method_.index_of(value.tensor())] = true;
  }
  for (std::uint32_t i = 0; i < method_.tensor_count_; ++i) {
    Tensor& tensor = method_.tensors_[i];
    if (method_.storage_[i] != Storage::None || borrowed[i]) continue;
    method_.storage_[i] = Storage::Own;
    if (tensor.dynamism == ShapeDynamism::DynamicUnbound) {
      tensor.capacity = 0;
      continue;
    }
    tensor.data = method_.memory_.allocate(tensor.nbytes(), kArenaAlignment);
    if (tensor.data == nullptr) return fail(Error::MemoryAllocationFailed, "no memory for an unplanned tensor");
  }
  return Error::Ok;
}

}  // namespace wb
