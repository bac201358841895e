// Kernels: how an operator runs. A kernel has two functions. `prepare` runs once, while the method is loaded: it checks
// every argument (count, tag, dtype, rank, dim order, and sizes as far as they are static), picks an implementation,
// packs constant weights and asks for scratch memory. `execute` runs each time: it sets the sizes of the outputs and
// computes; it never allocates, and checks only what can change between executions (sizes of dynamic tensors).
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "error.h"
#include "evalue.h"
#include "host.h"
#include "tensor.h"

namespace wb {

class KernelContext {
 public:
  KernelContext(const char* name, EValue* const* args, const bool* constant, std::uint32_t count, const Host* host)
      : name_(name), args_(args), constant_(constant), count_(count), host_(host) {}

  // "aten::add.out"
  [[nodiscard]] const char* name() const { return name_; }

  // Arguments in schema order, the out tensors last.
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] EValue& arg(std::uint32_t i) const { return *args_[i]; }
  // Valid only for an argument of tag Tensor (prepare has checked).
  [[nodiscard]] Tensor& tensor(std::uint32_t i) const { return *args_[i]->payload.tensor; }
  // Null for None.
  [[nodiscard]] Tensor* optional_tensor(std::uint32_t i) const {
    return args_[i]->is_tensor() ? args_[i]->payload.tensor : nullptr;
  }
  // True if argument i has its final value at load (weights, literals): prepare may read its data.
  [[nodiscard]] bool is_constant(std::uint32_t i) const { return constant_[i]; }

  // What `prepare` leaves for `execute`. Lives in memory of allocate().
  void* state = nullptr;

  // Only in prepare. Lives as long as the method. Null when there is none: return Error::MemoryAllocationFailed then.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 64) const {
    return host_->allocate(host_->self, bytes, alignment);
  }
  template <typename T>
  [[nodiscard]] T* allocate_state() {
    state = allocate(sizeof(T), alignof(T));
    return state == nullptr ? nullptr : new (state) T();
  }
  // Only in prepare. For dynamic shapes, ask for what the upper bound needs (Tensor::sizes hold it at that time).
  void request_scratch(std::size_t bytes) const { host_->request_scratch(host_->self, bytes); }
  // Only in execute: the scratch memory, shared with all other instructions, contents undefined.
  std::byte* scratch = nullptr;
  std::size_t scratch_size = 0;

  // Sets the sizes of an output.
  Error resize(Tensor& out, std::span<const std::int32_t> sizes) const {
    if (out.rank == sizes.size()) {
      bool same = true;
      for (std::size_t d = 0; d < sizes.size(); ++d) same = same && out.sizes[d] == sizes[d];
      if (same) return Error::Ok;
    }
    return host_->resize(host_->self, out, sizes.data(), static_cast<int>(sizes.size()));
  }

  // Reports what is wrong ("argument 1 (other): expected float32, found int64") and returns the error. The operator's
  // name and the instruction are added by the executor.
  __attribute__((format(printf, 3, 4))) Error fail(Error error, const char* format, ...) const {
    std::va_list list;
    va_start(list, format);
    host_->vreport(host_->self, format, list);
    va_end(list);
    return error;
  }

 private:
  const char* name_;
  EValue* const* args_;
  const bool* constant_;
  std::uint32_t count_;
  const Host* host_;
};

using KernelFunction = Error (*)(KernelContext&);

struct Kernel {
  const char* name;        // operator and overload as in the program: "aten::add.out"
  KernelFunction prepare;  // never null
  KernelFunction execute;  // never null
};

}  // namespace wb
