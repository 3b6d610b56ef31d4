// The variables of a network of LIF layers and their placement. Everything a neuron needs is on its tile; spike lists
// are at their homes. Layouts are those of the codelets.
#pragma once

#include <functional>

#include "builders/vertices.hpp"

namespace snnjax::builders {

// Of one layer, all on its tiles: `tiles` blocks, in each `columns` neighbouring neurons.
struct LayerTensors {
  Tensor weights;  // [tiles, (inputs + 1) * columns]; a block is row-major, its last row is 0
  // Of all groups: float [tiles, groups * columns].
  Tensor bias, decay, gain, threshold, second_threshold;
  Tensor lengths;    // unsigned [tiles, batch]: those of the network
  Tensor membranes;  // float [tiles, rows * batch * columns]: row 0 before the first step, row t + 1 after step
                     // t; one row if they are not kept
  Tensor counts;     // float [tiles, batch * columns]: true spikes summed over time; not of the readout
  // Of neurons with a second state: its constants of all groups float [tiles, groups * 6 * columns], a row for each
  // from WDecay on; the states as the membranes.
  Tensor second, second_states;
  // Of a recurrent layer. The spikes that a state carries lie dense at the homes of the samples: float [batch,
  // neurons], those before the first step (if the network starts from any) and the listed ones of each sequence's last
  // step.
  Tensor recurrent;      // [tiles, (neurons + 1) * columns], as the weights
  Tensor first_current;  // float [tiles, batch * columns]: what first_spikes add to the current
  Tensor first_spikes, last_spikes;
  // Of each group, what its tiles read again and again: the weights, if there are several blocks of steps and groups;
  // the recurrent weights, or themselves if there is one group.
  std::vector<Tensor> weight_copies, recurrent_copies;
};

// Of one layer: weights, or their gradients, that are already on its tiles and are read or written there, but for a
// last block that has columns to spare. If not valid, the network has its own variables.
struct LayerWeights {
  Tensor weights;    // [inputs * neurons], block by block, each spread over its tiles (rows.hpp)
  Tensor recurrent;  // [neurons * neurons]
};

// Of the lists that a layer reads, at their homes.
struct ListTensors {
  Tensor lists;    // ids [batch * block_steps, stride]: of the block; those of the history, if there is one block
  Tensor history;  // ids, of all blocks: historyOf() says where; not of dense inputs
  // float [batch * block_steps, capacity], and of all blocks: the values of events and of dense inputs.
  Tensor values, values_history;
  Tensor dropped;  // unsigned [batch]: spikes that did not fit, summed over time; not of the inputs
};

struct NetworkTensors {
  Tensor lengths;  // unsigned [batch], num_steps where a sequence does not end before
  std::vector<LayerTensors> layers;
  std::vector<ListTensors> lists;
  bool has_copies = false;  // the forward pass has filled those of weights
};

// Weights are given for all layers, or for none.
NetworkTensors addNetworkTensors(Graph& graph, const NetworkPlan& plan, const std::vector<LayerWeights>& given = {});
// The weights of one layer: the given ones if there are any, else its own.
void addWeights(Graph& graph, const NetworkPlan& plan, std::size_t layer, const LayerWeights& given,
                LayerTensors& tensors);
// Blocks of such a matrix with those of `given` in place of others that were given.
Tensor withGiven(const LayerPlan& layer, const Tensor& blocks, const Tensor& given);

Type weightsType(const NetworkPlan& plan);

// What a home has of all blocks of steps: [num_blocks, rows * width], of records as wide as their stride or of values
// as wide as the capacity.
Tensor historyOf(const NetworkPlan& plan, std::size_t width, const Tensor& history, const Home& home);
// A history [batch * steps of all blocks * width] at the homes; past the last step it is `behind`.
Tensor addHistory(Graph& graph, const Type& type, const NetworkPlan& plan, const ListPlan& list, std::size_t width,
                  const std::string& name, unsigned behind = 0);
// The same, seen as [num_steps, batch, width].
Tensor inTime(const NetworkPlan& plan, const ListPlan& list, const Tensor& history, std::size_t width);

// A vertex at each home of a list, whose fields are histories, as far as they are valid; it has so many rows.
Program runOnHistories(Graph& graph, const NetworkPlan& plan, const ListPlan& list, const std::string& name,
                       const std::string& vertex, const std::vector<Field>& histories,
                       const std::vector<State>& states);

// `rows` times `each` numbers for each sample of the batch, on the tiles of a layer that work for it: float [tiles,
// rows, batch * each].
Tensor addOfSamples(Graph& graph, const NetworkPlan& plan, std::size_t layer, std::size_t rows, std::size_t each,
                    const std::string& name);
// Numbers of each neuron and sample in its layer: float [tiles, rows * batch * columns], each group's on its own tiles.
Tensor addStates(Graph& graph, const NetworkPlan& plan, std::size_t layer, std::size_t rows, const std::string& name);
// [blocks, elements] on the tiles of one group.
Tensor addGroup(Graph& graph, const Type& type, const LayerPlan& layer, std::size_t group, std::size_t elements,
                const std::string& name);
// The same of each group, with so many elements for its samples.
std::vector<Tensor> addGroups(Graph& graph, const Type& type, const LayerPlan& layer, const std::string& name,
                              const std::function<std::size_t(unsigned)>& elements);

// Row `row` of states [tiles, rows * batch * columns] of a layer, if there are any: [tiles, batch * columns].
Tensor rowOf(const NetworkPlan& plan, std::size_t layer, const Tensor& states, unsigned row);

// A row of LayerTensors::second: float [tiles, columns].
Tensor secondConstant(const LayerPlan& layer, const LayerTensors& tensors, GlifConstant constant, std::size_t group);

}  // namespace snnjax::builders
