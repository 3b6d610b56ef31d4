// What the codelets of step_blocks.cpp cost a worker.
#pragma once

#include "../issue_slots.hpp"
#include "../workers.hpp"

namespace snnjax::cycles {

// Two loads, add, store.
constexpr Slots kAdvance = kCall + 5;

}  // namespace snnjax::cycles
