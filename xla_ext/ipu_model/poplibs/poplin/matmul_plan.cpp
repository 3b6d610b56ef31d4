#include "poplibs/poplin/matmul_plan.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace poplibs {
namespace {

std::size_t ceilDivide(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// 1, 2, 3, ... and then in steps of a quarter, up to the size itself.
std::vector<std::size_t> candidates(std::size_t size, std::size_t tiles) {
  const std::size_t most = std::max<std::size_t>(1, std::min(size, tiles));
  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count < most; count += std::max<std::size_t>(1, count / 4)) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

// In tile cycles: products at one a cycle (six workers, poplar_kernels/dot_cycles.hpp), words of both operands and of
// the partial sums at one a cycle (exchange), the sum of partials, and the fixed costs of its stage.
double estimate(const ProductShape& shape, std::size_t parts_m, std::size_t parts_k, std::size_t parts_n) {
  constexpr double kStage = 600, kRowBlock = 8, kFloatsAddedPerCycle = 0.7;
  const double m = static_cast<double>(ceilDivide(shape.m, parts_m));
  const double k = static_cast<double>(ceilDivide(shape.k, parts_k));
  const double n = static_cast<double>(ceilDivide(shape.n, parts_n));
  const double products = m * k * std::max(n, kRowBlock);
  const double operands = m * k + k * n;
  if (parts_k == 1) return products + operands;
  const double sums = m * n;  // each of the parts_k tiles adds up its share of all their partial sums
  return products + operands + kStage + sums + sums / kFloatsAddedPerCycle;
}

}  // namespace

MatMulPlan planMatMul(const ProductShape& shape, unsigned tiles) {
  MatMulPlan best{shape, 1, 1, 1};
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t m : candidates(shape.m, tiles)) {
    for (const std::size_t n : candidates(shape.n, tiles / m)) {
      for (const std::size_t k : candidates(shape.k, tiles / m / n)) {
        const double time = estimate(shape, m, k, n);
        if (time < least) {
          least = time;
          best = {shape, m, k, n};
        }
      }
    }
  }
  return best;
}

}  // namespace poplibs
