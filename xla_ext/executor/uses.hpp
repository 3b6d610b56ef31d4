// When values are used for the last time.
#pragma once

#include <cstddef>
#include <limits>
#include <unordered_map>
#include <vector>

#include "executor/plan/plan.hpp"

namespace snnjax::executor {

inline constexpr std::size_t kAtTheEnd = std::numeric_limits<std::size_t>::max();

// For each value that a block defines, the position of the instruction that uses it last, in its own blocks or theirs;
// kAtTheEnd for results of the block. A value that nothing uses has the instruction that defines it (parameters: 0).
std::unordered_map<ValueId, std::size_t> lastUses(const Block& block);

}  // namespace snnjax::executor
