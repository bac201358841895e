#include "python/convert.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "python/errors.h"

namespace py = pybind11;

namespace wb::python {
namespace {

constexpr ScalarType kNone = static_cast<ScalarType>(-1);

ScalarType from_dlpack(dlpack::DataType type) {
  if (type.lanes != 1) return kNone;
  switch (type.code) {
    case dlpack::kBool: return type.bits == 8 ? ScalarType::Bool : kNone;
    case dlpack::kBfloat: return type.bits == 16 ? ScalarType::BFloat16 : kNone;
    case dlpack::kFloat:
      return type.bits == 32   ? ScalarType::Float
             : type.bits == 64 ? ScalarType::Double
             : type.bits == 16 ? ScalarType::Half
                               : kNone;
    case dlpack::kComplex:
      return type.bits == 64 ? ScalarType::ComplexFloat : type.bits == 128 ? ScalarType::ComplexDouble : kNone;
    case dlpack::kInt:
      return type.bits == 8    ? ScalarType::Char
             : type.bits == 16 ? ScalarType::Short
             : type.bits == 32 ? ScalarType::Int
             : type.bits == 64 ? ScalarType::Long
                               : kNone;
    case dlpack::kUInt:
      return type.bits == 8    ? ScalarType::Byte
             : type.bits == 16 ? ScalarType::UInt16
             : type.bits == 32 ? ScalarType::UInt32
             : type.bits == 64 ? ScalarType::UInt64
                               : kNone;
    default: return kNone;
  }
}

bool to_dlpack(ScalarType type, dlpack::DataType* out) {
  const auto bits = static_cast<std::uint8_t>(element_size(type) * 8);
  out->bits = bits;
  out->lanes = 1;
  switch (type) {
    case ScalarType::Bool: out->code = dlpack::kBool; return true;
    case ScalarType::BFloat16: out->code = dlpack::kBfloat; return true;
    case ScalarType::Half:
    case ScalarType::Float:
    case ScalarType::Double: out->code = dlpack::kFloat; return true;
    case ScalarType::ComplexFloat:
    case ScalarType::ComplexDouble: out->code = dlpack::kComplex; return true;
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long: out->code = dlpack::kInt; return true;
    case ScalarType::Byte:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::UInt64: out->code = dlpack::kUInt; return true;
    default: return false;
  }
}

// One letter of the struct module's format, after an optional byte order.
ScalarType from_format(const std::string& format, py::ssize_t itemsize) {
  std::string letters = format;
  if (!letters.empty() && (letters[0] == '@' || letters[0] == '=' || letters[0] == '<')) letters.erase(0, 1);
  if (letters.size() != 1) return kNone;
  switch (letters[0]) {
    case '?': return ScalarType::Bool;
    case 'e': return ScalarType::Half;
    case 'f': return ScalarType::Float;
    case 'd': return ScalarType::Double;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return itemsize == 1   ? ScalarType::Char
             : itemsize == 2 ? ScalarType::Short
             : itemsize == 4 ? ScalarType::Int
                             : ScalarType::Long;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return itemsize == 1   ? ScalarType::Byte
             : itemsize == 2 ? ScalarType::UInt16
             : itemsize == 4 ? ScalarType::UInt32
                             : ScalarType::UInt64;
    default: return kNone;
  }
}

std::string describe(std::size_t index) { return "input " + std::to_string(index); }

}  // namespace

bool is_tensor_like(const py::handle& object) {
  return PyCapsule_IsValid(object.ptr(), "dltensor") != 0 || PyObject_CheckBuffer(object.ptr()) != 0 ||
         py::hasattr(object, "__dlpack__");
}

BorrowedTensor::BorrowedTensor(const py::handle& object, std::size_t index) {
  // Arrays of NumPy refuse DLPack when they are read-only; their buffers come first.
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    take_buffer(object, index);
  } else {
    take_dlpack(object, index);
  }
}

BorrowedTensor::BorrowedTensor(BorrowedTensor&& other) noexcept
    : data_(other.data_),
      dtype_(other.dtype_),
      writable_(other.writable_),
      sizes_(std::move(other.sizes_)),
      strides_(std::move(other.strides_)),
      managed_(std::exchange(other.managed_, nullptr)),
      buffer_(std::move(other.buffer_)) {}

BorrowedTensor::~BorrowedTensor() {
  if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
}

void BorrowedTensor::take_dlpack(const py::handle& object, std::size_t index) {
  const bool given = PyCapsule_IsValid(object.ptr(), "dltensor") != 0;
  const py::object capsule = given ? py::reinterpret_borrow<py::object>(object) : object.attr("__dlpack__")();
  auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) throw py::error_already_set();
  const dlpack::Tensor& tensor = managed->tensor;
  if (tensor.device.type != static_cast<std::int32_t>(dlpack::DeviceType::Cpu)) {
    raise(Error::InvalidArgument, describe(index) + ": the tensor is not in the CPU's memory");
  }
  dtype_ = from_dlpack(tensor.dtype);
  if (dtype_ == kNone) raise(Error::InvalidType, describe(index) + ": the tensor's dtype is not supported");
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  managed_ = managed;
  data_ = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  sizes_.assign(tensor.shape, tensor.shape + tensor.ndim);
  strides_.resize(sizes_.size());
  std::int64_t step = 1;
  for (std::size_t d = sizes_.size(); d-- > 0;) {
    strides_[d] = tensor.strides == nullptr ? step : tensor.strides[d];
    step *= sizes_[d];
  }
}

void BorrowedTensor::take_buffer(const py::handle& object, std::size_t index) {
  buffer_ = std::make_unique<py::buffer_info>(py::reinterpret_borrow<py::buffer>(object).request());
  dtype_ = from_format(buffer_->format, buffer_->itemsize);
  if (dtype_ == kNone) {
    raise(Error::InvalidType, describe(index) + ": elements of format '" + buffer_->format + "' are not supported");
  }
  data_ = buffer_->ptr;
  writable_ = !buffer_->readonly;
  for (py::ssize_t d = 0; d < buffer_->ndim; ++d) {
    sizes_.push_back(buffer_->shape[static_cast<std::size_t>(d)]);
    const py::ssize_t stride = buffer_->strides[static_cast<std::size_t>(d)];
    if (stride % buffer_->itemsize != 0) {
      raise(Error::InvalidArgument, describe(index) + ": its strides are no multiples of its elements");
    }
    strides_.push_back(stride / buffer_->itemsize);
  }
}

InputTensor BorrowedTensor::view() const { return {data_, dtype_, sizes_, strides_.data(), writable_}; }

namespace {

// What a capsule refers to: shape and strides, and either a copy of the data or an owner.
struct Exported {
  dlpack::ManagedTensor managed{};
  std::int64_t shape[kMaxRank] = {};
  std::int64_t strides[kMaxRank] = {};
  void* copy = nullptr;
  PyObject* owner = nullptr;
};

void destroy(dlpack::ManagedTensor* managed) {
  auto* exported = static_cast<Exported*>(managed->manager);
  std::free(exported->copy);
  if (exported->owner != nullptr) {
    const py::gil_scoped_acquire gil;
    Py_DECREF(exported->owner);
  }
  delete exported;
}

void destroy_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;  // somebody took it
  destroy(static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor")));
}

py::capsule export_tensor(const Tensor& tensor, void* data, void* copy, PyObject* owner) {
  auto* exported = new Exported();
  exported->copy = copy;
  exported->owner = owner;
  for (int d = 0; d < tensor.rank; ++d) {
    exported->shape[d] = tensor.sizes[d];
    exported->strides[d] = tensor.strides[d];
  }
  dlpack::Tensor& out = exported->managed.tensor;
  out.data = data;
  out.device = {static_cast<std::int32_t>(dlpack::DeviceType::Cpu), 0};
  out.ndim = tensor.rank;
  out.shape = exported->shape;
  out.strides = exported->strides;
  exported->managed.manager = exported;
  exported->managed.deleter = &destroy;
  if (!to_dlpack(tensor.dtype, &out.dtype)) {
    destroy(&exported->managed);
    raise(Error::NotSupported, std::string("an output of dtype ") + name_of(tensor.dtype) + " can't be handed out");
  }
  PyObject* capsule = PyCapsule_New(&exported->managed, "dltensor", &destroy_capsule);
  if (capsule == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::capsule>(capsule);
}

}  // namespace

py::capsule copy_out(const Tensor& tensor) {
  const std::size_t nbytes = tensor.nbytes();
  const std::size_t padded = (nbytes / 64 + 1) * 64;
  void* copy = std::aligned_alloc(64, padded);
  if (copy == nullptr) raise(Error::MemoryAllocationFailed, "no memory for an output");
  if (nbytes != 0) std::memcpy(copy, tensor.data, nbytes);
  return export_tensor(tensor, copy, copy, nullptr);
}

py::capsule lend_out(const Tensor& tensor, const py::object& owner) {
  return export_tensor(tensor, tensor.data, nullptr, py::object(owner).release().ptr());
}

}  // namespace wb::python
