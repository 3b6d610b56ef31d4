// The resources that a planned operation may use, and what estimates share.
#pragma once

#include <cstddef>

namespace snnjax::planner {

struct Machine {
  std::size_t tiles = 1;
  std::size_t bytes = 0;  // of a tile, for operands that are brought to it, partial results and their messages' code
};

// Of a phase: the sync, the route and the way to memory of its last word (ipu_model/chips). Plus one compute set.
constexpr double kPhase = 270, kComputeSet = 38;
// Of a message beyond a phase's first: cycles of its receiver, and bytes of code, its sender's too.
constexpr double kMessage = 3;
constexpr std::size_t kMessageCode = 4 * (3 + 2);

constexpr std::size_t ceilDivide(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

}  // namespace snnjax::planner
