// What is taken in each row, and the nearest free place beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wb::layout {

class FreeRows {
 public:
  // Nothing goes to the left of `wall`.
  FreeRows(int32_t rows, double wall) : taken_(rows), wall_(wall) {}

  void take(int32_t row, double low, double high);

  // The x nearest to `wanted` such that [x - left, x + right] and `clear` px around it are free in rows first..last.
  [[nodiscard]] double nearest(int32_t first, int32_t last, double wanted, double left, double right,
                               double clear) const;

 private:
  struct Taken {
    double low, high;
  };

  [[nodiscard]] double rightward(int32_t first, int32_t last, double x, double left, double right, double clear) const;
  [[nodiscard]] std::optional<double> leftward(int32_t first, int32_t last, double x, double left, double right,
                                               double clear) const;

  std::vector<std::vector<Taken>> taken_;  // sorted, disjoint
  double wall_;
};

}  // namespace wb::layout
