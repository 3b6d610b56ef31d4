// `select_spikes` on tiles: each tile lists some rows of the batch, its workers share the neurons of a row or, where it
// has enough of them, the rows. Defined by snnjax/ops/select_spikes.py.
#pragma once

#include "vertices.hpp"

namespace snnjax::builders {

// The lists that a tile makes by the fair rule: its workers list the candidates of their shares of each row, and these
// are joined.
struct Selection {
  unsigned tile = 0, rows = 0, neurons = 0, capacity = 0;
  Tensor list;     // out: ids [rows, stride], records (poplar_kernels/conventions.hpp)
  Tensor dropped;  // unsigned [rows], spikes that find no slot
};

// Vertices in compute sets that run one after the other; the candidates come from the vertex of the first.
class SelectionSets {
 public:
  // Dropped spikes may be added to those of earlier runs.
  SelectionSets(Graph& graph, const std::string& name, const std::string& suffix = "", bool adds = false);
  // With fields and states of a vertex that writes candidates, but for what it writes and the rows.
  void add(const Selection& selection, const std::string& vertex, std::vector<Field> fields, std::vector<State> states);
  const Sequence& program() const { return program_; }

 private:
  Graph& graph_;
  std::string name_;
  bool adds_;
  ComputeSet candidates_, cuts_, lists_;
  Sequence program_;
};

struct SelectSpikesOptions {
  unsigned rows = 0, neurons = 0, capacity = 0;
  bool half_membranes = false;
  bool long_ids = false;  // int, beyond 65,535 neurons; else unsigned short
  Surrogate surrogate = Surrogate::Superspike;
  float slope = 10.0F;
};

// Of the selection, or of its gradient: then `values` is their cotangent, and records and second thresholds are unused
// but for the ids.
struct SelectSpikesTensors {
  std::vector<Home> homes;
  Tensor v;                            // [rows, neurons]
  Tensor threshold, second_threshold;  // float [neurons], spread over all tiles
  Tensor records;                      // ids [rows, stride], as in poplar_kernels/lists/lists.hpp
  Tensor values;                       // v's type [rows, capacity]: 1 for spikes, else 0
};

SelectSpikesTensors addSelectSpikesTensors(Graph& graph, const SelectSpikesOptions& options);

Sequence addSelectSpikes(Graph& graph, const SelectSpikesOptions& options, const SelectSpikesTensors& tensors);

struct SelectSpikesGradients {
  Tensor v;          // v's type [rows, neurons]
  Tensor threshold;  // float [neurons], summed over the rows
};

// Adds what computes them to a program.
SelectSpikesGradients addSelectSpikesBackward(Graph& graph, const SelectSpikesOptions& options,
                                              const SelectSpikesTensors& tensors, Sequence& program);

}  // namespace snnjax::builders
