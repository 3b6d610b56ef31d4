// What the codelets of lif_recurrent_gradient.cpp cost a worker: its numbers with the ids that are really listed.
#pragma once

#include <concepts>

#include "../lists/listed_rows_cycles.hpp"
#include "../lists/lists.hpp"
#include "lif_gradient_scan_cycles.hpp"
#include "neuron_rows.hpp"

namespace snnjax {

class SlotsOfNeurons;
template <bool has_second, bool learns>
class LifRecurrentGradient;
template <class W>
class StepDots;

namespace cycles {

// SlotsOfNeurons: a row's pointers, its record, two neurons a store; an entry's load, difference, test and branch, and
// one that is own.
constexpr Slots kSlotsRow = 12 + kRecordHeader, kSlotsEntry = 4, kOwnEntry = 2 + kShortStore;
// A neuron in a list: the address of its first sum 4, a load with the sum of the one before and the branch for each
// part. Before: two loads of slots, their tests 2, both sums into one register 2.
constexpr Slots kSlotsTests = 6, kListedNeuron = 4, kListedPart = 2;
// Plain neurons: the rows of three tables 7, the test of the length 2, two slots with their tests 4, of counts two
// words and their test 4, the reset's 2; five loads, four stores, three sums or products that find no bundle. A reset
// that does not pass on the gradient as it is: two loads and their row, and the reset. With a gradient at the spike the
// row, three loads, two sums, the surrogate's difference, comparison, mask and product 4, both sums of slots into one
// register 2; with that of counts two loads, two masks, two products or sums. Past the end: row, test, store.
constexpr Slots kPlainRecurrent = 7 + 2 + 4 + 4 + 2 + 5 + 4 + 3, kPlainFrozen = 6;
constexpr Slots plainReset(GradientSwitches s) {
  return s.detach_reset && s.reset != Zero ? 0 : 3 + throughReset(s.reset, s.detach_reset, s.surrogate);
}
constexpr Slots activeRecurrent(unsigned char surrogate_kind, bool counted) {
  return 2 + 3 + 2 + surrogate(surrogate_kind) + 4 + 2 + (counted ? 6 : 0);
}

}  // namespace cycles

std::uint64_t workerCycles(const std::same_as<SlotsOfNeurons> auto& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(8, false);
  unsigned t = worker;
  for (unsigned b = 0; b < vertex.batch; ++b, t -= vertex.num_steps) {
    for (; t < vertex.num_steps; t += vertex.numWorkers()) {
      const List<unsigned short> list = {&vertex.lists[(b * vertex.num_steps + t) * vertex.stride], vertex.capacity};
      const unsigned width = vertex.neurons;
      slots += kSlotsRow + kToRows + filled(width, 2, width) + (t == 0 ? kToRows + moved(width, 2, width) : 0) +
               list.listed() * kSlotsEntry;
      for (unsigned j = 0; j < vertex.neurons; ++j) {
        const unsigned slot = vertex.slots[(b * (vertex.num_steps + 1) + t) * vertex.neurons + j];
        slots += slot < vertex.capacity ? kOwnEntry : 0;
      }
    }
  }
  return slots;
}

template <bool has_second, bool learns>
std::uint64_t workerCycles(const LifRecurrentGradient<has_second, learns>& vertex, unsigned worker) {
  using namespace cycles;
  const unsigned own_step = vertex.num_steps - 1 - *vertex.iteration;
  if (own_step >= vertex.num_steps) return kIdle;
  const unsigned t = *vertex.block * vertex.num_steps + own_step;
  const GradientSwitches switches = switchesOf(vertex);
  const Slots inside = (learns ? constantsGradient(switches) : membraneGradient(switches)) + secondGradientOf(vertex) +
                       (has_second && learns ? kSecondConstantsGradient : 0) + kSlotsTests;
  const unsigned width = vertex.neurons % 2 == 0 ? 2 : 1;  // a pair of neighbours, in either form
  Slots slots = entry((has_second ? 29 : 24) + (learns ? 4 : 0), false);
  forEachOwnNumber(vertex.batch, vertex.neurons, worker, [&](unsigned b, unsigned j, auto) {
    if (j % width != 0) return;
    const bool ended = t >= vertex.lengths[b];
    const unsigned at = (b * vertex.num_steps + own_step) * vertex.neurons + j;
    unsigned listed = 0;
    bool counted = false;
    for (unsigned lane = 0; lane < width; ++lane) {
      listed += vertex.isListed(b, at + lane, Numbers<float>{}) ? 1 : 0;
      counted |= vertex.isCounted(b * vertex.neurons + j + lane, Numbers<float>{});
    }
    const Slots sums = listed * (kListedNeuron + vertex.parts * kListedPart);
    if constexpr (has_second || learns) {
      slots += kScanNumber + kScanStep + (ended ? 1 : inside + sums);
    } else {
      const Slots active = listed > 0 || counted ? activeRecurrent(vertex.surrogate, counted) : 0;
      slots += ended ? kPlainFrozen : kPlainRecurrent + plainReset(switches) + active + sums;
    }
  });
  return slots;
}

template <class W>
std::uint64_t workerCycles(const StepDots<W>& vertex, unsigned worker) {
  using namespace cycles;
  const unsigned t = vertex.num_steps - 1 - *vertex.iteration;
  if (t >= vertex.num_steps) return kIdle;
  Slots slots = entry(11, false);
  for (unsigned b = 0; b < vertex.batch; ++b) {
    const List<unsigned short> list = {&vertex.lists[(b * vertex.num_steps + t) * vertex.stride], vertex.capacity};
    const Range own = quickShareOf(list.listed(), worker);
    slots += 12 + kRecordHeader + dotListedRows(own.last - own.first, vertex.neurons, sizeof(W));
  }
  return slots;
}

}  // namespace snnjax
