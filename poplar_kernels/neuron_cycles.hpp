// What the equations of neuron.hpp and surrogates.hpp cost, in issue slots, for one neuron or a pair of neighbours.
#pragma once

#include "issue_slots.hpp"
#include "neuron.hpp"

namespace snnjax::cycles {

// How often an equation is evaluated for `neurons` neurons: two at a time if their number is even.
constexpr Slots numbersOf(unsigned neurons) { return neurons % 2 == 0 ? neurons / 2 : neurons; }

// surrogateDerivative: the choice (a table of branches, 4) and the aux instructions; scale, absolute value and the
// like take 1 each.
constexpr Slots surrogate(unsigned char kind) {
  constexpr Slots kChoice = 4;
  switch (kind) {
    case Superspike: return kChoice + 4 + kInverse;
    case Arctan: return kChoice + 3 + kInverse;
    case Triangle: return kChoice + 4;
    case Gaussian: return kChoice + 3 + kExponential;
    case Sigmoid: return kChoice + 5 + 2 * (kExponential + kInverse + 1);
    case Boxcar: return kChoice + 3;
    default: return kChoice + 1;
  }
}

// resetMembrane: the choice 2, the comparison and its mask 2, product and difference 2.
constexpr Slots reset(unsigned char kind) { return kind == None ? 2 : 6; }

// throughReset: the same, negation and product; attached, the products and the surrogate's slope besides.
constexpr Slots throughReset(unsigned char kind, bool detach, unsigned char surrogate_kind) {
  if (kind == None) return 2;
  return 8 + (detach ? 0 : 5 + surrogate(surrogate_kind));
}

}  // namespace snnjax::cycles
