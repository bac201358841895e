// A file of records: what was run elsewhere, with what came out. Little-endian numbers of 8 bytes; written by
// tests/replay_records.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/scalar_type.h"

namespace wb::replay {

struct RecordedTensor {
  bool present = false, constant = false;
  ScalarType dtype = ScalarType::Float;
  std::vector<std::int64_t> sizes;
  std::vector<std::byte> data;
  std::vector<std::int64_t> quantization;  // kind, bits, axis, group, zero point; or nothing
  float scale = 1;
  std::vector<float> scales;
  std::vector<std::int32_t> zero_points;

  [[nodiscard]] std::int64_t numel() const;
};

// Reads a file from front to back. A file that ends too early makes it fail; it gives zeros from then on.
class Reader {
 public:
  [[nodiscard]] bool open(const char* path);
  [[nodiscard]] bool at_end() const { return next_ == bytes_.size(); }
  [[nodiscard]] bool failed() const { return failed_; }
  std::int64_t integer();
  double real();
  std::string text();
  RecordedTensor tensor();
  std::vector<RecordedTensor> tensors();

 private:
  void quantization(RecordedTensor* tensor);
  template <typename T>
  void array(std::vector<T>* to);
  const std::byte* take(std::size_t bytes);

  std::vector<std::byte> bytes_;
  std::size_t next_ = 0;
  bool failed_ = false;
};

// How far a result may be from the recorded one: relative to each element, and to the largest of the tensor.
struct Tolerance {
  double relative = 0, of_largest = 0;
};

// Empty if they agree, else what differs.
[[nodiscard]] std::string compare(const RecordedTensor& expected, const void* found, const Tolerance& tolerance);

// One of each kind. They print what differs and return whether all agreed.
[[nodiscard]] bool replay_operator(Reader& reader, std::int64_t number);
[[nodiscard]] bool replay_program(Reader& reader, std::int64_t number);

}  // namespace wb::replay
