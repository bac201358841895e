// The DLPack interface, version 0.8: how array libraries hand tensors to each other. Facts of the ABI; see
// https://dmlc.github.io/dlpack/latest/c_api.html.
#pragma once

#include <cstdint>

namespace wb::python::dlpack {

enum class DeviceType : std::int32_t { Cpu = 1 };

struct Device {
  std::int32_t type;
  std::int32_t id;
};

enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major without gaps
  std::uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor*);
};

}  // namespace wb::python::dlpack
