// Makes a method from its record in a program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "executor/method.h"

namespace wb {

// Data files first, then what the program itself holds.
class MergedData final : public NamedData {
 public:
  MergedData(std::span<const DataFile* const> files, const Program& program) : files_(files), program_(program) {}
  [[nodiscard]] Result<std::span<const std::byte>> get(std::string_view key) const override;
  void release(std::span<const std::byte> part) const override;

 private:
  std::span<const DataFile* const> files_;
  const Program& program_;
};

class MethodLoader {
 public:
  MethodLoader(Method& method, const LoadOptions& options)
      : method_(method),
        plan_(method.plan_),
        program_(method.program_),
        options_(options),
        data_(options.data_files, program_) {}

  Error run();

 private:
  __attribute__((format(printf, 3, 4))) Error fail(Error error, const char* format, ...);
  // Names of events have to live as long as the method: literals, and texts of the program.
  void log(const char* name, std::uint64_t start_ns);

  // values.cc
  Error make_arenas();
  Error make_values();
  Error make_value(std::uint32_t index);
  Error make_tensor(std::uint32_t index, const fb::Tensor& record);
  Error make_list(std::uint32_t index);
  template <typename T>
  Error make_value_list(std::uint32_t index, const flatbuffers::Vector<T>* items, EValue*** list, std::uint32_t* size);
  Error bind_storage(std::uint32_t index, const fb::Tensor& record, Tensor& tensor, Storage* storage);
  Error bind_external(std::uint32_t index, const fb::Tensor& record, Tensor& tensor, std::span<const std::byte>* data);
  Error bind_inputs_and_outputs();

  // steps.cc
  Error make_steps();
  Error make_step(const fb::Instruction& instruction, std::uint32_t first, Step& step);
  Error make_kernel_step(const fb::KernelCall& call, Step& step);
  Error make_args(const flatbuffers::Vector<std::int32_t>* indices, Step& step);
  Error check_outs(const Step& step);
  [[nodiscard]] bool overlaps_another(const Step& step, std::uint32_t written);
  Error check_move(const Step& step);
  void mark_written();
  void mark_outs_of_delegates();
  void mark_written_inputs();
  Error find_constants();
  Error find_late();
  Error save_changing();
  Error prepare_kernels();
  Error init_delegates();
  [[nodiscard]] std::span<EValue* const> arguments_of_delegate(std::uint32_t delegate) const;

  [[nodiscard]] std::uint32_t index_of(const EValue& value) const {
    return static_cast<std::uint32_t>(&value - method_.values_);
  }
  [[nodiscard]] Error no_memory() { return fail(Error::MemoryAllocationFailed, "no memory"); }

  Method& method_;
  const fb::ExecutionPlan& plan_;
  const Program& program_;
  const LoadOptions& options_;
  MergedData data_;
  KernelFunction* prepare_ = nullptr;  // per step
  bool* written_ = nullptr;            // per value: an instruction or the caller writes it
  bool* readonly_ = nullptr;           // per value: its data may be the file's
  bool* constant_ = nullptr;           // per value
};

}  // namespace wb
