// What it costs to list the candidates of a row, in issue slots.
#pragma once

#include "../issue_slots.hpp"

namespace snnjax::cycles {

// A candidate: its count, id, its store, that of the membrane and the slot 2.
constexpr Slots written(unsigned id_bytes) { return 4 + store(id_bytes); }

// The part of a worker, without the search for its candidates: pointers, counts.
constexpr Slots partOf(Slots found, unsigned id_bytes) { return 16 + 2 * store(id_bytes) + found * written(id_bytes); }

}  // namespace snnjax::cycles
