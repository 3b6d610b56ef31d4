// Gradients through the lists: from partial dot products on the tiles of a layer to the neurons of the layer below that
// fired them.
#pragma once

#include <poplar/Graph.hpp>
#include <vector>

#include "loop.hpp"

namespace snnjax::builders {

// Which sets of the loop take the stages between dot products and dense rows. A loop of two sets needs one more
// iteration for the last two; one with recurrent layers has a set for each stage.
struct ListStages {
  unsigned group_sums, home_sums, rows;
  unsigned late;  // iterations from the dot products to the last two
};
ListStages listStages(const NetworkPlan& plan);

// Partial dot products of the layer `reader` with the lists that it reads: float [tiles, batch * capacity].
struct ListDots {
  std::size_t reader;
  poplar::Tensor dots;
};

// The gradient of the entries of lists[l], float [batch, capacity] at their homes, from the dot products of all their
// readers. Sums run in two levels of a tree: over the tiles of a group, then over groups at the homes.
poplar::Tensor addListGradient(Loop& loop, std::size_t l, const std::vector<ListDots>& dots);

// The same as dense rows on the tiles of the layer that fired the lists, float [tiles, batch * columns]: homes spread
// the sums.
poplar::Tensor addDenseGradient(Loop& loop, std::size_t l, const poplar::Tensor& values);

// Keeps the gradient of the input lists of all steps.
void addInputsGradient(Loop& loop, const poplar::Tensor& values, const poplar::Tensor& g_inputs);

}  // namespace snnjax::builders
