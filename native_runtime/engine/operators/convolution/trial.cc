// Measures the methods of a convolution while it is prepared. Packed weights of those that lose do not stay.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "engine/operators/convolution/choose.h"

namespace wb::engine::WB_ISA::dense {
namespace {

constexpr double kBudgetNs = 20e6;  // of a layer, packing not counted
constexpr double kCyclesPerNs = 3;  // about
constexpr double kHopeless = 3;     // times the cost of the cheapest: not tried,
constexpr double kShortNs = 1e6;    // unless it is short anyhow
constexpr int kFewestRuns = 3;      // that count, after one that does not
constexpr int kMostRuns = 20;
constexpr std::int64_t kColumns = 128;  // output channels: what a method does for more of them is the same again

// Memory that goes when the trial is over.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    for (void* block : blocks_) std::free(block);
  }
  void* take(std::size_t bytes) {
    void* block = std::aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (block != nullptr) blocks_.push_back(block);
    return block;
  }

 private:
  std::vector<void*> blocks_;
};

class TrialSetup final : public Setup {
 public:
  explicit TrialSetup(Memory& memory) : memory_(memory) {}
  virtual ~TrialSetup() = default;
  void* allocate(std::size_t bytes) override { return memory_.take(bytes); }
  void* allocate_packed(const void* /*constant*/, std::uint64_t /*format*/, std::size_t bytes, bool* ready) override {
    *ready = false;
    return memory_.take(bytes);
  }
  [[nodiscard]] bool trial() const override { return false; }
  // A method that can't be prepared loses; the others do not need its words.
  Error fail(Error error, const char* /*format*/, ...) override { return error; }

 private:
  Memory& memory_;
};

// A part of the layer that the methods can compute within the budget.
Geometry part_of(const Geometry& whole, double cycles) {
  Geometry g = whole;
  g.cout = std::min(whole.cout, kColumns);
  const double expected = cycles * (kFewestRuns + 1) / kCyclesPerNs;
  double share = kBudgetNs / std::max(expected * static_cast<double>(g.cout) / static_cast<double>(whole.cout), 1.0);
  if (share >= 1) return g;
  share *= static_cast<double>(g.batch);
  g.batch = std::max<std::int64_t>(static_cast<std::int64_t>(share), 1);
  if (share >= 1) return g;
  constexpr std::int64_t kFewestRows = 8;  // two tiles of the larger kind
  const auto rows = static_cast<std::int64_t>(share * static_cast<double>(g.oh));
  g.oh = std::min(g.oh, std::max(rows, kFewestRows));
  g.h = std::min(g.h, g.oh + (g.kh - 1) * g.dh);
  return g;
}

std::uint64_t kind_of(const Geometry& g, int threads) {
  FormatKey key(kWinogradFormat);
  for (const std::int64_t number :
       {g.batch, g.h, g.w, g.cin, g.oh, g.ow, g.cout, g.groups, g.kh, g.kw, g.top, g.left, std::int64_t{threads}}) {
    key.add(number);
  }
  return key.value();
}

class Trial {
 public:
  Trial(PrepareContext& context, const Convolution& convolution, const Geometry& part)
      : context_(context), convolution_(convolution), pool_(context.threads) {
    convolution_.g = part;
    const auto image_elements = static_cast<std::size_t>(part.batch * part.h * part.w * part.cin);
    image_ = static_cast<float*>(memory_.take(image_elements * sizeof(float)));
    out_ = static_cast<float*>(memory_.take(static_cast<std::size_t>(part.pixels() * part.cout) * sizeof(float)));
    if (image_ == nullptr) return;
    for (std::size_t i = 0; i < image_elements; ++i) image_[i] = static_cast<float>(i % 7) * 0.25F;
    convolution_.input = image_;
  }

  // The shortest time in ns, none if the method can't be tried; `budget` ns to spend.
  std::uint64_t run(const Method& method, double budget) {
    constexpr std::uint64_t kNone = UINT64_MAX;
    if (image_ == nullptr || out_ == nullptr) return kNone;
    Memory memory;
    TrialSetup setup(memory);
    PrepareContext prepare{.setup = setup, .node = context_.node, .operands = context_.operands};
    prepare.threads = context_.threads;
    Convolution state = convolution_;
    state.method = &method;
    if (method.prepare(prepare, state) != Error::Ok) return kNone;
    const auto elements = static_cast<std::size_t>(method.shape(state, context_.threads));
    auto* scratch = static_cast<std::byte*>(memory.take(elements * sizeof(float)));
    if (scratch == nullptr) return kNone;
    TensorView out = context_.operands.outputs[0];
    out.data = out_;
    Operands operands = context_.operands;
    operands.outputs = &out;
    const RunContext run{
        .node = context_.node, .operands = operands, .state = &state, .scratch = scratch, .pool = pool_};
    Finish finish;
    finish.bias = state.bias;
    std::uint64_t best = kNone;
    double spent = 0;
    for (int i = 0; i <= kMostRuns && (i <= kFewestRuns || spent < budget); ++i) {
      const auto start = std::chrono::steady_clock::now();
      method.run(run, state, finish);
      const auto taken = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start);
      const auto ns = static_cast<std::uint64_t>(taken.count());
      spent += static_cast<double>(ns);
      if (i > 0) best = std::min(best, ns);
    }
    return best;
  }

 private:
  PrepareContext& context_;
  Convolution convolution_;
  Pool pool_;
  Memory memory_;
  float* image_ = nullptr;
  float* out_ = nullptr;
};

}  // namespace

const Method* quickest_method(PrepareContext& context, const Convolution& convolution, const Candidates& candidates) {
  const Geometry& g = convolution.g;
  if (g.pixels() == 0 || g.cin == 0 || g.cout == 0) return candidates.cheapest();
  const void** noted = context.setup.choice(kind_of(g, context.threads));
  if (noted != nullptr && *noted != nullptr) return static_cast<const Method*>(*noted);
  double limit = candidates.cycles[0];
  for (int i = 1; i < candidates.count; ++i) limit = std::min(limit, candidates.cycles[i]);
  limit = std::max(limit * kHopeless, kShortNs * kCyclesPerNs);
  double cycles = 0;
  for (int i = 0; i < candidates.count; ++i) cycles += candidates.cycles[i] <= limit ? candidates.cycles[i] : 0;

  char layer[96];
  std::snprintf(layer, sizeof layer, "%lld x %lld, %lld -> %lld channels", static_cast<long long>(g.oh),
                static_cast<long long>(g.ow), static_cast<long long>(g.cin), static_cast<long long>(g.cout));
  Trial trial(context, convolution, part_of(g, cycles));
  const Method* best = candidates.cheapest();
  std::uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < candidates.count; ++i) {
    if (candidates.cycles[i] > limit) continue;
    std::uint64_t ns = trial.run(*candidates.methods[i], kBudgetNs / candidates.count);
    if (ns != UINT64_MAX) ns = context.setup.measured(layer, candidates.methods[i]->name, ns);
    if (ns >= shortest) continue;
    shortest = ns;
    best = candidates.methods[i];
  }
  if (noted != nullptr) *noted = best;
  return best;
}

}  // namespace wb::engine::WB_ISA::dense
