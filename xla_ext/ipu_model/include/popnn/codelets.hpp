// Makes the codelets of popnn known to a graph.
#pragma once

#include <poplar/Graph.hpp>

namespace popnn {

// The codelets of the model are there from the start: this is what a program written for Poplar calls, and costs
// nothing.
void addCodelets(poplar::Graph& graph);

}  // namespace popnn
