// What the vertices of one layer exchange in an iteration of the backward loop.
#pragma once

#include <poplar/Program.hpp>
#include <vector>

#include "loop.hpp"

namespace snnjax::builders {

struct Stage {
  // ids [tiles, batch * stride]: every tile's copy of the input lists at t, for two sets read it; not of dense inputs
  poplar::Tensor lists;
  poplar::Tensor all_inputs;  // ids [tiles, stride]: the record of all dense inputs, if their gradient is asked for
  poplar::Tensor values;      // float [tiles, batch * capacity]: likewise their values
  poplar::Tensor own_lists;   // ids [tiles, batch * stride]: likewise the lists that a recurrent layer fired at t - 1
  poplar::Tensor g_spikes;    // float [tiles, batch * columns]: of the layer's own listed spikes at t
  poplar::Tensor g_current;   // float [tiles, batch * columns]
  poplar::Tensor dots;      // float [tiles, batch * capacity]: <weights of a listed input, g_current>, own columns only
  poplar::Tensor own_dots;  // likewise of the recurrent weights and own lists
};

// Whether anything needs the gradient of what layer `l` reads.
inline bool makesDots(const NetworkPlan& plan, std::size_t l) { return l > 0 || plan.options.inputs_gradient; }

Stage addStage(Loop& loop, std::size_t l);

// The lists that layer `l` takes dot products with, on its tile i; for dense inputs, the one record of them all, shared
// by all samples.
struct ListsRead {
  poplar::Tensor lists;
  unsigned stride = 0;
};
ListsRead listsOfDots(const Loop& loop, std::size_t l, unsigned i, const Stage& stage);

// The lists at t go to all tiles that read them, of all layers together; then values.
poplar::program::Sequence copyLists(const Loop& loop, const std::vector<Stage>& stages);

}  // namespace snnjax::builders
