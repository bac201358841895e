// Tensors across the border: DLPack and the buffer protocol in, DLPack out.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor.h"
#include "executor/method.h"
#include "python/dlpack.h"

namespace wb::python {

// A tensor of the caller, kept alive while it is in use. Anything with `__dlpack__` on the CPU or with the buffer
// protocol.
class BorrowedTensor {
 public:
  // Raises TypeError for an object that is no tensor, ExecutionError for one that the runtime can't take.
  BorrowedTensor(const pybind11::handle& object, std::size_t index);
  BorrowedTensor(BorrowedTensor&& other) noexcept;
  BorrowedTensor(const BorrowedTensor&) = delete;
  BorrowedTensor& operator=(const BorrowedTensor&) = delete;
  BorrowedTensor& operator=(BorrowedTensor&&) = delete;
  ~BorrowedTensor();

  [[nodiscard]] InputTensor view() const;

 private:
  void take_dlpack(const pybind11::handle& object, std::size_t index);
  void take_buffer(const pybind11::handle& object, std::size_t index);

  void* data_ = nullptr;
  ScalarType dtype_ = ScalarType::Float;
  bool writable_ = true;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
  dlpack::ManagedTensor* managed_ = nullptr;
  std::unique_ptr<pybind11::buffer_info> buffer_;
};

// True for objects that BorrowedTensor may take.
[[nodiscard]] bool is_tensor_like(const pybind11::handle& object);

// A DLPack capsule with a copy of the tensor, in its dim order.
[[nodiscard]] pybind11::capsule copy_out(const Tensor& tensor);

// A DLPack capsule that refers to the tensor's memory; `owner` is kept alive by it.
[[nodiscard]] pybind11::capsule lend_out(const Tensor& tensor, const pybind11::object& owner);

}  // namespace wb::python
