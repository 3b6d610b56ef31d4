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

}  // namespace cycles

std::uint64_t workerCycles(const std::same_as<SlotsOfNeurons> auto& vertex, unsigned worker) {
  using namespace cycles;
  Slots slots = entry(8, false);
  unsigned t = worker;
  for (unsigned b = 0; b < vertex.batch; ++b, t -= vertex.num_steps) {
    for (; t < vertex.num_steps; t += vertex.numWorkers()) {
      const List<unsigned short> list = {&vertex.lists[(b * vertex.num_steps + t) * vertex.stride], vertex.capacity};
      slots +=
          kSlotsRow + fill(vertex.neurons, 2) + (t == 0 ? copy(vertex.neurons, 2) : 0) + list.listed() * kSlotsEntry;
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
  Slots slots = entry((has_second ? 29 : 24) + (learns ? 4 : 0), false);
  const unsigned neurons = vertex.neurons;
  forEachOwnNumber(vertex.batch, neurons, worker, [&](unsigned b, unsigned j, auto numbers) {
    const Slots each = kScanNumber + kScanStep + (t < vertex.lengths[b] ? inside : 1);
    slots += numbers.kCount == 1 && neurons % 2 == 0 ? (j % 2 == 0 ? each : 0) : each;
    if (t >= vertex.lengths[b]) return;
    for (unsigned lane = 0; lane < numbers.kCount; ++lane) {
      const bool is_listed =
          vertex.slots[(b * (vertex.num_steps + 1) + own_step + 1) * neurons + j + lane] < vertex.capacity;
      slots += is_listed ? kListedNeuron + vertex.parts * kListedPart : 0;
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
