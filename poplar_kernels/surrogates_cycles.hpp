// What the derivatives of surrogates.hpp cost, in issue slots, for one neuron or a pair of neighbours.
#pragma once

#include "issue_slots.hpp"
#include "surrogates.hpp"

namespace snnjax::cycles {

// surrogateDerivative: the choice (a table of branches, 4) and the aux instructions; scale, absolute value and the
// like take 1 each.
constexpr Slots surrogate(unsigned char kind) {
  constexpr Slots kChoice = 4;
  switch (kind) {
    case SuperSpike: return kChoice + 4 + kInverse;
    case Arctan: return kChoice + 3 + kInverse;
    case Triangle: return kChoice + 4;
    case Gaussian: return kChoice + 3 + kExponential;
    case Sigmoid: return kChoice + 5 + 2 * (kExponential + kInverse + 1);
    case Boxcar: return kChoice + 3;
    default: return kChoice + 1;
  }
}

}  // namespace snnjax::cycles
