// `select_spikes` on tiles: each tile lists some rows of the batch, its workers share the neurons of a row or, where it
// has enough of them, the rows. Defined by snnjax/ops/select_spikes.py.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include "builders/layout/network_plan.hpp"
#include "vertices.hpp"

namespace snnjax::builders {

// Rows that a tile lists by the fair rule: its workers list their shares of each row, and these are joined.
struct Selection {
  unsigned rows = 0;
  unsigned neurons = 0;
  unsigned columns = 0;  // of a block of v
  unsigned capacity = 0;
  poplar::Tensor v;                 // in: float [blocks, rows, columns]
  poplar::Tensor raise;             // in: as v, added to thresholds; if not valid, nothing is
  poplar::Tensor threshold, least;  // in: float [neurons]; `leastThreshold`
  poplar::Tensor list;              // out: ids [rows, stride], records (poplar_kernels/lists/lists.hpp)
  poplar::Tensor dropped;           // unsigned [rows], spikes that find no slot are added
};

// The compute sets of selections, which run one after the other.
struct SelectionSets {
  poplar::ComputeSet candidates, lists;
};

// The smaller of both thresholds, on the tiles of the first: membranes above it are candidates. One that is NaN, above
// which nothing lies, leaves the other.
poplar::Tensor leastThreshold(poplar::Graph& graph, const poplar::Tensor& threshold,
                              const poplar::Tensor& second_threshold, poplar::program::Sequence& program,
                              const std::string& name);

void addSelection(poplar::Graph& graph, const SelectionSets& sets, unsigned tile, const Selection& selection,
                  const std::string& name);

struct SelectSpikesOptions {
  unsigned rows = 0;
  unsigned neurons = 0;
  unsigned capacity = 0;
  bool half_membranes = false;
  bool long_ids = false;  // int, beyond 65,535 neurons; else unsigned short
  Surrogate surrogate = Surrogate::Superspike;
  float slope = 10.0F;
};

// Of the selection, or of its gradient: then `values` is their cotangent, and records and second thresholds are unused
// but for the ids.
struct SelectSpikesTensors {
  std::vector<Home> homes;
  poplar::Tensor v;                            // [rows, neurons]
  poplar::Tensor threshold, second_threshold;  // float [neurons], spread over all tiles
  poplar::Tensor records;                      // ids [rows, stride], as in poplar_kernels/lists/lists.hpp
  poplar::Tensor values;                       // v's type [rows, capacity]: 1 for spikes, else 0
};

SelectSpikesTensors addSelectSpikesTensors(poplar::Graph& graph, const SelectSpikesOptions& options);

poplar::program::Sequence addSelectSpikes(poplar::Graph& graph, const SelectSpikesOptions& options,
                                          const SelectSpikesTensors& tensors);

struct SelectSpikesGradients {
  poplar::Tensor v;          // v's type [rows, neurons]
  poplar::Tensor threshold;  // float [neurons], summed over the rows
};

// Adds what computes them to a program.
SelectSpikesGradients addSelectSpikesBackward(poplar::Graph& graph, const SelectSpikesOptions& options,
                                              const SelectSpikesTensors& tensors, poplar::program::Sequence& program);

}  // namespace snnjax::builders
