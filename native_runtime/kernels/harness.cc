// Runs single kernels from outside, for tests and benchmarks: a C interface to prepare and execute, without a program.
// Scratch memory and outputs get guard bytes, so that a test sees what a kernel writes past their ends.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/kernel.h"
#include "kernels/select.h"

namespace {

constexpr std::size_t kGuard = 64;
constexpr unsigned char kGuardByte = 0xA5;

struct Failure {
  char text[512] = {};
};

struct Session {
  std::vector<void*> allocations;
  std::size_t scratch = 0;
  Failure* failure = nullptr;
};

void* allocate(void* self, std::size_t bytes, std::size_t alignment) {
  void* memory = std::aligned_alloc(alignment < 64 ? 64 : alignment, (bytes / 64 + 1) * 64);
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, bytes);
  static_cast<Session*>(self)->allocations.push_back(memory);
  return memory;
}

void request_scratch(void* self, std::size_t bytes) {
  auto& session = *static_cast<Session*>(self);
  if (bytes > session.scratch) session.scratch = bytes;
}

void report(void* self, const char* format, std::va_list args) {
  std::vsnprintf(static_cast<Session*>(self)->failure->text, sizeof(Failure::text), format, args);
}

wb::Error resize(void* self, wb::Tensor& tensor, const std::int32_t* sizes, int rank) {
  Failure& failure = *static_cast<Session*>(self)->failure;
  std::size_t bytes = wb::element_size(tensor.dtype);
  for (int d = 0; d < rank; ++d) bytes *= static_cast<std::size_t>(sizes[d]);
  if (rank != tensor.rank || tensor.dynamism == wb::ShapeDynamism::Static || bytes > tensor.capacity) {
    std::snprintf(failure.text, sizeof(failure.text), "resize: an output can't take the sizes");
    return wb::Error::InvalidArgument;
  }
  std::memcpy(tensor.sizes, sizes, static_cast<std::size_t>(rank) * sizeof(*sizes));
  wb::strides_from_dim_order({tensor.sizes, static_cast<std::size_t>(rank)}, tensor.dim_order, tensor.strides);
  return wb::Error::Ok;
}

}  // namespace

extern "C" {

// One argument as the caller lays it out. `tag` is a wb::Tag; `items` are the entries of an int[], or the sizes of a
// tensor, `count` of them. A str has its characters in `data`. The `count` entries of a list of tensors are the
// arguments that follow it.
struct HarnessArg {
  std::int32_t tag;
  std::int32_t dtype;
  std::int64_t integer;
  double number;
  std::int64_t* items;
  std::int32_t count;
  std::int32_t dynamic;
  const std::uint8_t* dim_order;
  void* data;
  std::uint64_t capacity;
  std::int32_t constant;
  std::int32_t unused;
};

// Prepares, then executes `times`. Returns the wb::Error; `text` (512 bytes) says what was wrong. The sizes of dynamic
// tensors come back in `items`. `seconds` gets the time of the fastest execution. With `upper` (sizes of every
// argument, in the order of the tensors), the kernel is prepared for these sizes and executed with those of the
// arguments.
[[gnu::visibility("default")]] std::uint32_t wb_harness_run(const char* name, HarnessArg* args, std::uint32_t count,
                                                            const std::int64_t* upper, std::uint32_t times, char* text,
                                                            double* seconds);
}

namespace {

struct Arguments {
  std::vector<wb::EValue> values;
  std::vector<wb::EValue*> pointers;
  std::vector<wb::Tensor> tensors;
  std::vector<std::int32_t> sizes;
  std::vector<std::int64_t> strides;
  bool constant[32] = {};
  std::uint32_t top = 0;  // arguments of the kernel: those that are no entries of a list

  Arguments(HarnessArg* args, std::uint32_t count)
      : values(count), pointers(2 * count), tensors(count), sizes(count * wb::kMaxRank), strides(count * wb::kMaxRank) {
    std::uint32_t entries = 0;  // of the list before that are still to come
    std::uint32_t lists = count;
    for (std::uint32_t i = 0; i < count; ++i) {
      fill(args[i], i);
      if (entries > 0) {
        --entries;
        continue;
      }
      constant[top] = args[i].constant != 0;
      pointers[top++] = &values[i];
      const bool list = values[i].tag == wb::Tag::TensorList || values[i].tag == wb::Tag::OptionalTensorList;
      if (!list || i + static_cast<std::uint32_t>(args[i].count) >= count) continue;
      entries = static_cast<std::uint32_t>(args[i].count);
      values[i].payload.tensor_list = {&pointers[lists], entries};
      for (std::uint32_t k = 1; k <= entries; ++k) pointers[lists++] = &values[i + k];
    }
  }

  void fill(HarnessArg& arg, std::uint32_t i) {
    wb::EValue& value = values[i];
    value.tag = static_cast<wb::Tag>(arg.tag);
    switch (value.tag) {
      case wb::Tag::Tensor: {
        wb::Tensor& tensor = tensors[i];
        tensor.data = arg.data;
        tensor.sizes = &sizes[i * wb::kMaxRank];
        tensor.strides = &strides[i * wb::kMaxRank];
        tensor.dim_order = arg.dim_order;
        tensor.capacity = arg.capacity;
        tensor.dtype = static_cast<wb::ScalarType>(arg.dtype);
        tensor.rank = static_cast<std::uint8_t>(arg.count);
        tensor.dynamism = arg.dynamic != 0 ? wb::ShapeDynamism::DynamicBound : wb::ShapeDynamism::Static;
        set_sizes(i, arg.items);
        value.payload.tensor = &tensor;
        break;
      }
      case wb::Tag::Double: value.payload.as_double = arg.number; break;
      case wb::Tag::Bool: value.payload.as_bool = arg.integer != 0; break;
      case wb::Tag::IntList:
        value.payload.int_list = {nullptr, arg.items, static_cast<std::uint32_t>(arg.count), true};
        break;
      case wb::Tag::String:
        value.payload.string = {static_cast<const char*>(arg.data), static_cast<std::uint32_t>(arg.count)};
        break;
      case wb::Tag::DoubleList:  // the same memory holds doubles
        value.payload.double_list = {reinterpret_cast<const double*>(arg.items), static_cast<std::uint32_t>(arg.count)};
        break;
      default: value.payload.as_int = arg.integer;
    }
  }

  void set_sizes(std::uint32_t i, const std::int64_t* from) {
    wb::Tensor& tensor = tensors[i];
    for (int d = 0; d < tensor.rank; ++d) tensor.sizes[d] = static_cast<std::int32_t>(from[d]);
    wb::strides_from_dim_order(tensor.shape(), tensor.dim_order, tensor.strides);
  }
};

bool guard_holds(const unsigned char* guard) {
  for (std::size_t i = 0; i < kGuard; ++i) {
    if (guard[i] != kGuardByte) return false;
  }
  return true;
}

wb::Error execute(const wb::Kernel& kernel, wb::KernelContext& context, Session& session, std::uint32_t times,
                  double* seconds) {
  const std::size_t size = (session.scratch + 63) / 64 * 64;
  std::vector<unsigned char> memory(size + kGuard + 64);
  auto* scratch = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  std::memset(scratch, 0xFF, size);  // NaN: results must not depend on it
  std::memset(scratch + size, kGuardByte, kGuard);
  context.scratch = reinterpret_cast<std::byte*>(scratch);
  context.scratch_size = session.scratch;
  *seconds = 1e30;
  for (std::uint32_t t = 0; t < times; ++t) {
    const auto start = std::chrono::steady_clock::now();
    WB_TRY(kernel.execute(context));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (spent.count() < *seconds) *seconds = spent.count();
  }
  if (guard_holds(scratch + size)) return wb::Error::Ok;
  return context.fail(wb::Error::Internal, "wrote past the end of scratch memory");
}

}  // namespace

std::uint32_t wb_harness_run(const char* name, HarnessArg* args, std::uint32_t count, const std::int64_t* upper,
                             std::uint32_t times, char* text, double* seconds) {
  const wb::Kernel* kernel = wb::kernels::find_kernel(name);
  if (kernel == nullptr || count > 32) return static_cast<std::uint32_t>(wb::Error::OperatorMissing);
  Failure failure;
  Session session;
  session.failure = &failure;
  wb::Host host;
  host.self = &session;
  host.allocate = allocate;
  host.request_scratch = request_scratch;
  host.resize = resize;
  host.vreport = report;
  Arguments arguments(args, count);
  if (upper != nullptr) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (args[i].tag != static_cast<std::int32_t>(wb::Tag::Tensor)) continue;
      arguments.set_sizes(i, upper);
      upper += args[i].count;
    }
  }
  wb::KernelContext context(kernel->name, arguments.pointers.data(), arguments.constant, arguments.top, &host);
  wb::Error error = kernel->prepare(context);
  if (error == wb::Error::Ok) {
    for (std::uint32_t i = 0; upper != nullptr && i < count; ++i) {
      if (args[i].tag == static_cast<std::int32_t>(wb::Tag::Tensor)) arguments.set_sizes(i, args[i].items);
    }
    error = execute(*kernel, context, session, times, seconds);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    args[i].tag = static_cast<std::int32_t>(arguments.values[i].tag);
    args[i].number = arguments.values[i].scalar<double>();
    args[i].integer = arguments.values[i].scalar<std::int64_t>();
    if (args[i].tag != static_cast<std::int32_t>(wb::Tag::Tensor)) continue;
    for (int d = 0; d < args[i].count; ++d) args[i].items[d] = arguments.tensors[i].sizes[d];
  }
  for (void* memory : session.allocations) std::free(memory);
  std::memcpy(text, failure.text, sizeof(failure.text));
  return static_cast<std::uint32_t>(error);
}
