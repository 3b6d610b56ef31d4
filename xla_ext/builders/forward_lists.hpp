// The lists of the forward loop: from membranes on the tiles of a layer to lists at their homes.
#pragma once

#include <poplar/Program.hpp>

#include "loop.hpp"

namespace snnjax::builders {

// The lists that layer `layer` fires, in two levels of a tree: tiles that lead a group list the candidates among the
// group's neurons, homes merge the groups' lists. A loop of two sets merges in the first set of the next iteration and
// passes the lists on in the second one, because their readers run in the first; a loop of three sets merges in the
// third. Returns what must run before the loop.
poplar::program::Sequence addSelection(Loop& loop, std::size_t layer);

}  // namespace snnjax::builders
