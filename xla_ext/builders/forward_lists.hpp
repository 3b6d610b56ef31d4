// The lists of the forward loop: from membranes on the tiles of a layer to lists at their homes.
#pragma once

#include <poplar/Program.hpp>

#include "loop.hpp"

namespace snnjax::builders {

// The input lists of step t are loaded in iteration t, second set.
void addInputLists(Loop& loop);

// The lists that layer `layer` fires, in two levels of a tree: tiles that lead a group list the candidates among the
// group's neurons, homes merge what the groups list. Returns what has to run before the loop.
poplar::program::Sequence addSelection(Loop& loop, std::size_t layer);

}  // namespace snnjax::builders
