// The backward pass of the leaky integrators after the last layer. Forward, they are a layer that never fires.
#pragma once

#include "cpu/lists/spike_rows.hpp"
#include "cpu/memory.hpp"
#include "cpu/numbers.hpp"
#include "cpu/parallel.hpp"
#include "lif_layer.hpp"

namespace snnjax {

struct ReadoutBackward {
  const Layer& layer;
  const SpikeLists& inputs;
  Extent extent;
  Numbers first_v;   // [batch, outputs]
  Numbers output;    // membranes [steps, batch, outputs], rounded: used only for the gradient of the decay
  Numbers g_output;  // their cotangents
  Numbers g_last_v;  // [batch, outputs]
  // Results; those marked * may be absent.
  WritableNumbers g_weights, g_bias, g_decay, g_gain;  // *; the last three are [outputs]
  WritableNumbers g_first_v;                           // [batch, outputs]
  KeptRows g_v;                                        // [rows, outputs], 0 past the ends
};

void runReadoutBackward(ReadoutBackward& pass, const Threads& threads);

}  // namespace snnjax
