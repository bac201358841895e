// Registration by a static object: a backend or a set of kernels that is linked into the program adds itself before
// main.
//
//   constinit MyBackend my_backend;
//   WB_REGISTER_BACKEND(my_backend);
//
//   constexpr wb::Kernel kernels[] = {{"my::op.out", prepare, execute}};
//   WB_REGISTER_KERNELS(my_ops, kernels);
//
// Names that are registered twice are an error that names both sources; it is reported when a program is loaded.
// An object file that nothing refers to is dropped from a static library: link such files as an object library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend.h"
#include "kernel.h"

namespace wb {

// One entry of the list of static registrations. Must have static storage duration.
class Registration {
 public:
  Registration(const char* source, Backend& backend) : source_(source), backend_(&backend) { link(); }
  Registration(const char* source, std::span<const Kernel> kernels) : source_(source), kernels_(kernels) { link(); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  [[nodiscard]] static const Registration* first() { return head(); }
  [[nodiscard]] const Registration* next() const { return next_; }

  [[nodiscard]] const char* source() const { return source_; }
  [[nodiscard]] Backend* backend() const { return backend_; }
  [[nodiscard]] std::span<const Kernel> kernels() const { return kernels_; }

 private:
  static const Registration*& head() {
    static constinit const Registration* first = nullptr;
    return first;
  }
  void link() {
    next_ = head();
    head() = this;
  }

  const char* source_;
  Backend* backend_ = nullptr;
  std::span<const Kernel> kernels_;
  const Registration* next_ = nullptr;
};

}  // namespace wb

#define WB_REGISTER_BACKEND(instance) \
  static const ::wb::Registration wb_registration_of_##instance { __FILE_NAME__, instance }
#define WB_REGISTER_KERNELS(name, table) \
  static const ::wb::Registration wb_registration_of_##name { __FILE_NAME__, std::span<const ::wb::Kernel>(table) }
