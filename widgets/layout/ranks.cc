#include "ranks.h"

#include <algorithm>
#include <cmath>

#include "csr.h"

namespace wb::layout {
namespace {

void wrap_wide_rows(std::vector<int32_t>& row, int32_t rows) {
  const int32_t limit = row_limit(static_cast<int32_t>(row.size()));
  std::vector<int32_t> count(rows, 0);
  for (const int32_t r : row) ++count[r];
  std::vector<int32_t> first(rows + 1, 0);
  for (int32_t r = 0; r < rows; ++r) first[r + 1] = first[r] + std::max(1, (count[r] + limit - 1) / limit);
  std::vector<int32_t> seen(rows, 0);
  for (int32_t& r : row) {
    // Even parts: 33 boxes make 17 and 16, not 32 and 1.
    const int64_t parts = first[r + 1] - first[r];
    const auto part = static_cast<int32_t>(parts * seen[r]++ / std::max(1, count[r]));
    r = first[r] + part;
  }
}

}  // namespace

int32_t row_limit(int32_t boxes) {
  return std::max(32, static_cast<int32_t>(std::ceil(2 * std::sqrt(static_cast<double>(boxes)))));
}

std::vector<int32_t> assign_rows(const Input& input) {
  const auto n = static_cast<int32_t>(input.width.size());
  const auto m = static_cast<int32_t>(input.src.size());
  const Csr out = group(n, m, [&](int32_t e) { return input.src[e] < input.dst[e] ? input.src[e] : -1; });
  std::vector<int32_t> row(n, 0);
  std::vector<bool> fed(n, false);
  std::vector<bool> isolated(n, true);
  for (int32_t e = 0; e < m; ++e) {
    if (input.dst[e] >= 0) isolated[input.dst[e]] = false;
    if (input.src[e] >= 0) isolated[input.src[e]] = false;
    if (input.src[e] < input.dst[e]) fed[input.dst[e]] = true;  // by an earlier box or from the top border
  }
  int32_t rows = 1;
  for (int32_t i = 0; i < n; ++i) {
    rows = std::max(rows, row[i] + 1);
    for (const int32_t e : out[i]) row[input.dst[e]] = std::max(row[input.dst[e]], row[i] + 1);
  }
  for (int32_t i = n - 1; i >= 0; --i) {
    if (fed[i] || out[i].empty()) continue;
    int32_t lowest = rows;
    for (const int32_t e : out[i]) lowest = std::min(lowest, row[input.dst[e]]);
    row[i] = lowest - 1;
  }
  const auto alone = static_cast<int32_t>(std::count(isolated.begin(), isolated.end(), true));
  const auto side = static_cast<int32_t>(std::ceil(std::sqrt(static_cast<double>(alone))));
  for (int32_t i = 0, k = 0; i < n; ++i) {
    if (isolated[i]) row[i] = k++ / side;
  }
  wrap_wide_rows(row, std::max(rows, side + 1));
  return row;
}

}  // namespace wb::layout
