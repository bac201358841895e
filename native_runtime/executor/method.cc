#include "executor/method.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "executor/copy.h"
#include "executor/loader.h"

namespace wb {

Result<std::unique_ptr<Method>> Method::load(const Program& program, std::string_view name, const LoadOptions& options,
                                             Diagnostic& diagnostic) {
  const fb::ExecutionPlan* plan = program.method(name);
  if (plan == nullptr) {
    diagnostic.add("the program has no method %.*s", static_cast<int>(name.size()), name.data());
    return Error::NotFound;
  }
  std::unique_ptr<Method> method(new (std::nothrow) Method(program, *plan));
  if (method == nullptr) return Error::MemoryAllocationFailed;
  method->host_ = {.self = method.get(),
                   .allocate = &host_allocate,
                   .request_scratch = &host_request_scratch,
                   .resize = &host_resize,
                   .vreport = &host_report};
  const Error error = MethodLoader(*method, options).run();
  if (error != Error::Ok) {
    diagnostic = method->diagnostic_;
    return error;
  }
  method->diagnostic_.clear();
  return method;
}

Method::~Method() {
  for (std::uint32_t i = 0; i < delegate_count_; ++i) {
    if (delegates_[i].initialized && delegates_[i].handle != nullptr)
      delegates_[i].backend->destroy(delegates_[i].handle);
  }
  for (std::uint32_t i = 0; heap_ != nullptr && i < tensor_count_; ++i) std::free(heap_[i]);
  for (std::uint32_t i = 0; staging_ != nullptr && i < input_count(); ++i) std::free(staging_[i]);
}

Error Method::acquire() {
  if (busy_.exchange(true, std::memory_order_acquire)) return Error::InvalidState;
  diagnostic_.clear();
  restore();
  cancelled_.store(false, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < input_count(); ++i) input_set_[i] = false;
  return Error::Ok;
}

void Method::release() { busy_.store(false, std::memory_order_release); }

void Method::restore() {
  for (std::uint32_t i = 0; i < saved_count_; ++i) {
    const Saved& saved = saved_[i];
    *saved.value = saved.original;
    if (!saved.original.is_tensor()) continue;
    Tensor& tensor = saved.original.tensor();
    if (heap_[index_of(tensor)] != nullptr) continue;
    tensor.data = saved.data;
    tensor.capacity = saved.capacity;
  }
}

std::span<const std::int32_t> Method::upper_bound(const Tensor& tensor) const {
  const auto* sizes = tensor_records_[index_of(tensor)]->sizes();
  if (sizes == nullptr) return {};
  return {sizes->data(), sizes->size()};
}

bool Method::owns(const Tensor& tensor) const {
  const auto* data = static_cast<const std::byte*>(tensor.data);
  const Storage kind = storage(tensor);
  if (kind == Storage::Own || heap_[index_of(tensor)] != nullptr) return true;
  for (std::uint32_t i = 1; i < count(plan_.non_const_buffer_sizes()); ++i) {
    if (data >= arenas_[i] && data < arenas_[i] + plan_.non_const_buffer_sizes()->Get(i)) return true;
  }
  return false;
}

const Tensor* Method::attribute(std::string_view name) const {
  for (std::uint32_t i = 0; i < tensor_count_; ++i) {
    const fb::ExtraTensorInfo* extra = tensor_records_[i]->extra_tensor_info();
    if (extra != nullptr && view(extra->fully_qualified_name()) == name) return &tensors_[i];
  }
  return nullptr;
}

// ---- what kernels and delegates ask of the method ------------------------------------------------------------

void* Method::host_allocate(void* self, std::size_t bytes, std::size_t alignment) {
  Method& method = *static_cast<Method*>(self);
  return method.preparing_ ? method.memory_.allocate(bytes, alignment) : nullptr;
}

void Method::host_request_scratch(void* self, std::size_t bytes) {
  Method& method = *static_cast<Method*>(self);
  if (method.preparing_ && bytes > method.scratch_size_) method.scratch_size_ = bytes;
}

Error Method::host_resize(void* self, Tensor& tensor, const std::int32_t* sizes, int rank) {
  if (rank < 0 || rank > kMaxRank) return Error::InvalidArgument;
  return static_cast<Method*>(self)->resize(tensor, {sizes, static_cast<std::size_t>(rank)});
}

void Method::host_report(void* self, const char* format, std::va_list args) {
  static_cast<Method*>(self)->diagnostic_.vadd(format, args);
}

Error Method::resize(Tensor& tensor, std::span<const std::int32_t> sizes) {
  if (!is_own(tensor)) {
    diagnostic_.add("resize: the tensor is none of this method's");
    return Error::InvalidArgument;
  }
  if (sizes.size() != tensor.rank) {
    diagnostic_.add("expected rank %d, found %zu", tensor.rank, sizes.size());
    return Error::InvalidArgument;
  }
  const std::span<const std::int32_t> bound = upper_bound(tensor);
  const bool bounded = tensor.dynamism != ShapeDynamism::DynamicUnbound;
  std::size_t bytes = element_size(tensor.dtype);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const bool fits =
        tensor.dynamism == ShapeDynamism::Static ? sizes[d] == bound[d] : !bounded || sizes[d] <= bound[d];
    if (sizes[d] < 0 || !fits) {
      diagnostic_.add("dimension %zu: expected %s %d, found %d", d,
                      tensor.dynamism == ShapeDynamism::Static ? "size" : "a size of at most", bound[d], sizes[d]);
      return Error::InvalidArgument;
    }
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(sizes[d]), &bytes)) {
      diagnostic_.add("a tensor of more bytes than an address can count");
      return Error::OutOfResources;
    }
  }
  if (bytes > tensor.capacity) WB_TRY(grow(tensor, bytes));
  std::memmove(tensor.sizes, sizes.data(), sizes.size_bytes());
  strides_from_dim_order({tensor.sizes, tensor.rank}, tensor.dim_order, tensor.strides);
  return Error::Ok;
}

// Only tensors without an upper bound get memory while the method runs; the block is kept for the next time.
Error Method::grow(Tensor& tensor, std::size_t bytes) {
  if (tensor.dynamism != ShapeDynamism::DynamicUnbound) {
    diagnostic_.add("a tensor of %zu bytes, its memory has %zu", bytes, tensor.capacity);
    return Error::InvalidArgument;
  }
  void* memory = bytes > SIZE_MAX / 2 ? nullptr : std::calloc(1, bytes);
  if (memory == nullptr) {
    diagnostic_.add("no memory for a tensor of %zu bytes", bytes);
    return Error::MemoryAllocationFailed;
  }
  void*& block = heap_[index_of(tensor)];
  std::free(block);
  block = memory;
  tensor.data = memory;
  tensor.capacity = bytes;
  return Error::Ok;
}

void Method::free_memory(Tensor& tensor) {
  void*& block = heap_[index_of(tensor)];
  if (block == nullptr || tensor.data != block) return;  // planned memory is not given back
  std::free(block);
  block = nullptr;
  tensor.data = nullptr;
  tensor.capacity = 0;
}

// ---- inputs --------------------------------------------------------------------------------------------------

Error Method::set_input(std::uint32_t index, const InputTensor& given) {
  const auto fail = [&](Error error) {
    diagnostic_.add("input %u of method %s", index, name());
    return error;
  };
  if (index >= input_count() || !input(index).is_tensor()) {
    diagnostic_.add("expected %s, found Tensor", index < input_count() ? name_of(input(index).tag) : "no input");
    return fail(Error::InvalidArgument);
  }
  Tensor& tensor = input(index).tensor();
  if (given.dtype != tensor.dtype) {
    diagnostic_.add("expected %s, found %s", name_of(tensor.dtype), name_of(given.dtype));
    return fail(Error::InvalidArgument);
  }
  if (given.sizes.size() != tensor.rank) {
    diagnostic_.add("expected rank %d, found rank %zu", tensor.rank, given.sizes.size());
    return fail(Error::InvalidArgument);
  }
  std::int32_t sizes[kMaxRank];
  bool empty = false;
  for (int d = 0; d < tensor.rank; ++d) {
    const std::int64_t size = given.sizes[d];
    if (size < 0 || size > std::numeric_limits<std::int32_t>::max()) {
      diagnostic_.add("dimension %d has size %lld", d, static_cast<long long>(size));
      return fail(Error::InvalidArgument);
    }
    sizes[d] = static_cast<std::int32_t>(size);
    empty = empty || size == 0;
  }
  if (given.data == nullptr && !empty) {
    diagnostic_.add("no data");
    return fail(Error::InvalidArgument);
  }
  const bool caller = storage(tensor) == Storage::Caller;
  if (caller) tensor.capacity = std::numeric_limits<std::size_t>::max();
  if (const Error error = resize(tensor, {sizes, tensor.rank}); error != Error::Ok) {
    if (caller) tensor.capacity = 0;
    return fail(error);
  }
  const bool aligned = reinterpret_cast<std::uintptr_t>(given.data) % element_size(tensor.dtype) == 0;
  const bool in_place = caller && aligned && (given.writable || !input_written_[index]) &&
                        (given.strides == nullptr || has_strides(tensor, given.strides));
  if (caller) tensor.capacity = tensor.nbytes();
  if (in_place) {
    tensor.data = given.data;
  } else {
    if (caller) {
      std::free(staging_[index]);
      staging_[index] = std::malloc(tensor.nbytes() + 1);
      if (staging_[index] == nullptr) return fail(Error::MemoryAllocationFailed);
      tensor.data = staging_[index];
    }
    copy_from_strided(tensor, tensor.data, given.data, given.strides);
  }
  input_set_[index] = true;
  return Error::Ok;
}

Error Method::check_input(std::uint32_t index, const EValue& given) {
  if (index >= input_count()) return Error::InvalidArgument;
  const EValue& expected = input(index);
  bool same = given.tag == expected.tag;
  if (same) {
    switch (given.tag) {
      case Tag::None: break;
      case Tag::Int: same = given.payload.as_int == expected.payload.as_int; break;
      case Tag::Bool: same = given.payload.as_bool == expected.payload.as_bool; break;
      case Tag::Double: {
        const double a = given.payload.as_double;
        const double b = expected.payload.as_double;
        same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-4 + 1e-5 * std::fabs(b);
        break;
      }
      case Tag::String: same = given.string() == expected.string(); break;
      default: same = false; break;
    }
    if (!same) diagnostic_.add("input %u of method %s must have the value that it had at export", index, name());
  } else {
    diagnostic_.add("input %u of method %s: expected %s, found %s", index, name(), name_of(expected.tag),
                    name_of(given.tag));
  }
  if (same) input_set_[index] = true;
  return same ? Error::Ok : Error::InvalidArgument;
}

}  // namespace wb
