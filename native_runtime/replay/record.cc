#include "replay/record.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace wb::replay {
namespace {

#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13  // kernels/common/types.h
using Half = __fp16;
#else
using Half = _Float16;
#endif

double element(ScalarType dtype, const void* data, std::int64_t i) {
  switch (dtype) {
    case ScalarType::Float: return static_cast<const float*>(data)[i];
    case ScalarType::Double: return static_cast<const double*>(data)[i];
    case ScalarType::Half: return static_cast<double>(static_cast<const Half*>(data)[i]);
    case ScalarType::Long: return static_cast<double>(static_cast<const std::int64_t*>(data)[i]);
    case ScalarType::Int: return static_cast<const std::int32_t*>(data)[i];
    case ScalarType::Short: return static_cast<const std::int16_t*>(data)[i];
    case ScalarType::Char: return static_cast<const std::int8_t*>(data)[i];
    default: return static_cast<const std::uint8_t*>(data)[i];
  }
}

bool agrees(double expected, double found, double largest, const Tolerance& tolerance) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) return expected == found;
  return std::abs(expected - found) <= tolerance.relative * std::abs(expected) + tolerance.of_largest * largest;
}

}  // namespace

std::int64_t RecordedTensor::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

bool Reader::open(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return false;
  std::byte block[65536];
  for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, file)) != 0;) {
    bytes_.insert(bytes_.end(), block, block + n);
  }
  std::fclose(file);
  return true;
}

const std::byte* Reader::take(std::size_t bytes) {
  if (failed_ || bytes > bytes_.size() - next_) {
    failed_ = true;
    return nullptr;
  }
  next_ += bytes;
  return bytes_.data() + next_ - bytes;
}

std::int64_t Reader::integer() {
  std::int64_t value = 0;
  if (const std::byte* from = take(sizeof value)) std::memcpy(&value, from, sizeof value);
  return value;
}

double Reader::real() {
  double value = 0;
  if (const std::byte* from = take(sizeof value)) std::memcpy(&value, from, sizeof value);
  return value;
}

std::string Reader::text() {
  const std::int64_t length = integer();
  const std::byte* from = take(static_cast<std::size_t>(length));
  return from == nullptr ? std::string()
                         : std::string(reinterpret_cast<const char*>(from), static_cast<std::size_t>(length));
}

RecordedTensor Reader::tensor() {
  RecordedTensor result;
  result.present = integer() != 0;
  if (!result.present) return result;
  result.constant = integer() != 0;
  result.dtype = static_cast<ScalarType>(integer());
  const std::int64_t rank = integer();
  for (std::int64_t d = 0; d < rank && !failed_; ++d) result.sizes.push_back(integer());
  const auto bytes = static_cast<std::size_t>(integer());
  if (const std::byte* from = take(bytes)) result.data.assign(from, from + bytes);
  quantization(&result);
  // Several integers may stand in a byte, and something after them.
  const bool dense = result.quantization.empty();
  if (dense && result.data.size() != static_cast<std::size_t>(result.numel()) * element_size(result.dtype)) {
    failed_ = true;
  }
  return result;
}

void Reader::quantization(RecordedTensor* tensor) {
  const std::int64_t count = integer();
  for (std::int64_t i = 0; i < count && !failed_; ++i) tensor->quantization.push_back(integer());
  if (count == 0) return;
  tensor->quantization.resize(5);
  tensor->scale = static_cast<float>(real());
  array(&tensor->scales);
  array(&tensor->zero_points);
}

template <typename T>
void Reader::array(std::vector<T>* to) {
  const auto bytes = static_cast<std::size_t>(integer());
  const std::byte* from = take(bytes);
  if (from == nullptr || bytes == 0) return;
  to->resize(bytes / sizeof(T));
  std::memcpy(to->data(), from, to->size() * sizeof(T));
}

std::vector<RecordedTensor> Reader::tensors() {
  std::vector<RecordedTensor> result;
  const std::int64_t count = integer();
  for (std::int64_t i = 0; i < count && !failed_; ++i) result.push_back(tensor());
  return result;
}

std::string compare(const RecordedTensor& expected, const void* found, const Tolerance& tolerance) {
  const std::int64_t count = expected.numel();
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = std::abs(element(expected.dtype, expected.data.data(), i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const double wanted = element(expected.dtype, expected.data.data(), i);
    const double got = element(expected.dtype, found, i);
    if (agrees(wanted, got, largest, tolerance)) continue;
    // Where products are not fused with sums, a number may be rounded to the other side.
    if (!expected.quantization.empty() && std::abs(wanted - got) <= 1) continue;
    char text[160];
    std::snprintf(text, sizeof text, "element %lld of %lld: expected %.9g, found %.9g (largest %.3g)",
                  static_cast<long long>(i), static_cast<long long>(count), wanted, got, largest);
    return text;
  }
  return {};
}

}  // namespace wb::replay
