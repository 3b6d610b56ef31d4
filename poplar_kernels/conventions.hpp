// What codelets, builders and CPU kernels must agree on: the numbers of switches, and the record of a list.
//
// Plain C++11 without Poplar, so that all of them can include it.
#pragma once

namespace snnjax {

// Numbered in the order of RESETS, RESET_TIMES and SURROGATES in snnjax/_types.py.
enum Reset : unsigned char { Subtract, Zero, None };
enum ResetTime : unsigned char { BeforeDecay, AfterDecay, Immediate };

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
//   [3] 0
//   [4, 4 + capacity) ids: spikes ascending, then gradient-only ids ascending, then pads (the number of neurons)
//   up to `listStride`, a multiple of 4: pads
constexpr unsigned kListHeader = 4;
constexpr unsigned kKept = 0, kListed = 1, kTrueSpikes = 2;

// Which of equal membranes a full list keeps: those whose ids come first by this hash, as in snnjax/_types.py. It is
// the 32-bit finaliser of MurmurHash3 (Appleby 2011), a bijection: no two ids tie.
inline unsigned hashOf(unsigned id) {
  id = (id ^ (id >> 16)) * 0x85EBCA6BU;
  id = (id ^ (id >> 13)) * 0xC2B2AE35U;
  return id ^ (id >> 16);
}

constexpr unsigned listStride(unsigned capacity) { return kListHeader + (capacity + 3) / 4 * 4; }

// Issue slots of a listed entry that adds to so many pairs of columns: an id, and a load and a store for each pair, by
// up to four pairs at once.
inline unsigned slotsOfEntry(unsigned pairs) { return pairs / 4 * 14 + pairs % 4 / 2 * 10 + pairs % 2 * 8; }

// How the six workers share the gradient of a matrix, for codelets and the builders that choose how many columns a tile
// has: this many on different pairs of columns, each with six / as many on the same pairs and different rows. Those
// that share rows search their first entry in each list, seven slots for each halving of it.
inline unsigned workersOnPairs(unsigned pairs, unsigned listed) {
  unsigned search = 7, best = 6, least = slotsOfEntry((pairs + 5) / 6) * listed;
  for (unsigned left = listed; left > 0; left /= 2) search += 7;
  for (unsigned parts = 3; parts > 0; --parts) {
    const unsigned work = slotsOfEntry((pairs + parts - 1) / parts) * listed * parts / 6 + search;
    if (work < least) {
      best = parts;
      least = work;
    }
  }
  return best;
}

}  // namespace snnjax
