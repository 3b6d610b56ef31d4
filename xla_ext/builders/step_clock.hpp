// Each tile counts the iterations of a loop for itself, so that no exchange is needed to know the time.
#pragma once

#include <array>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <vector>

namespace snnjax::builders {

// The two compute sets of a loop's body, in the order in which they run.
using LoopSets = std::array<poplar::ComputeSet, 2>;

// What one compute set reads, no vertex of the same set may write. So there are two counters a tile: the one that the
// vertices of a set read is advanced in the other set.
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
  poplar::Tensor counters_;  // [2, tiles]
  poplar::Tensor start_;     // likewise
  std::array<std::vector<bool>, 2> used_;
};

}  // namespace snnjax::builders
