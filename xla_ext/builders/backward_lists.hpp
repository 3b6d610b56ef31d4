// The way of gradients through the lists: from partial dot products on the tiles of a layer to the neurons of the layer
// below, which fired the lists.
#pragma once

#include <poplar/Graph.hpp>

#include "loop.hpp"

namespace snnjax::builders {

// The lists that layer `l` reads, at the step of its next iteration (second set).
void addReversedLists(Loop& loop, std::size_t l);

// From `dots` of layer `l` (l > 0), float [tiles, batch * capacity], to the gradient of the listed spikes of the layer
// below: float [tiles below, batch * columns below], spread over the homes of the lists. Sums run in two levels of a
// tree: over the tiles of a group (second set), over groups at the homes (first set of the next iteration), which
// spread them into dense rows (second set).
poplar::Tensor addListGradient(Loop& loop, std::size_t l, const poplar::Tensor& dots);

}  // namespace snnjax::builders
