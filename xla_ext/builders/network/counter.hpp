// A number that each tile counts for itself, so that a loop needs no exchange for it.
#pragma once

#include <string>

#include "builders/vertices.hpp"

namespace snnjax::builders {

class Counter {
 public:
  Counter(Graph& graph, unsigned num_tiles, unsigned start, const std::string& name);
  Tensor at(unsigned tile) const { return counters_[tile]; }
  // Adds `by`, which may wrap around, on tiles [first, first + count) in a compute set that does not read it there.
  void advance(Graph& graph, ComputeSet set, unsigned first, unsigned count, unsigned by) const;
  // To its first number, from which it also starts.
  Program reset() const;

 private:
  Tensor counters_, start_;
};

}  // namespace snnjax::builders
