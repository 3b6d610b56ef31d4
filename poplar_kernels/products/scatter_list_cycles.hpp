// What the codelets of scatter_list.cpp cost a worker: the listed ids that fall to it.
#pragma once

#include "../lists/listed_rows_cycles.hpp"

namespace snnjax::cycles {

// One entry of a scattered list: id, range 2, value, the block by a sum and a product with the inverse 6, the address
// 4, the store, the branch.
constexpr Slots kScatterEntry = 16;

// One of a mask: id, range 3, the block 6, column and word 5, the bits 2, their address 4, load, or, store, branch.
constexpr Slots kMaskEntry = 25;

constexpr Slots scatterGroup(Slots count, Slots own) { return entriesWithin(count) + own * kScatterEntry; }

}  // namespace snnjax::cycles
