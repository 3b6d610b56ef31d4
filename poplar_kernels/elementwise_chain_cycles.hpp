// What the codelets of elementwise_chain.cpp cost a worker, in issue slots.
//
// The interpreter, for each word and block: the word's load, four shifts and masks for its fields, three table look-ups
// of a slot's address, the jump by a table of addresses and the branch back: 16. A load or an aim of whole words sets
// an address: 3 more. The block itself: the number of its elements, the program's start, the branch: 6.
// Operations run over a block as the loops of elementwise.cpp do, two floats or one integer at a time: a load for each
// operand, the arithmetic, and 3 for store, counter and branch. So do loads and stores of narrow elements, of which
// halves and bfloats are widened two at a time (a shift or a conversion), and narrow stores merge into a word: 4.
#pragma once

#include "elementwise_cycles.hpp"

namespace snnjax::cycles {

constexpr std::uint64_t kChainPrologue = 40;  // fields, share of the worker, address of each slot: counted
constexpr std::uint64_t kChainBlock = 6, kChainDispatch = 16, kChainAddress = 3, kChainMerge = 4;

// One operation over the elements of a block.
constexpr std::uint64_t chainOperation(std::uint64_t elements, Work work, Kind kind, unsigned loads) {
  constexpr std::uint64_t kStoreAndLoop = 3;
  const std::uint64_t vectors = (elements + vectorWidth(kind) - 1) / vectorWidth(kind);
  return kChainDispatch + vectors * (loads + arithmetic(work, kind) + kStoreAndLoop);
}

constexpr std::uint64_t chainConstant(std::uint64_t elements) { return kChainDispatch + 2 + (elements + 1) / 2 * 2; }

}  // namespace snnjax::cycles
