// The operators of the instruction set that the kernels use.
#include "kernels/select.h"

#include <array>
#include <cstring>

#include "engine/operator.h"

#define WB_FOR_ISA(isa) \
  extern "C" const wb::engine::OperatorTable* const* wb_engine_operators_##isa(std::uint32_t* count);
WB_ISA_LIST
#undef WB_FOR_ISA

namespace wb::engine {
namespace {

using TablesFunction = const OperatorTable* const* (*)(std::uint32_t*);
struct Isa {
  const char* name;
  TablesFunction tables;
};
constexpr Isa kIsas[] = {
#define WB_FOR_ISA(isa) {#isa, &wb_engine_operators_##isa},
    WB_ISA_LIST
#undef WB_FOR_ISA
};

using Rows = std::array<const Operator*, kOpCount>;

Rows rows_of_active_isa() {
  Rows rows{};
  for (const Isa& isa : kIsas) {
    if (std::strcmp(isa.name, kernels::active_isa()) != 0) continue;
    std::uint32_t count = 0;
    const OperatorTable* const* tables = isa.tables(&count);
    for (std::uint32_t t = 0; t < count; ++t) {
      for (std::size_t r = 0; r < tables[t]->count; ++r) {
        const Operator& row = tables[t]->rows[r];
        rows[static_cast<std::size_t>(row.op)] = &row;
      }
    }
  }
  return rows;
}

}  // namespace

const Operator* find_operator(Op op) {
  static const Rows rows = rows_of_active_isa();
  return rows[static_cast<std::size_t>(op)];
}

}  // namespace wb::engine
