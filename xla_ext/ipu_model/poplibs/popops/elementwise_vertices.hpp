// One vertex for each tile that holds elements of the output, for codelets that work element by element.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>
#include <string>
#include <vector>

namespace poplibs {

// A tensor of the output's shape or of one element, or, without a tensor, a number.
struct Operand {
  poplar::Tensor tensor;
  double number;

  bool isNumber() const { return !tensor.valid(); }
  bool isSingle() const { return isNumber() || tensor.numElements() == 1; }
};

// Numbers become constants of `number_type`, one on each tile, so that they cost no exchange.
void addElementwise(poplar::Graph& graph, poplar::ComputeSet cs, const std::string& codelet,
                    const std::vector<Operand>& operands, const poplar::Type& number_type, const poplar::Tensor& out);

}  // namespace poplibs
