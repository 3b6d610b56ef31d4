// Vertices that interpret a program: one on each tile, by the codelets of elementwise_chain.cpp.
#pragma once

#include <array>
#include <poplar/Graph.hpp>
#include <vector>

#include "elementwise/program.hpp"

namespace snnjax::elementwise {

// Rows of elements, of each what lies on each of some tiles.
struct TiledRows {
  using Parts = std::vector<poplar::Tensor>;
  using OfWidth = std::array<std::vector<Parts>, 3>;  // by the bytes of elements: 4, 2, 1
  OfWidth in, out;                                    // unsigned, whatever the elements are

  // Adds a row, and yields its number among those of its width.
  static unsigned add(OfWidth& rows, Parts parts);
  static std::size_t widthOf(std::size_t bytes) { return bytes == 4 ? 0 : bytes == 2 ? 1 : 2; }
  bool mixed() const { return in[1].size() + in[2].size() + out[1].size() + out[2].size() > 0; }
};

// `inputs` says where among the rows the inputs lie, `outputs` which rows the outputs are.
void addVertices(poplar::Graph& graph, const poplar::ComputeSet& set, const std::vector<unsigned>& tiles,
                 const TiledRows& rows, const ElementwiseProgram& program,
                 const std::vector<ElementwiseProgram::Operand>& inputs, const std::vector<unsigned>& outputs);

}  // namespace snnjax::elementwise
