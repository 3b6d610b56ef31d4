// A number that each tile counts for itself, so that a loop needs no exchange for it.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <vector>

namespace snnjax::builders {

class Counter {
 public:
  Counter(poplar::Graph& graph, unsigned num_tiles, unsigned start, const std::string& name);
  poplar::Tensor at(unsigned tile) const { return counters_[tile]; }
  // Adds `by`, which may wrap around, on tiles [first, first + count) in a compute set that does not read it there.
  void advance(poplar::Graph& graph, poplar::ComputeSet set, unsigned first, unsigned count, unsigned by) const;
  // To its first number, from which it also starts.
  poplar::program::Program reset() const;

 private:
  poplar::Tensor counters_, start_;
};

}  // namespace snnjax::builders
