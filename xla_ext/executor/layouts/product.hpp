// A product of arrays as `groups` products of matrices.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "executor/layouts/layout.hpp"
#include "executor/plan/plan.hpp"
#include "planner/product_plan.hpp"

namespace snnjax::executor {

using planner::ProductPlan;

// out[g, m, n] = sum over k of lhs[g, m, k] * rhs[g, k, n], in whatever order the dimensions are stored.
struct Product {
  Shape lhs, rhs, out;
  std::vector<unsigned> lhs_batching, rhs_batching, lhs_contracting, rhs_contracting;
  std::size_t groups = 1, m = 1, k = 1, n = 1;
  Dtype dtype = Dtype::kFloat32;  // of the operands

  Product(const Plan& plan, const Instruction& instruction);
  // The dimensions of an operand that stay, in order.
  std::vector<unsigned> lhsFree() const;
  std::vector<unsigned> rhsFree() const;
  // Whether an operand is stored with the depth before the dimensions that stay.
  bool lhsDepthFirst() const;
  bool rhsDepthFirst() const;

  friend auto operator<=>(const Product&, const Product&) = default;
};

}  // namespace snnjax::executor
