// A loaded method: values with their memory, resolved instructions, delegates. Loading does all the work that can be
// done once; executing neither allocates nor looks anything up (but for tensors without an upper bound, see resize).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/backend.h"
#include "core/error.h"
#include "core/evalue.h"
#include "core/kernel.h"
#include "core/trace.h"
#include "executor/memory.h"
#include "program/data_file.h"
#include "program/program.h"

namespace wb {

struct LoadOptions {
  std::span<const DataFile* const> data_files;  // searched in order; must outlive the method
  std::span<const std::uint64_t> arena_limits;  // bytes that arena i + 1 may have; 0 and missing ones: no limit
  std::uint64_t memory_limit = 0;               // bytes that the method may take while it is loaded; 0: no limit
  EventSink* trace = nullptr;
};

struct ExecuteOptions {
  EventSink* trace = nullptr;
  std::uint64_t max_instructions = 0;  // 0: no limit; programs may loop
  // Asked now and then (not more often than every few instructions); true stops the execution.
  bool (*interrupted)(void* self) = nullptr;
  void* self = nullptr;
};

// A tensor that a caller gives as an input. `strides` count elements; null means what `dim_order` of the input implies.
struct InputTensor {
  void* data = nullptr;
  ScalarType dtype = ScalarType::Float;
  std::span<const std::int64_t> sizes;
  const std::int64_t* strides = nullptr;
  bool writable = true;  // false: the data is copied even where it could be used in place
};

// What runs for one instruction.
struct Step {
  enum class Kind : std::uint8_t { Kernel, Delegate, Move, JumpFalse, Free };

  Kind kind = Kind::Kernel;
  std::uint32_t target = 0;  // JumpFalse: the next step when the condition is false; Delegate: its index
  KernelFunction execute = nullptr;
  KernelContext* context = nullptr;
  EValue** args = nullptr;  // Move: from, to; JumpFalse: the condition; Free: the value
  std::uint32_t arg_count = 0;
  std::uint32_t out_begin = 0;  // the first argument that is written
  Tensor** late = nullptr;      // tensors whose memory is known only while the method runs
  std::uint32_t late_count = 0;
  std::int32_t chain = 0;
  std::int32_t instruction = 0;
  const char* name = nullptr;
};

// Where the memory of a tensor comes from.
enum class Storage : std::uint8_t {
  None,      // nobody gives it any before the method runs: another tensor's, by a move or a view
  Arena,     // planned
  Constant,  // the file's
  Caller,    // an input without planned memory
  Own,       // an output without planned memory, or a tensor without an upper bound
};

struct MethodStats {
  std::uint64_t load_ns = 0;
  std::uint64_t prepare_ns = 0;  // of load_ns, in kernels' prepare and delegates' init
  std::size_t arena_bytes = 0;   // planned memory
  std::size_t scratch_bytes = 0;
  std::size_t method_bytes = 0;  // all memory that was taken at load: values, arenas, packed weights, scratch
};

class Method {
 public:
  // `program` must outlive the method.
  static Result<std::unique_ptr<Method>> load(const Program& program, std::string_view name, const LoadOptions& options,
                                              Diagnostic& diagnostic);
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  ~Method();

  // Takes the method for one caller, from the first set_input until the outputs are read. InvalidState when somebody
  // else has it.
  Error acquire();
  void release();

  Error set_input(std::uint32_t index, const InputTensor& input);
  // Inputs that are no tensors must have the value that they had when the program was made.
  Error check_input(std::uint32_t index, const EValue& input);
  // After it failed, inputs have to be set again, and the method can be executed again.
  Error execute(const ExecuteOptions& options);
  // Stops an execution at the next instruction; may be called from any thread. Does nothing when none runs.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  [[nodiscard]] const char* name() const { return plan_.name()->c_str(); }
  [[nodiscard]] std::uint32_t input_count() const { return count(plan_.inputs()); }
  [[nodiscard]] std::uint32_t output_count() const { return count(plan_.outputs()); }
  [[nodiscard]] EValue& input(std::uint32_t i) const { return values_[plan_.inputs()->Get(i)]; }
  [[nodiscard]] EValue& output(std::uint32_t i) const { return values_[plan_.outputs()->Get(i)]; }
  // Sizes that a tensor may have at most (those of the program); `tensor` must be one of the method's.
  [[nodiscard]] std::span<const std::int32_t> upper_bound(const Tensor& tensor) const;
  [[nodiscard]] Storage storage(const Tensor& tensor) const { return storage_[index_of(tensor)]; }
  // True if the tensor's data lies in memory that the method owns.
  [[nodiscard]] bool owns(const Tensor& tensor) const;

  // Buffers that keep their contents between executions, by their name in the model.
  [[nodiscard]] const Tensor* attribute(std::string_view name) const;

  [[nodiscard]] std::span<const Step> steps() const { return {steps_, step_count_}; }
  [[nodiscard]] const fb::ExecutionPlan& plan() const { return plan_; }
  [[nodiscard]] const MethodStats& stats() const { return stats_; }
  [[nodiscard]] Diagnostic& diagnostic() { return diagnostic_; }

 private:
  friend class MethodLoader;

  struct Delegate {
    Backend* backend = nullptr;
    DelegateHandle* handle = nullptr;
    bool initialized = false;
  };
  struct Saved {  // what an execution may leave changed, and the next one must find as loaded
    EValue* value = nullptr;
    EValue original;
    void* data = nullptr;
    std::size_t capacity = 0;
  };

  Method(const Program& program, const fb::ExecutionPlan& plan) : program_(program), plan_(plan) {}

  static void* host_allocate(void* self, std::size_t bytes, std::size_t alignment);
  static void host_request_scratch(void* self, std::size_t bytes);
  static Error host_resize(void* self, Tensor& tensor, const std::int32_t* sizes, int rank);
  static void host_report(void* self, const char* format, std::va_list args);

  Error resize(Tensor& tensor, std::span<const std::int32_t> sizes);
  Error grow(Tensor& tensor, std::size_t bytes);
  void free_memory(Tensor& tensor);
  void restore();

  Error run(const ExecuteOptions& options);
  Error run_kernel(const Step& step);
  Error run_delegate(const Step& step, EventSink* trace);
  Error move(EValue& from, EValue& to);
  Error condition(const EValue& value, bool* result);
  Error check_late(const Step& step);
  Error failed(const Step& step, Error error);

  [[nodiscard]] bool is_own(const Tensor& tensor) const {
    return &tensor >= tensors_ && &tensor < tensors_ + tensor_count_;
  }
  [[nodiscard]] std::size_t index_of(const Tensor& tensor) const {
    return static_cast<std::size_t>(&tensor - tensors_);
  }

  const Program& program_;
  const fb::ExecutionPlan& plan_;
  MethodMemory memory_;
  Host host_;
  Diagnostic diagnostic_;

  EValue* values_ = nullptr;  // one more than the plan has: a None for absent entries of lists
  std::uint32_t value_count_ = 0;
  Tensor* tensors_ = nullptr;
  const fb::Tensor** tensor_records_ = nullptr;
  Storage* storage_ = nullptr;
  void** heap_ = nullptr;  // memory of tensors without an upper bound, or null
  std::uint32_t tensor_count_ = 0;

  Step* steps_ = nullptr;
  std::uint32_t step_count_ = 0;
  Delegate* delegates_ = nullptr;
  std::uint32_t delegate_count_ = 0;
  std::byte** arenas_ = nullptr;
  bool* input_set_ = nullptr;
  bool* input_written_ = nullptr;  // an instruction writes to it
  void** staging_ = nullptr;       // copies of inputs that can't be used in place, or null
  Saved* saved_ = nullptr;
  std::uint32_t saved_count_ = 0;

  bool preparing_ = false;
  std::size_t scratch_size_ = 0;
  MethodStats stats_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> cancelled_{false};
};

}  // namespace wb
