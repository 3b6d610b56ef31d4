// Each tile counts a loop's iterations itself, so that the time needs no exchange.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <vector>

namespace snnjax::builders {

// The compute sets of a loop's body, at least two, in the order in which they run.
using LoopSets = std::vector<poplar::ComputeSet>;

// No vertex may write what its own compute set reads. So each tile has a counter per set, advanced in the set before.
class StepClock {
 public:
  StepClock(poplar::Graph& graph, const LoopSets& sets, const std::string& name);

  // The iteration, from 0, for the vertices of set `set` on `tile`: an unsigned scalar there.
  poplar::Tensor at(unsigned tile, unsigned set);

  // To run before the loop.
  poplar::program::Program reset() const;

 private:
  poplar::Graph* graph_;
  LoopSets sets_;
  poplar::Tensor counters_;              // [sets, tiles]
  poplar::Tensor start_;                 // likewise
  std::vector<std::vector<bool>> used_;  // likewise
};

}  // namespace snnjax::builders
