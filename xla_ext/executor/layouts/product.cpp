#include "executor/layouts/product.hpp"

#include <algorithm>

namespace snnjax::executor {
namespace {

std::vector<unsigned> asDimensions(const std::vector<std::int64_t>& ints) { return {ints.begin(), ints.end()}; }

std::vector<unsigned> others(std::size_t rank, const std::vector<unsigned>& a, const std::vector<unsigned>& b) {
  std::vector<unsigned> kept;
  for (unsigned d = 0; d < rank; ++d) {
    if (std::ranges::count(a, d) == 0 && std::ranges::count(b, d) == 0) kept.push_back(d);
  }
  return kept;
}

std::size_t sizeOf(const Shape& shape, const std::vector<unsigned>& dimensions) {
  std::size_t size = 1;
  for (const unsigned d : dimensions) size *= shape[d];
  return size;
}

bool depthFirst(const std::vector<unsigned>& contracting, const std::vector<unsigned>& free) {
  return !contracting.empty() && !free.empty() &&
         *std::ranges::max_element(contracting) < *std::ranges::min_element(free);
}

}  // namespace

Product::Product(const Plan& plan, const Instruction& instruction)
    : lhs(plan.types[instruction.inputs[0]].shape),
      rhs(plan.types[instruction.inputs[1]].shape),
      out(plan.types[instruction.outputs[0]].shape),
      lhs_batching(asDimensions(instruction.ints[0])),
      rhs_batching(asDimensions(instruction.ints[1])),
      lhs_contracting(asDimensions(instruction.ints[2])),
      rhs_contracting(asDimensions(instruction.ints[3])),
      dtype(plan.types[instruction.inputs[0]].dtype) {
  groups = sizeOf(lhs, lhs_batching);
  m = sizeOf(lhs, lhsFree());
  k = sizeOf(lhs, lhs_contracting);
  n = sizeOf(rhs, rhsFree());
}

std::vector<unsigned> Product::lhsFree() const { return others(lhs.size(), lhs_batching, lhs_contracting); }
std::vector<unsigned> Product::rhsFree() const { return others(rhs.size(), rhs_batching, rhs_contracting); }
bool Product::lhsDepthFirst() const { return depthFirst(lhs_contracting, lhsFree()); }
bool Product::rhsDepthFirst() const { return rhsFree().empty() || depthFirst(rhs_contracting, rhsFree()); }

}  // namespace snnjax::executor
