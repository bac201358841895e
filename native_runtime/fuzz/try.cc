#include "fuzz/try.h"

#include <cstring>
#include <vector>

#include "executor/method.h"
#include "program/data_file.h"
#include "program/program.h"

namespace wb::fuzz {
namespace {

// A sanitizer sees a read outside of what is there only if something reads.
std::uint64_t sum(std::span<const std::byte> bytes) {
  std::uint64_t total = 0;
  for (const std::byte byte : bytes) total += static_cast<std::uint64_t>(byte);
  return total;
}

volatile std::uint64_t sink = 0;

bool too_large(const Method& method, const Limits& limits) {
  for (const Step& step : method.steps()) {
    std::uint64_t elements = 1;
    for (std::uint32_t a = 0; a < step.arg_count; ++a) {
      if (!step.args[a]->is_tensor()) continue;
      const Tensor& tensor = step.args[a]->tensor();
      elements += static_cast<std::uint64_t>(tensor.numel());
    }
    if (elements > limits.elements) return true;
  }
  return false;
}

Error set_zeros(Method& method, std::vector<std::vector<std::byte>>& memory) {
  for (std::uint32_t i = 0; i < method.input_count(); ++i) {
    const EValue value = method.input(i);
    if (!value.is_tensor()) {
      WB_TRY(method.check_input(i, value));
      continue;
    }
    const Tensor& tensor = value.tensor();
    std::vector<std::int64_t> sizes(tensor.sizes, tensor.sizes + tensor.rank);
    memory.emplace_back(tensor.nbytes());
    InputTensor input;
    input.data = memory.back().data();
    input.dtype = tensor.dtype;
    input.sizes = sizes;
    WB_TRY(method.set_input(i, input));
  }
  return Error::Ok;
}

Outcome try_method(const Program& program, std::size_t index, const Limits& limits) {
  Diagnostic diagnostic;
  LoadOptions options;
  options.memory_limit = limits.memory;
  auto loaded = Method::load(program, view(program.method_at(index).name()), options, diagnostic);
  if (!loaded.ok()) return Outcome::NotLoaded;
  Method& method = **loaded;
  if (too_large(method, limits)) return Outcome::NotLoaded;
  Outcome outcome = Outcome::Executed;
  for (int repetition = 0; repetition < 2; ++repetition) {
    std::vector<std::vector<std::byte>> memory;
    if (method.acquire() != Error::Ok) return Outcome::Failed;
    ExecuteOptions execute;
    execute.max_instructions = limits.instructions;
    if (set_zeros(method, memory) != Error::Ok || method.execute(execute) != Error::Ok) {
      outcome = Outcome::Failed;
    } else {
      for (std::uint32_t i = 0; i < method.output_count(); ++i) {
        const EValue& value = method.output(i);
        if (!value.is_tensor() || value.tensor().data == nullptr) continue;
        sink = sink + sum({value.tensor().const_data<std::byte>(), value.tensor().nbytes()});
      }
    }
    method.release();
  }
  return outcome;
}

}  // namespace

Outcome try_program(std::span<const std::byte> bytes, const Limits& limits) {
  Diagnostic diagnostic;
  auto program = Program::from_bytes(bytes, diagnostic);
  if (!program.ok()) return Outcome::Refused;
  for (std::size_t i = 0; i < (*program)->named_count(); ++i) {
    if (auto data = (*program)->get((*program)->named_key(i)); data.ok()) sink = sink + sum(*data);
  }
  Outcome worst = Outcome::Executed;
  for (std::size_t i = 0; i < (*program)->method_count(); ++i) {
    const Outcome outcome = try_method(**program, i, limits);
    worst = outcome < worst ? outcome : worst;
  }
  return worst;
}

Outcome try_data_file(std::span<const std::byte> bytes) {
  Diagnostic diagnostic;
  auto file = DataFile::from_bytes(bytes, diagnostic);
  if (!file.ok()) return Outcome::Refused;
  for (std::size_t i = 0; i < (*file)->count(); ++i) {
    if (auto data = (*file)->get((*file)->key(i)); data.ok()) sink = sink + sum(*data);
  }
  return Outcome::Executed;
}

}  // namespace wb::fuzz
