// Errors are values. The numeric codes are those that ExecuTorch's runtime uses, so that a log reads the same on
// either side. The text that goes with an error is written into a Diagnostic, which never allocates.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

namespace wb {

enum class [[nodiscard]] Error : std::uint32_t {
  Ok = 0x00,
  Internal = 0x01,
  InvalidState = 0x02,
  EndOfMethod = 0x03,
  NotSupported = 0x10,
  NotImplemented = 0x11,
  InvalidArgument = 0x12,
  InvalidType = 0x13,
  OperatorMissing = 0x14,
  RegistrationExceedingMaxKernels = 0x15,
  RegistrationAlreadyRegistered = 0x16,
  NotFound = 0x20,
  MemoryAllocationFailed = 0x21,
  AccessFailed = 0x22,
  InvalidProgram = 0x23,
  InvalidExternalData = 0x24,
  OutOfResources = 0x25,
  DelegateInvalidCompatibility = 0x30,
  DelegateMemoryAllocationFailed = 0x31,
  DelegateInvalidHandle = 0x32,

  Cancelled = 0x100,  // ours: the caller stopped the execution
};

[[nodiscard]] constexpr const char* name_of(Error error) {
  switch (error) {
    case Error::Ok: return "Ok";
    case Error::Internal: return "Internal";
    case Error::InvalidState: return "InvalidState";
    case Error::EndOfMethod: return "EndOfMethod";
    case Error::NotSupported: return "NotSupported";
    case Error::NotImplemented: return "NotImplemented";
    case Error::InvalidArgument: return "InvalidArgument";
    case Error::InvalidType: return "InvalidType";
    case Error::OperatorMissing: return "OperatorMissing";
    case Error::RegistrationExceedingMaxKernels: return "RegistrationExceedingMaxKernels";
    case Error::RegistrationAlreadyRegistered: return "RegistrationAlreadyRegistered";
    case Error::NotFound: return "NotFound";
    case Error::MemoryAllocationFailed: return "MemoryAllocationFailed";
    case Error::AccessFailed: return "AccessFailed";
    case Error::InvalidProgram: return "InvalidProgram";
    case Error::InvalidExternalData: return "InvalidExternalData";
    case Error::OutOfResources: return "OutOfResources";
    case Error::DelegateInvalidCompatibility: return "DelegateInvalidCompatibility";
    case Error::DelegateMemoryAllocationFailed: return "DelegateMemoryAllocationFailed";
    case Error::DelegateInvalidHandle: return "DelegateInvalidHandle";
    case Error::Cancelled: return "Cancelled";
  }
  return "Unknown";
}

// What went wrong, in words: operator, argument, expected, found. Fixed storage; text past the end is cut. The first
// message wins, for it is the cause: later ones (of callers that pass the error on) are added as context.
class Diagnostic {
 public:
  [[nodiscard]] const char* text() const { return text_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  void clear() {
    size_ = 0;
    text_[0] = '\0';
  }

  // Appends to the text (separated by "; " from what stands there).
  void vadd(const char* format, std::va_list args) {
    if (size_ != 0) append("; ");
    if (size_ + 1 >= kCapacity) return;
    const int written = std::vsnprintf(text_ + size_, kCapacity - size_, format, args);
    if (written < 0) return;
    const std::size_t grown = size_ + static_cast<std::size_t>(written);
    size_ = grown < kCapacity ? grown : kCapacity - 1;
  }

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    std::va_list args;
    va_start(args, format);
    vadd(format, args);
    va_end(args);
  }

 private:
  void append(const char* text) {
    while (*text != '\0' && size_ + 1 < kCapacity) text_[size_++] = *text++;
    text_[size_] = '\0';
  }

  static constexpr std::size_t kCapacity = 1024;
  char text_[kCapacity] = {};
  std::size_t size_ = 0;
};

// A value or the error that stands in its place.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Error error) : error_(error) {                 // NOLINT(google-explicit-constructor)
    if (error_ == Error::Ok) error_ = Error::Internal;  // an error result is never Ok
  }

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] Error error() const { return value_.has_value() ? Error::Ok : error_; }
  [[nodiscard]] T& get() { return *value_; }
  [[nodiscard]] const T& get() const { return *value_; }
  [[nodiscard]] T* operator->() { return &*value_; }
  [[nodiscard]] T& operator*() { return *value_; }

 private:
  std::optional<T> value_;
  Error error_ = Error::Internal;
};

}  // namespace wb

// Returns the error of `expr` (an Error) to the caller, if it is one.
#define WB_TRY(expr)                                                                                     \
  do {                                                                                                   \
    if (const ::wb::Error wb_try_error = (expr); __builtin_expect(wb_try_error != ::wb::Error::Ok, 0)) { \
      return wb_try_error;                                                                               \
    }                                                                                                    \
  } while (false)

#define WB_CONCAT_INNER(a, b) a##b
#define WB_CONCAT(a, b) WB_CONCAT_INNER(a, b)

// `WB_ASSIGN(auto x, make_x());` binds the value of a Result, or returns its error.
#define WB_ASSIGN(declaration, expr)                                                         \
  auto WB_CONCAT(wb_result_, __LINE__) = (expr);                                             \
  if (!WB_CONCAT(wb_result_, __LINE__).ok()) return WB_CONCAT(wb_result_, __LINE__).error(); \
  declaration = std::move(*WB_CONCAT(wb_result_, __LINE__))
