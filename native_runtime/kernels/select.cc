#include "kernels/select.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace wb::kernels {

struct KernelTable {
  const Kernel* rows;
  std::uint32_t count;
};

}  // namespace wb::kernels

#define WB_FOR_ISA(isa) extern "C" const wb::kernels::KernelTable* const* wb_kernel_tables_##isa(std::uint32_t* count);
WB_ISA_LIST
#undef WB_FOR_ISA

namespace wb::kernels {
namespace {

using TablesFunction = const KernelTable* const* (*)(std::uint32_t*);

struct Isa {
  const char* name;
  TablesFunction tables;
};

constexpr Isa kIsas[] = {
#define WB_FOR_ISA(isa) {#isa, &wb_kernel_tables_##isa},
    WB_ISA_LIST
#undef WB_FOR_ISA
};

#define WB_FOR_ISA(isa) #isa,
constexpr const char* kIsaNames[] = {WB_ISA_LIST};
#undef WB_FOR_ISA

struct Selection {
  const char* isa = "";
  std::vector<const Kernel*> kernels;  // sorted by name
};

Selection make_selection() {
  const Isa* chosen = nullptr;
  const char* wanted = std::getenv("LOWERING_WORKBENCH_ISA");
  for (const Isa& isa : kIsas) {
    if (!isa_supported(isa.name)) continue;
    if (chosen == nullptr) chosen = &isa;
    if (wanted != nullptr && std::strcmp(wanted, isa.name) == 0) chosen = &isa;
  }
  Selection selection;
  if (chosen == nullptr) return selection;
  selection.isa = chosen->name;
  std::uint32_t table_count = 0;
  const KernelTable* const* tables = chosen->tables(&table_count);
  for (std::uint32_t t = 0; t < table_count; ++t) {
    for (std::uint32_t r = 0; r < tables[t]->count; ++r) selection.kernels.push_back(&tables[t]->rows[r]);
  }
  std::sort(selection.kernels.begin(), selection.kernels.end(),
            [](const Kernel* a, const Kernel* b) { return std::strcmp(a->name, b->name) < 0; });
  return selection;
}

const Selection& selection() {
  static const Selection instance = make_selection();
  return instance;
}

}  // namespace

std::span<const char* const> compiled_isas() { return kIsaNames; }

bool isa_supported(std::string_view isa) {
  if (isa == "baseline") return true;
#if defined(__x86_64__)
  if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "avx512") {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma");
  }
#elif defined(__aarch64__)
  if (isa == "neon") {
    constexpr unsigned long kNeeded = HWCAP_ASIMD | HWCAP_ASIMDDP | HWCAP_FPHP | HWCAP_ASIMDHP;
    return (::getauxval(AT_HWCAP) & kNeeded) == kNeeded;
  }
#endif
  return false;
}

const char* active_isa() { return selection().isa; }

const Kernel* find_kernel(std::string_view name) {
  const auto& kernels = selection().kernels;
  const auto found = std::lower_bound(kernels.begin(), kernels.end(), name,
                                      [](const Kernel* kernel, std::string_view key) { return kernel->name < key; });
  return found != kernels.end() && (*found)->name == name ? *found : nullptr;
}

std::size_t kernel_count() { return selection().kernels.size(); }

const Kernel* kernel_at(std::size_t index) { return selection().kernels[index]; }

}  // namespace wb::kernels
