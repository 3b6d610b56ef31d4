// What the backward pass of a network needs of its forward pass stays on the tiles. The record that the forward target
// yields to the program is a mark alone, by which the backward target finds what belongs to it.
#pragma once

#include "executor/targets/network_on_tiles.hpp"

namespace snnjax::executor::targets {

// Binds the results from `first` on, the record, to marks of this network.
void keepRecord(Lowering& lowering, const Instruction& instruction, std::size_t first, const NetworkOnTiles& network);

// The network whose mark a value is; null if it went through another program, or through the memory of a loop.
const NetworkOnTiles* findRecord(Lowering& lowering, ValueId value);

}  // namespace snnjax::executor::targets
