// What codelets, builders and CPU kernels must agree on: the numbers of switches, and the record of a list.
//
// Plain C++11 without Poplar, so that all of them can include it.
#pragma once

namespace snnjax {

// Numbered in the order of RESETS and SURROGATES in snnjax/_types.py.
enum Reset : unsigned char { Subtract, Zero, None };

// Of the spike, as snnjax/surrogates.py has them.
enum Surrogate : unsigned char { SuperSpike, Arctan, Triangle, Gaussian, Sigmoid, Boxcar, StraightThrough };

// The constants of a second state, in the order of SecondState in snnjax/ops.
enum SecondConstant : unsigned { WDecay, WMembrane, WGain, WJump, VCoupling, ThresholdCoupling };
constexpr unsigned kSecondConstants = 6;

// Ids are unsigned short up to this many neurons, else int (as in snnjax.SparseSpikes): the pad fits too.
constexpr unsigned kMaxShortNeurons = 65535;

// The record of one spike list: a header, then the ids. One contiguous region, so that a list is one message of an
// exchange.
//
//   [kKept] spikes kept
//   [kListed] listed: spikes kept and gradient-only ids kept
//   [kTrueSpikes] true spikes, before the cap
//   [kStarts, kStarts + 5) where the spikes of the shares 1 to 5 of the neurons begin, among the ids
//   [8, 8 + capacity) ids: spikes ascending, then gradient-only ids ascending, then pads (the number of neurons)
//   up to `listStride`, a multiple of 4: pads
//
// A share of the neurons falls to each of the six workers of a tile: those that share what a list adds to find their
// entries without a search.
constexpr unsigned kListHeader = 8;
constexpr unsigned kKept = 0, kListed = 1, kTrueSpikes = 2, kStarts = 3;
constexpr unsigned kShares = 6;
constexpr unsigned neuronsOfShare(unsigned num_neurons) { return (num_neurons + 2 * kShares - 1) / (2 * kShares) * 2; }

// Which of equal membranes a full list keeps: those whose ids come first by this hash, as in snnjax/_types.py. It is
// the 32-bit finaliser of MurmurHash3 (Appleby 2011), a bijection: no two ids tie.
inline unsigned hashOf(unsigned id) {
  id = (id ^ (id >> 16)) * 0x85EBCA6BU;
  id = (id ^ (id >> 13)) * 0xC2B2AE35U;
  return id ^ (id >> 16);
}

constexpr unsigned listStride(unsigned capacity) { return kListHeader + (capacity + 3) / 4 * 4; }

}  // namespace snnjax
