// One slot of a method's value table: what instructions read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensor.h"

namespace wb {

enum class Tag : std::uint8_t {
  None = 0,
  Tensor,
  Int,
  Double,
  Bool,
  String,
  IntList,
  DoubleList,
  BoolList,
  TensorList,
  OptionalTensorList,
};

[[nodiscard]] constexpr const char* name_of(Tag tag) {
  switch (tag) {
    case Tag::None: return "None";
    case Tag::Tensor: return "Tensor";
    case Tag::Int: return "int";
    case Tag::Double: return "float";
    case Tag::Bool: return "bool";
    case Tag::String: return "str";
    case Tag::IntList: return "int[]";
    case Tag::DoubleList: return "float[]";
    case Tag::BoolList: return "bool[]";
    case Tag::TensorList: return "Tensor[]";
    case Tag::OptionalTensorList: return "Tensor?[]";
  }
  return "invalid";
}

struct EValue;

// A list of integers whose entries are other values (symbolic sizes change between executions). `unboxed` is storage
// for the current integers; `literal` means that they never change and stand there already.
struct IntListRef {
  const EValue* const* items = nullptr;
  std::int64_t* unboxed = nullptr;
  std::uint32_t size = 0;
  bool literal = false;

  [[nodiscard]] std::span<const std::int64_t> get() const;
};

template <typename T>
struct ListRef {
  const T* items = nullptr;
  std::uint32_t size = 0;
  [[nodiscard]] std::span<const T> get() const { return {items, size}; }
};

// The entries are values of tag Tensor; in an optional list also of tag None.
struct TensorListRef {
  EValue* const* items = nullptr;
  std::uint32_t size = 0;
};

struct StringRef {
  const char* data = nullptr;
  std::uint32_t size = 0;
};

struct EValue {
  Tag tag = Tag::None;
  union Payload {
    std::int64_t as_int;
    double as_double;
    bool as_bool;
    Tensor* tensor;
    StringRef string;
    IntListRef int_list;
    ListRef<double> double_list;
    ListRef<bool> bool_list;
    TensorListRef tensor_list;
    Payload() : as_int(0) {}
  } payload;

  [[nodiscard]] bool is_none() const { return tag == Tag::None; }
  [[nodiscard]] bool is_tensor() const { return tag == Tag::Tensor; }
  [[nodiscard]] bool is_scalar() const { return tag == Tag::Int || tag == Tag::Double || tag == Tag::Bool; }

  [[nodiscard]] Tensor& tensor() const { return *payload.tensor; }
  [[nodiscard]] std::string_view string() const { return {payload.string.data, payload.string.size}; }

  // The number in a value of tag Int, Double or Bool, converted as C++ converts.
  template <typename T>
  [[nodiscard]] T scalar() const {
    switch (tag) {
      case Tag::Int: return static_cast<T>(payload.as_int);
      case Tag::Double: return static_cast<T>(payload.as_double);
      case Tag::Bool: return static_cast<T>(payload.as_bool);
      default: return T{};
    }
  }

  void set(std::int64_t value) {
    tag = Tag::Int;
    payload.as_int = value;
  }
  void set(double value) {
    tag = Tag::Double;
    payload.as_double = value;
  }
  void set(bool value) {
    tag = Tag::Bool;
    payload.as_bool = value;
  }
};

inline std::span<const std::int64_t> IntListRef::get() const {
  if (!literal) {
    for (std::uint32_t i = 0; i < size; ++i) unboxed[i] = items[i]->scalar<std::int64_t>();
  }
  return {unboxed, size};
}

}  // namespace wb
