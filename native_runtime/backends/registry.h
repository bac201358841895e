// The backends that are built in. Each folder below backends/ lists its own in one place:
//
//   WB_BACKENDS(demo, &first, &second)
//
// The first argument is the folder's name: the build makes the list of tables from the folders, so adding a backend
// touches nothing outside its own.
#pragma once

#include <cstdint>
#include <span>

#include "core/backend.h"

namespace wb::backends {

struct BackendTable {
  Backend* const* items;
  std::uint32_t count;
};

// The tables of all folders, in the order of their names.
[[nodiscard]] std::span<const BackendTable* const> builtin();

}  // namespace wb::backends

#define WB_BACKENDS(folder, ...)                                                                         \
  namespace wb::backends {                                                                               \
  extern const BackendTable table_##folder;                                                              \
  namespace {                                                                                            \
  constinit ::wb::Backend* const items_##folder[] = {__VA_ARGS__};                                       \
  }                                                                                                      \
  const BackendTable table_##folder = {items_##folder, sizeof(items_##folder) / sizeof(::wb::Backend*)}; \
  }
