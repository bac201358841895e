// sum, mean, prod, amax, amin, any, all, var, std, and the mean that goes with var.
#include "kernels/reduction/folds.h"

namespace wb::kernels::WB_ISA {
namespace {

// How the lane is chosen: by the output (sums are computed in its type), by the input, or always bool.
enum class By : std::uint8_t { Output, Input, Bool };

struct Folds {
  By by;
  const ReduceOp* ops[kComputeLanes];  // by Lane; null where there is none
  bool needs_elements = false;         // no result over nothing
};

constexpr ReduceOp kSumF32 = fold_op<SumFold, float, double>();
constexpr ReduceOp kSumF64 = fold_op<SumFold, double, double>();
constexpr ReduceOp kSumI64 = fold_op<SumFold, std::int64_t, std::int64_t>();
constexpr ReduceOp kMeanF32 = fold_op<MeanFold, float, double>();
constexpr ReduceOp kMeanF64 = fold_op<MeanFold, double, double>();
constexpr ReduceOp kProdF32 = fold_op<ProdFold, float, double>();
constexpr ReduceOp kProdF64 = fold_op<ProdFold, double, double>();
constexpr ReduceOp kProdI64 = fold_op<ProdFold, std::int64_t, std::int64_t>();
constexpr ReduceOp kMaxF32 = fold_op<MaxFold, float, float>();
constexpr ReduceOp kMaxF64 = fold_op<MaxFold, double, double>();
constexpr ReduceOp kMaxI64 = fold_op<MaxFold, std::int64_t, std::int64_t>();
constexpr ReduceOp kMinF32 = fold_op<MinFold, float, float>();
constexpr ReduceOp kMinF64 = fold_op<MinFold, double, double>();
constexpr ReduceOp kMinI64 = fold_op<MinFold, std::int64_t, std::int64_t>();
constexpr ReduceOp kAny = fold_op<AnyFold, bool, bool>();
constexpr ReduceOp kAll = fold_op<AllFold, bool, bool>();
constexpr ReduceOp kVarF32 = fold_op<VarFold, float, Moments>();
constexpr ReduceOp kVarF64 = fold_op<VarFold, double, Moments>();
constexpr ReduceOp kStdF32 = fold_op<StdFold, float, Moments>();
constexpr ReduceOp kStdF64 = fold_op<StdFold, double, Moments>();

constexpr Folds kSum = {By::Output, {&kSumF32, &kSumF64, &kSumI64}};
constexpr Folds kMean = {By::Output, {&kMeanF32, &kMeanF64}};
constexpr Folds kProd = {By::Output, {&kProdF32, &kProdF64, &kProdI64}};
constexpr Folds kMax = {By::Input, {&kMaxF32, &kMaxF64, &kMaxI64}, true};
constexpr Folds kMin = {By::Input, {&kMinF32, &kMinF64, &kMinI64}, true};
constexpr Folds kAnyTrue = {By::Bool, {nullptr, nullptr, nullptr, &kAny}};
constexpr Folds kAllTrue = {By::Bool, {nullptr, nullptr, nullptr, &kAll}};
constexpr Folds kVar = {By::Output, {&kVarF32, &kVarF64}};
constexpr Folds kStd = {By::Output, {&kStdF32, &kStdF64}};

// Where the arguments stand; -1: there is none. `dims` may hold an int, an int[] or None.
struct Places {
  int dims = -1;
  int keepdim = -1;
  int correction = -1;
  int unbiased = -1;
};

struct ReduceState {
  bool ready = false;
  ReduceLayout layout;
  ReduceRun run;
};

Error choose(KernelContext& context, const Folds& folds, std::uint32_t out_arg, ReduceRun& run) {
  WB_TRY(expect_computable(context, 0));
  WB_TRY(expect_computable(context, out_arg));
  const ScalarType from = context.tensor(0).dtype;
  const ScalarType to = context.tensor(out_arg).dtype;
  Lane lane = natural_lane(folds.by == By::Output ? to : from);
  if (lane == Lane::Bool) lane = Lane::I64;
  if (folds.by == By::Bool) lane = Lane::Bool;
  run.op = folds.ops[static_cast<int>(lane)];
  if (run.op == nullptr) {
    return context.fail(Error::InvalidType, "argument %u (out): no kernel for dtype %s", out_arg, name_of(to));
  }
  run.lane = lane;
  run.load = is_identity(from, lane) ? nullptr : find_load(from, lane);
  run.store = find_store(to, lane);
  run.from_size = static_cast<std::uint8_t>(element_size(from));
  run.to_size = static_cast<std::uint8_t>(element_size(to));
  return Error::Ok;
}

Error get_mask(const KernelContext& context, const Places& places, int rank, std::uint32_t* mask) {
  *mask = (1U << rank) - 1;
  if (places.dims < 0 || context.arg(places.dims).is_none()) return Error::Ok;
  if (context.arg(places.dims).tag == Tag::IntList) return get_dims(context, places.dims, rank, true, mask);
  int dim = 0;
  WB_TRY(get_dim(context, places.dims, rank, &dim));
  *mask = rank == 0 ? 0 : 1U << dim;
  return Error::Ok;
}

Error plan_reduce(KernelContext& context, const Folds& folds, const Places& places, std::uint32_t out_arg,
                  ReduceState& state) {
  const Tensor& self = context.tensor(0);
  Tensor& out = context.tensor(out_arg);
  std::uint32_t mask = 0;
  WB_TRY(get_mask(context, places, self.rank, &mask));
  const bool keepdim = places.keepdim >= 0 && context.arg(places.keepdim).scalar<bool>();
  Shape shape;
  reduced_shape(self, mask, keepdim, &shape);
  WB_TRY(context.resize(out, shape.span()));
  layout_reduction(self, out, mask, keepdim, &state.layout);
  if (folds.needs_elements && state.layout.count == 0 && state.layout.results != 0) {
    return context.fail(Error::InvalidArgument, "argument 0: there is no element to choose from");
  }
  state.run.parameter = 1;
  if (places.correction >= 0 && !context.arg(places.correction).is_none()) {
    state.run.parameter = context.arg(places.correction).scalar<double>();
  }
  if (places.unbiased >= 0) state.run.parameter = context.arg(places.unbiased).scalar<bool>() ? 1 : 0;
  return Error::Ok;
}

// A description of an overload: its folds, its signature ("D" stands for dims), and where the arguments are.
struct Overload {
  const Folds* folds;
  const char* signature;
  Places places;
};

template <const Overload& overload>
struct Reduce {
  using State = ReduceState;
  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, overload.signature));
    return choose(context, *overload.folds, context.count() - 1, state.run);
  }
  static Error plan(KernelContext& context, State& state) {
    return plan_reduce(context, *overload.folds, overload.places, context.count() - 1, state);
  }
  static Error run(KernelContext& context, State& state) {
    run_reduction(state.layout, state.run, context.tensor(0).data, context.tensor(context.count() - 1).data);
    return Error::Ok;
  }
};

constexpr Overload kSumDims = {&kSum, "tMb*t", {1, 2}};
constexpr Overload kMeanDims = {&kMean, "tMb*t", {1, 2}};
constexpr Overload kMeanAll = {&kMean, "t*t", {}};
constexpr Overload kProdDim = {&kProd, "tib*t", {1, 2}};
constexpr Overload kProdAll = {&kProd, "t*t", {}};
constexpr Overload kAmax = {&kMax, "tMbt", {1, 2}};
constexpr Overload kAmin = {&kMin, "tMbt", {1, 2}};
constexpr Overload kMaxAll = {&kMax, "tt", {}};
constexpr Overload kMinAll = {&kMin, "tt", {}};
constexpr Overload kAnyAll = {&kAnyTrue, "tt", {}};
constexpr Overload kAnyDims = {&kAnyTrue, "tMbt", {1, 2}};
constexpr Overload kAnyDim = {&kAnyTrue, "tibt", {1, 2}};
constexpr Overload kAllAll = {&kAllTrue, "tt", {}};
constexpr Overload kAllDims = {&kAllTrue, "tMbt", {1, 2}};
constexpr Overload kAllDim = {&kAllTrue, "tibt", {1, 2}};
constexpr Overload kVarCorrection = {&kVar, "tMSbt", {1, 3, 2}};
constexpr Overload kVarUnbiased = {&kVar, "tMbbt", {1, 3, -1, 2}};
constexpr Overload kStdCorrection = {&kStd, "tMSbt", {1, 3, 2}};

// var_mean.correction: two results over the same elements.
struct VarMean {
  struct State {
    bool ready = false;
    ReduceState var;
    ReduceState mean;
  };
  static constexpr Places kPlaces = {1, 3, 2};
  static Error check(KernelContext& context, State& state) {
    WB_TRY(check_args(context, "tMSbtt"));
    WB_TRY(choose(context, kVar, 4, state.var.run));
    return choose(context, kMean, 5, state.mean.run);
  }
  static Error plan(KernelContext& context, State& state) {
    WB_TRY(plan_reduce(context, kVar, kPlaces, 4, state.var));
    return plan_reduce(context, kMean, kPlaces, 5, state.mean);
  }
  static Error run(KernelContext& context, State& state) {
    run_reduction(state.var.layout, state.var.run, context.tensor(0).data, context.tensor(4).data);
    run_reduction(state.mean.layout, state.mean.run, context.tensor(0).data, context.tensor(5).data);
    return Error::Ok;
  }
};

}  // namespace
}  // namespace wb::kernels::WB_ISA

WB_KERNELS(reduction_reductions, planned<Reduce<kSumDims>>("aten::sum.IntList_out"),
           planned<Reduce<kMeanDims>>("aten::mean.out"), planned<Reduce<kMeanAll>>("aten::mean.dtype_out"),
           planned<Reduce<kProdDim>>("aten::prod.int_out"), planned<Reduce<kProdAll>>("aten::prod.out"),
           planned<Reduce<kAmax>>("aten::amax.out"), planned<Reduce<kAmin>>("aten::amin.out"),
           planned<Reduce<kMaxAll>>("aten::max.unary_out"), planned<Reduce<kMinAll>>("aten::min.unary_out"),
           planned<Reduce<kAnyAll>>("aten::any.all_out"), planned<Reduce<kAnyDims>>("aten::any.dims_out"),
           planned<Reduce<kAnyDim>>("aten::any.out"), planned<Reduce<kAllAll>>("aten::all.all_out"),
           planned<Reduce<kAllDims>>("aten::all.dims_out"), planned<Reduce<kAllDim>>("aten::all.out"),
           planned<Reduce<kVarCorrection>>("aten::var.correction_out"), planned<Reduce<kVarUnbiased>>("aten::var.out"),
           planned<Reduce<kStdCorrection>>("aten::std.correction_out"),
           planned<VarMean>("aten::var_mean.correction_out"))
