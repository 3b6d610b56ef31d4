// What the codelets of lif_gradient_scan.cpp cost a worker: its numbers in all steps.
#pragma once

#include "lif_constants_gradient_cycles.hpp"
#include "lif_scan_cycles.hpp"

namespace snnjax {

template <bool has_second, bool learns>
class LifGradientScan;
template <bool learns>
class LeakyGradientScan;

template <bool has_second, bool learns>
std::uint64_t workerCycles(const LifGradientScan<has_second, learns>& vertex, unsigned worker) {
  using namespace cycles;
  const GradientSwitches switches = switchesOf(vertex);
  const Slots inside = (learns ? constantsGradient(switches) : membraneGradient(switches)) + secondGradientOf(vertex) +
                       (has_second && learns ? kSecondConstantsGradient : 0);
  return entry((has_second ? 23 : 18) + (learns ? 4 : 0), false) +
         ownNumbers(vertex, worker, [&](unsigned b) { return steps(vertex, b, inside, 1); });
}

template <bool learns>
std::uint64_t workerCycles(const LeakyGradientScan<learns>& vertex, unsigned worker) {
  using namespace cycles;
  const Slots inside = kLeakyGradient + (learns ? kLeakyConstants : 0);
  return entry(learns ? 13 : 10, false) +
         ownNumbers(vertex, worker, [&](unsigned b) { return steps(vertex, b, inside, kLeakyGradient); });
}

}  // namespace snnjax
