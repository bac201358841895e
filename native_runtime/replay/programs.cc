// Replays a program: loads it, runs it several times, compares its outputs.
#include <cstdio>
#include <cstring>

#include "executor/method.h"
#include "program/program.h"
#include "replay/record.h"

namespace wb::replay {
namespace {

constexpr int kRuns = 2;  // the second one finds what the first one left

Error run_once(Method& method, std::vector<RecordedTensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    InputTensor input;
    input.data = inputs[i].data.data();
    input.dtype = inputs[i].dtype;
    input.sizes = inputs[i].sizes;
    WB_TRY(method.set_input(static_cast<std::uint32_t>(i), input));
  }
  return method.execute(ExecuteOptions{});
}

std::vector<std::byte> in_logical_order(const Tensor& tensor) {
  const std::size_t element = element_size(tensor.dtype);
  std::vector<std::byte> result(tensor.nbytes());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (int d = tensor.rank - 1; d >= 0; --d) {
      offset += rest % tensor.sizes[d] * tensor.strides[d];
      rest /= tensor.sizes[d];
    }
    std::memcpy(result.data() + static_cast<std::size_t>(i) * element,
                tensor.const_data<std::byte>() + static_cast<std::size_t>(offset) * element, element);
  }
  return result;
}

std::string check_output(const Method& method, std::size_t index, const RecordedTensor& expected,
                         const Tolerance& tolerance) {
  const EValue& value = method.output(static_cast<std::uint32_t>(index));
  if (!value.is_tensor()) return "no tensor";
  const Tensor& tensor = value.tensor();
  if (tensor.dtype != expected.dtype) return "of another type";
  if (std::vector<std::int64_t>(tensor.sizes, tensor.sizes + tensor.rank) != expected.sizes) return "of other sizes";
  return compare(expected, in_logical_order(tensor).data(), tolerance);
}

}  // namespace

bool replay_program(Reader& reader, std::int64_t number) {
  const std::string name = reader.text();
  const std::string path = reader.text();
  const Tolerance tolerance{reader.real(), reader.real()};
  std::vector<RecordedTensor> inputs = reader.tensors();
  const std::vector<RecordedTensor> outputs = reader.tensors();
  if (reader.failed()) return false;
  const auto complain = [&](const char* text) {
    std::printf("program %lld, %s: %s\n", static_cast<long long>(number), name.c_str(), text);
    return false;
  };
  Diagnostic diagnostic;
  auto program = Program::open(path.c_str(), diagnostic);
  if (!program.ok()) return complain(diagnostic.text());
  auto loaded = Method::load(**program, "forward", LoadOptions{}, diagnostic);
  if (!loaded.ok()) return complain(diagnostic.text());
  Method& method = **loaded;
  if (method.input_count() != inputs.size() || method.output_count() != outputs.size()) {
    return complain("another number of inputs or outputs");
  }
  for (int run = 0; run < kRuns; ++run) {
    if (method.acquire() != Error::Ok) return complain("is in use");
    const Error error = run_once(method, inputs);
    for (std::size_t i = 0; error == Error::Ok && i < outputs.size(); ++i) {
      const std::string difference = check_output(method, i, outputs[i], tolerance);
      if (!difference.empty()) return complain(("output " + std::to_string(i) + ": " + difference).c_str());
    }
    method.release();
    if (error != Error::Ok) return complain(method.diagnostic().text());
  }
  return true;
}

}  // namespace wb::replay
