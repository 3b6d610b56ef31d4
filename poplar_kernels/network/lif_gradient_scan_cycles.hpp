// What the codelets of lif_gradient_scan.cpp cost a worker: its numbers in all steps.
#pragma once

#include "lif_scan_cycles.hpp"
#include "neuron_rows.hpp"

namespace snnjax::cycles {

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

// A step of plain neurons, with constants and sums in registers: two words of the spikes' gradient, their test 2, that
// of the counts, the store, two pointers and the branch; products and sums find bundles. Through a reset that does not
// pass on the gradient as it is: two loads and their pointer, and the reset. Of counts: load, comparison, both lanes in
// one, a main register, the branch.
constexpr Slots plainStep(GradientSwitches s, bool counted) {
  return 9 + (s.detach_reset && s.reset != Zero ? 0 : 3 + throughReset(s.reset, s.detach_reset, s.surrogate)) +
         (counted ? 5 : 0);
}
// Two of them share pointers and the branch.
constexpr Slots kSharedByTwo = 3;
// With a gradient at the spike besides: three loads with the product for their row 2, the difference, the surrogate,
// comparison, mask, product and sum 4, the branch; that of counts: two loads, two masks, two products or sums.
constexpr Slots activeStep(unsigned char surrogate_kind, bool counted) {
  return 3 + 2 + 1 + surrogate(surrogate_kind) + 4 + 1 + (counted ? 6 : 0);
}
// Around the steps: two constants; three sums that are loaded and stored, whether they start, the test of the counts 3,
// whether a step is left over 2.
constexpr Slots kPlainNumber = 2 + 6 + 2 + 3 + 2;

// LeakyGradientScan for one neuron or pair, its constants and sums in registers: load, store, two pointers and the
// branch; a product that the store waits for; sums and the other product find bundles. Behind the end without these.
constexpr Slots kLeakyGradient = 6, kLeakyPadding = 5;
// Two constants; two sums that are loaded and stored, whether they start; the loops.
constexpr Slots kLeakyNumber = 2 + 4 + 2 + 4;

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

// A step past the end: the store, its pointer and the branch.
constexpr Slots kPaddedStep = 3;

// The steps inside of a sequence, of a number or a pair: `lanes` neurons.
template <class V>
Slots plainSteps(const V& vertex, unsigned b, unsigned j, unsigned lanes, unsigned inside) {
  constexpr Numbers<float> kOne;
  const auto any = [&](auto&& holds) { return holds(j) || (lanes > 1 && holds(j + 1)); };
  const bool counted = any([&](unsigned lane) { return vertex.isCounted(b, lane, kOne); });
  Slots active = 0;
  for (unsigned t = 0; t < inside; ++t) {
    active += any([&](unsigned lane) { return !vertex.isQuiet(t, b, lane, counted, kOne); }) ? 1 : 0;
  }
  return kPlainNumber + inside * plainStep(switchesOf(vertex), counted) - inside / 2 * kSharedByTwo +
         active * activeStep(vertex.surrogate, counted);
}

}  // namespace snnjax::cycles
