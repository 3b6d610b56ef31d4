// What the equations of neuron.hpp cost, in issue slots, for one neuron or a pair of neighbours.
#pragma once

#include "../surrogates_cycles.hpp"
#include "neuron.hpp"

namespace snnjax::cycles {

// resetMembrane: the choice 2, the comparison and its mask 2, product and difference 2.
constexpr Slots reset(unsigned char kind) { return kind == None ? 2 : 6; }

// throughReset: the same, negation and product; attached, the products and the surrogate's slope besides.
constexpr Slots throughReset(unsigned char kind, bool detach, unsigned char surrogate_kind) {
  if (kind == None) return 2;
  return 8 + (detach ? 0 : 5 + surrogate(surrogate_kind));
}

}  // namespace snnjax::cycles
