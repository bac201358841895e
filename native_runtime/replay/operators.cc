// Replays one operator of the engine through the same interface as the tests of this machine (engine/harness.cc).
#include <cstdio>
#include <cstring>

#include "replay/record.h"

namespace wb::engine {
struct Harness;
}
extern "C" {
using wb::engine::Harness;
Harness* wb_engine_node(int op);
void wb_engine_free(Harness* harness);
int wb_engine_attribute(Harness* harness, const char* name, int index, double value);
void wb_engine_size(Harness* harness, int index, std::int64_t value, int from_input);
void wb_engine_step(Harness* harness, int fn, int x, int y, int z, float a, float b);
void wb_engine_tensor(Harness* harness, int role, int dtype, int rank, const std::int64_t* sizes, void* data,
                      int constant, int present);
void wb_engine_quantize(Harness* harness, int role, int kind, int bits, int axis, std::int64_t group, float scale,
                        int zero_point, const float* scales, const std::int32_t* zero_points);
int wb_engine_run(Harness* harness, int times, double* seconds, char* text);
}

namespace wb::replay {
namespace {

constexpr std::size_t kGuard = 64;
constexpr auto kRubbish = static_cast<std::byte>(0xA5);

void attach(Harness* harness, int role, const RecordedTensor& tensor, std::byte* data) {
  wb_engine_tensor(harness, role, static_cast<int>(tensor.dtype), static_cast<int>(tensor.sizes.size()),
                   tensor.sizes.data(), data, tensor.constant ? 1 : 0, tensor.present ? 1 : 0);
  if (tensor.quantization.empty()) return;
  const std::vector<std::int64_t>& q = tensor.quantization;
  wb_engine_quantize(harness, role, static_cast<int>(q[0]), static_cast<int>(q[1]), static_cast<int>(q[2]), q[3],
                     tensor.scale, static_cast<int>(q[4]), tensor.scales.empty() ? nullptr : tensor.scales.data(),
                     tensor.zero_points.empty() ? nullptr : tensor.zero_points.data());
}

void read_node(Reader& reader, Harness* harness) {
  for (std::int64_t left = reader.integer(); left > 0 && !reader.failed(); --left) {
    const std::string name = reader.text();
    const auto index = static_cast<int>(reader.integer());
    wb_engine_attribute(harness, name.c_str(), index, reader.real());
  }
  for (std::int64_t left = reader.integer(); left > 0 && !reader.failed(); --left) {
    const auto index = static_cast<int>(reader.integer());
    const std::int64_t size = reader.integer();
    wb_engine_size(harness, index, size, static_cast<int>(reader.integer()));
  }
  for (std::int64_t left = reader.integer(); left > 0 && !reader.failed(); --left) {
    int numbers[4];
    for (int& number : numbers) number = static_cast<int>(reader.integer());
    const auto a = static_cast<float>(reader.real());
    wb_engine_step(harness, numbers[0], numbers[1], numbers[2], numbers[3], a, static_cast<float>(reader.real()));
  }
}

}  // namespace

bool replay_operator(Reader& reader, std::int64_t number) {
  const std::string name = reader.text();
  Harness* harness = wb_engine_node(static_cast<int>(reader.integer()));
  const Tolerance tolerance{reader.real(), reader.real()};
  read_node(reader, harness);
  std::vector<RecordedTensor> inputs = reader.tensors();
  const std::vector<RecordedTensor> outputs = reader.tensors();
  std::vector<RecordedTensor> post = reader.tensors();
  std::vector<std::vector<std::byte>> found;
  for (RecordedTensor& tensor : inputs) attach(harness, 0, tensor, tensor.data.data());
  for (const RecordedTensor& tensor : outputs) {
    found.emplace_back(tensor.data.size() + kGuard, kRubbish);
    attach(harness, 1, tensor, tensor.present ? found.back().data() : nullptr);
  }
  for (RecordedTensor& tensor : post) attach(harness, 2, tensor, tensor.data.data());
  bool good = !reader.failed();
  char text[512] = "";
  if (good) {
    if (const int error = wb_engine_run(harness, 1, nullptr, text); error != 0) {
      std::printf("operator %lld, %s: error %#x: %s\n", static_cast<long long>(number), name.c_str(), error, text);
      good = false;
    }
  }
  wb_engine_free(harness);
  for (std::size_t i = 0; good && i < outputs.size(); ++i) {
    if (!outputs[i].present) continue;
    std::string difference = compare(outputs[i], found[i].data(), tolerance);
    for (std::size_t b = outputs[i].data.size(); b < found[i].size() && difference.empty(); ++b) {
      if (found[i][b] != kRubbish) difference = "wrote past its end";
    }
    if (difference.empty()) continue;
    std::printf("operator %lld, %s, output %zu: %s\n", static_cast<long long>(number), name.c_str(), i,
                difference.c_str());
    good = false;
  }
  return good;
}

}  // namespace wb::replay
