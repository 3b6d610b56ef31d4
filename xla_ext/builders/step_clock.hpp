// Each tile counts the iterations of a loop for itself, so that no exchange is needed to know the time.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <vector>

namespace snnjax::builders {

// The compute sets of a loop's body, at least two, in the order in which they run.
using LoopSets = std::vector<poplar::ComputeSet>;

// What one compute set reads, no vertex of the same set may write. So there is a counter a tile for each set: the one
// that the vertices of a set read is advanced in the set before it.
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
