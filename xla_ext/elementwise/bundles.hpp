// The bundles of a loop's body, as a compiler fills them that moves instructions up as far as their operands allow.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

namespace snnjax::elementwise {

// Integers, loads, stores and branches are main instructions, floats aux. A call of a function takes both.
enum class Pipe { kMain, kAux, kBoth };

class Bundles {
 public:
  // Adds instructions of which each needs the one before, and the first what is there in bundle `ready`. Yields the
  // first bundle that can read the result: latencies are hidden by the other workers.
  unsigned add(Pipe pipe, unsigned count, unsigned ready) {
    for (unsigned i = 0; i < count; ++i) {
      while (!isFree(pipe, ready)) ++ready;
      if (ready >= taken_.size()) taken_.resize(ready + 1);
      if (pipe != Pipe::kAux) taken_[ready][0] = true;
      if (pipe != Pipe::kMain) taken_[ready][1] = true;
      ++ready;
    }
    return ready;
  }

  // How many there are with the branch that closes the loop, in the last one.
  unsigned closed() const {
    const auto size = static_cast<unsigned>(taken_.size());
    return size > 0 && !taken_.back()[0] ? size : size + 1;
  }

 private:
  bool isFree(Pipe pipe, unsigned bundle) const {
    if (bundle >= taken_.size()) return true;
    const auto& [main, aux] = taken_[bundle];
    return (pipe == Pipe::kAux || !main) && (pipe == Pipe::kMain || !aux);
  }

  std::vector<std::array<bool, 2>> taken_;  // main, aux
};

}  // namespace snnjax::elementwise
