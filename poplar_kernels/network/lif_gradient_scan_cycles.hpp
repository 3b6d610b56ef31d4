// What the codelets of lif_gradient_scan.cpp cost a worker: its numbers in all steps.
#pragma once

#include "lif_scan_cycles.hpp"

namespace snnjax {

template <bool has_second, bool learns>
class LifGradientScan;
template <bool learns>
class LeakyGradientScan;

namespace cycles {

// What is the same for neurons of a layer.
struct GradientSwitches {
  unsigned char reset, surrogate;
  bool detach_reset;
};

// membraneGradient for one neuron or pair: ten loads and four stores; the comparison with the second threshold and its
// mask 2 and one of the two masked products (compare, mask, multiply: 3) in their bundles; the other masked product,
// two sums, the products with gain and decay and the sum of the bias wait for each other: 8; pointers and branch 3.
constexpr Slots membraneGradient(GradientSwitches s) {
  return 10 + 4 + 8 + 3 + surrogate(s.surrogate) + throughReset(s.reset, s.detach_reset, s.surrogate);
}

// What a second state takes besides: loads of its gradient of the step after, that of its last one and five constants;
// stores of both; sums: one in the spikes' gradient, one in the membrane's, two in its own, one in the current's, of
// which the products of all but the second last find bundles: 6; whether it raises thresholds 3. If so, loads of it and
// of its coupling 2, the product, sums into both thresholds 2, product and sum into its gradient 2.
constexpr Slots secondGradient(bool raises) { return 7 + 2 + 6 + 3 + (raises ? 2 + 1 + 2 + 2 : 0); }

template <class V>
Slots secondGradientOf(const V& vertex) {
  if constexpr (V::kHasSecond) {
    return secondGradient(vertex.raises);
  } else {
    return 0;
  }
}

// LeakyGradientScan for one neuron or pair: five loads, three stores, the choice whether inside 2, sum, product,
// product and sum, of which two find a bundle; branch 2.
constexpr Slots kLeakyGradient = 14;

template <class V>
GradientSwitches switchesOf(const V& vertex) {
  return {vertex.reset, vertex.surrogate, vertex.detach_reset};
}

// The gradients of decay, threshold and gain besides: four loads and three stores more, the reset of the membrane
// before, three products, three sums, a quotient and its test (3).
constexpr Slots constantsGradient(GradientSwitches s) {
  return membraneGradient(s) + 10 + 4 + reset(s.reset) + kQuotient + 3;
}

// Those of a second state besides: loads of both its states and of six constants 8; the threshold before, the current
// told from the membrane, and from the second state: two products or sums each that find no bundle, 6, and a quotient
// with its test and choice 4; six gradients of a load, a product, a sum in a bundle and a store: 3 each.
constexpr Slots kSecondConstantsGradient = 8 + 6 + kQuotient + 4 + 6 * 3;

// Of a readout, for one neuron or pair: eight loads, three stores, four products, three sums and a difference of which
// half find a bundle, a quotient and its test 3, branch 2.
constexpr Slots kLeakyConstants = 8 + 3 + 4 + kQuotient + 3 + 2;

}  // namespace cycles

template <bool has_second, bool learns>
std::uint64_t workerCycles(const LifGradientScan<has_second, learns>& vertex, unsigned worker) {
  using namespace cycles;
  const GradientSwitches switches = switchesOf(vertex);
  const Slots inside = (learns ? constantsGradient(switches) : membraneGradient(switches)) + secondGradientOf(vertex) +
                       (has_second && learns ? kSecondConstantsGradient : 0);
  return entry((has_second ? 24 : 19) + (learns ? 4 : 0), false) + ownNumbers(vertex, worker, [&](unsigned b) {
           return kScanNumber + steps(vertex, b, kScanStep + inside, kScanStep + 1);
         });
}

template <bool learns>
std::uint64_t workerCycles(const LeakyGradientScan<learns>& vertex, unsigned worker) {
  using namespace cycles;
  const Slots inside = kLeakyGradient + (learns ? kLeakyConstants : 0);
  return entry(learns ? 14 : 11, false) + ownNumbers(vertex, worker, [&](unsigned b) {
           return kScanNumber + steps(vertex, b, kScanStep + inside, kScanStep + kLeakyGradient);
         });
}

}  // namespace snnjax
