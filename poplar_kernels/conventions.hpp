// What codelets, builders and CPU kernels must agree on besides what snnjax/_neuron_table.py says: the record of a
// list.
//
// Plain C++ without Poplar, so that all of them can include it.
#pragma once

#include <schema/neurons.hpp>

namespace snnjax {

// The constants of a second state, which follow those of the membrane.
constexpr unsigned kSecondConstants = kGlifConstants - WDecay;

// Ids are unsigned short up to this many neurons, else int (as in snnjax.SparseSpikes): the pad fits too.
constexpr unsigned kMaxShortNeurons = 65535;

// The record of one spike list: a header, then the ids. One contiguous region, so that a list is one message of an
// exchange.
//
//   [kKept] spikes kept
//   [kListed] listed: spikes kept and gradient-only ids kept
//   [kTrueSpikes] true spikes, before the cap
//   [kStarts, kListHeader) where the spikes of the shares 1 to 5 of the neurons begin, among the ids
//   [kListHeader, kListHeader + capacity) ids: spikes ascending, then gradient-only ids ascending, then pads (the
//   number of neurons) up to `listStride`, a multiple of 4: pads
//
// A share of the neurons falls to each of the six workers of a tile: those that share what a list adds to find their
// entries without a search.
constexpr unsigned kShares = kListHeader - kStarts + 1;
constexpr unsigned neuronsOfShare(unsigned num_neurons) { return (num_neurons + 2 * kShares - 1) / (2 * kShares) * 2; }

// Which of equal membranes a full list keeps: those whose ids come first by this hash, as in snnjax/_types.py. It is
// the 32-bit finaliser of MurmurHash3 (Appleby 2011), a bijection: no two ids tie.
inline unsigned hashOf(unsigned id) {
  id = (id ^ (id >> 16)) * 0x85EBCA6BU;
  id = (id ^ (id >> 13)) * 0xC2B2AE35U;
  return id ^ (id >> 16);
}

// What neurons offer to the homes of their lists: a row of membranes, and behind it words of marks, one for so many of
// them. Neuron i of a word fires if bit 31 - i is set, and lies above its second threshold if bit 15 - i is: the first
// neuron has the leading bit of either half. Rows begin at 64 bits.
constexpr unsigned kNeuronsOfMark = 16, kFirstMark = 0x80000000U, kMarksOfSpikes = 0xFFFF0000U;
constexpr unsigned markWords(unsigned columns) { return (columns + kNeuronsOfMark - 1) / kNeuronsOfMark; }
constexpr unsigned offeredStride(unsigned columns) { return (columns + markWords(columns) + 1) / 2 * 2; }
// Masks, which the lists send back to the neurons' tiles, are words of the same kind: who is kept, and who is listed.

// The cut of a list, four words: for its spikes, then for the others, a membrane (the bits of a float) and a hash.
// Those above the membrane are listed, and of those equal to it the ones whose ids have no larger hash; a NaN lists
// none.
constexpr unsigned kCutWords = 4;
// What it keeps of the candidates: spikes of each share of the neurons, the others of each, all true spikes. Even.
constexpr unsigned kKeptWords = 2 * kShares + 2;

// Pairs of columns whose sums stay in registers: with one on its way six fill these, four where there is also a value
// and its product.
constexpr unsigned pairsAtOnce(bool valued) { return valued ? 4 : 6; }

// Inputs that fire so often that all tiles of a block share their rows: at most so many of each worker's.
constexpr unsigned kSharedInputs = 2, kSharedOfTile = kShares * kSharedInputs;

constexpr unsigned listStride(unsigned capacity) { return kListHeader + (capacity + 3) / 4 * 4; }

}  // namespace snnjax
