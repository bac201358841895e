// What the dense kernels (products, convolutions, pools, normalizations) share: the frame of prepare and execute with
// scratch memory, and tensors seen as arrays of the type to compute in.
#pragma once

#include "kernels/common/args.h"
#include "kernels/common/convert.h"

namespace wb::kernels::WB_ISA {

inline constexpr std::size_t kScratchAlignment = 64;

[[nodiscard]] constexpr std::size_t round_scratch(std::size_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

// Hands out the scratch memory of an execution, front to back. The sizes are those that the plan added up.
class Scratch {
 public:
  explicit Scratch(const KernelContext& context) : next_(context.scratch) {}

  template <typename T>
  [[nodiscard]] T* take(std::size_t count) {
    T* taken = reinterpret_cast<T*>(next_);
    next_ += round_scratch(count * sizeof(T));
    return taken;
  }

 private:
  std::byte* next_;
};

// Bytes of scratch that a tensor needs to be seen as an array of the lane's type.
[[nodiscard]] inline std::size_t staged_bytes(const Tensor& tensor, Lane lane) {
  if (is_identity(tensor.dtype, lane)) return 0;
  return round_scratch(static_cast<std::size_t>(tensor.numel()) * lane_size(lane));
}

// The elements in memory order (sizes and strides apply as they are): the tensor's own memory or a converted copy.
template <typename T>
[[nodiscard]] const T* staged_input(const Tensor& tensor, Lane lane, Scratch& scratch) {
  if (is_identity(tensor.dtype, lane)) return tensor.const_data<T>();
  const std::int64_t n = tensor.numel();
  T* copy = scratch.take<T>(static_cast<std::size_t>(n));
  find_load(tensor.dtype, lane)(copy, tensor.data, 1, n);
  return copy;
}

// Where to write an output; store() converts what was written.
template <typename T>
class StagedOutput {
 public:
  StagedOutput(Tensor& tensor, Lane lane, Scratch& scratch) : tensor_(tensor), lane_(lane) {
    own_ = is_identity(tensor.dtype, lane);
    data_ = own_ ? tensor.mutable_data<T>() : scratch.take<T>(static_cast<std::size_t>(tensor.numel()));
  }
  [[nodiscard]] T* data() const { return data_; }
  void store() const {
    if (!own_) find_store(tensor_.dtype, lane_)(tensor_.data, 1, data_, tensor_.numel());
  }

 private:
  Tensor& tensor_;
  Lane lane_;
  bool own_;
  T* data_;
};

// A dense kernel is a struct with
//   struct State : DenseState { ... };
//   static Error check(KernelContext&, State&);   // tags and dtypes: once
//   static Error plan(KernelContext&, State&);    // from sizes: the outputs' shapes, geometry, `scratch`
//   static Error resize(KernelContext&, State&);  // sets the outputs' sizes
//   static Error run(KernelContext&, State&);     // computes
// The plan is made while preparing (for the upper bounds, if sizes can change: the scratch memory is asked for then)
// and again in each execution if a size or number can change.
struct DenseState {
  bool ready = false;
  std::size_t scratch = 0;  // bytes
  Shape shape;              // of the first output
};

[[nodiscard]] inline bool numbers_constant(const KernelContext& context) {
  for (std::uint32_t i = 0; i < context.count(); ++i) {
    if (!context.arg(i).is_tensor() && !context.is_constant(i)) return false;
  }
  return true;
}

template <typename Op>
Error dense_prepare(KernelContext& context) {
  auto* state = context.allocate_state<typename Op::State>();
  if (state == nullptr) return Error::MemoryAllocationFailed;
  WB_TRY(Op::check(context, *state));
  if (is_static(context)) {
    WB_TRY(Op::plan(context, *state));
    WB_TRY(Op::resize(context, *state));
    state->ready = true;
    context.request_scratch(state->scratch);
    return Error::Ok;
  }
  std::size_t bytes = 0;
  if (numbers_constant(context)) {
    WB_TRY(Op::plan(context, *state));
    bytes = state->scratch;
  } else {  // room to convert every tensor
    for (std::uint32_t i = 0; i < context.count(); ++i) {
      if (context.arg(i).is_tensor()) bytes += round_scratch(static_cast<std::size_t>(context.tensor(i).numel()) * 8);
    }
  }
  context.request_scratch(bytes);
  return Error::Ok;
}

template <typename Op>
Error dense_execute(KernelContext& context) {
  auto& state = *static_cast<typename Op::State*>(context.state);
  if (!state.ready) {
    WB_TRY(Op::plan(context, state));
    if (state.scratch > context.scratch_size) {
      return context.fail(Error::OutOfResources, "needs %zu bytes of scratch memory, prepared were %zu", state.scratch,
                          context.scratch_size);
    }
    WB_TRY(Op::resize(context, state));
  }
  return Op::run(context, state);
}

template <typename Op>
constexpr Kernel dense(const char* name) {
  return {name, dense_prepare<Op>, dense_execute<Op>};
}

// The lane to compute in for floating-point operators: float for 16-bit types.
[[nodiscard]] constexpr Lane float_lane(ScalarType type) { return type == ScalarType::Double ? Lane::F64 : Lane::F32; }

inline Error expect_floating(const KernelContext& context, std::uint32_t arg) {
  const ScalarType type = context.tensor(arg).dtype;
  if (is_floating(type)) return Error::Ok;
  return context.fail(Error::NotSupported, "argument %u: expected a floating-point dtype, found %s", arg,
                      name_of(type));
}

inline Error expect_rank(const KernelContext& context, std::uint32_t arg, int rank) {
  if (context.tensor(arg).rank == rank) return Error::Ok;
  return context.fail(Error::InvalidArgument, "argument %u: expected rank %d, found %d", arg, rank,
                      context.tensor(arg).rank);
}

inline Error expect_size(const KernelContext& context, std::uint32_t arg, int dim, std::int64_t size) {
  if (context.tensor(arg).size(dim) == size) return Error::Ok;
  return context.fail(Error::InvalidArgument, "argument %u: expected size %lld in dimension %d, found %lld", arg,
                      static_cast<long long>(size), dim, static_cast<long long>(context.tensor(arg).size(dim)));
}

// A vector of `size` elements.
inline Error expect_vector(const KernelContext& context, std::uint32_t arg, std::int64_t size) {
  WB_TRY(expect_rank(context, arg, 1));
  return expect_size(context, arg, 0, size);
}

// Calls run(float()), run(double()) for the lane.
template <typename F>
Error for_float_lane(Lane lane, F run) {
  return lane == Lane::F64 ? run(double{}) : run(float{});
}

}  // namespace wb::kernels::WB_ISA
