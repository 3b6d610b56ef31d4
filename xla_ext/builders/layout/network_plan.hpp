// A network of LIF layers laid out on tiles: which tile holds which neurons, which makes and keeps which spike lists,
// and how many steps run at once. Pure arithmetic; README.md explains it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "builders/layout/spread.hpp"
#include "poplar_kernels/conventions.hpp"

namespace snnjax::builders {

// What the first layer reads: lists of spikes of value 1, lists of events with values, or a value of every input.
enum class Inputs : unsigned char { Spikes, Events, Dense };

// The static part of a layer's neurons; their equation is in poplar_kernels/network/neuron.hpp.
struct NeuronOptions {
  Reset reset = Reset::Subtract;
  bool detach_reset = true;
  Surrogate surrogate = Surrogate::Superspike;
  float slope = 10.0F;
  bool second_state = false;      // else they are plain LIF
  bool raises_threshold = false;  // by the second state
  bool keeps_second = false;      // the record keeps it for all steps, for the gradients of constants
};

struct LayerOptions {
  unsigned neurons = 0;
  std::optional<unsigned> capacity = {};  // slots of its lists; none: all neurons are listed
  bool recurrent = false;                 // its own spikes of the previous step add to its current
  NeuronOptions neuron = {};
};

struct NetworkOptions {
  unsigned num_steps = 0;
  unsigned batch = 0;
  unsigned num_inputs = 0;
  unsigned event_capacity = 0;  // slots of the input lists; of dense inputs their number
  unsigned event_entries = 0;   // that are used of them on average, for estimates; 0: all
  Inputs inputs = Inputs::Spikes;
  bool inputs_gradient = false;  // the backward pass yields that of the values; not of spikes
  std::vector<LayerOptions> layers;
  // Leaky integrators after the last layer; 0: the last layer's spikes are the output, as lists if it has a capacity.
  unsigned outputs = 0;
  bool half_weights = false;
  bool first_spikes = false;          // recurrent layers start from spikes of an earlier call; else from none
  bool first_spikes_gradient = true;  // which the backward pass then yields
  bool first_states_gradient = true;  // the backward pass yields those of first membranes and second states
  bool counts = true;                 // the forward pass yields how often neurons fired
  bool last_spikes = true;            // the forward pass yields those of recurrent layers
  bool last_spikes_gradient = true;   // which the backward pass is given; else it is 0
  bool keeps_record = true;           // membranes and lists of all steps, for the backward pass
  bool learns_constants = false;      // the backward pass yields the gradients of the constants of all layers
  unsigned attempts = 0;              // layouts that did not fit, after which one that takes less is chosen
};

// Neighbouring samples of the batch.
struct SampleGroup {
  unsigned first = 0;
  unsigned count = 0;
};

// The lists that one layer reads: the network's input, or what the layer below fires.
struct ListPlan {
  unsigned capacity = 0;
  unsigned stride = 0;       // entries of a record: header and ids, padded
  unsigned listed = 0;       // slots that are used on average, for estimates
  unsigned num_neurons = 0;  // of the layer that fires, also the pad id
  bool valued = false;       // each id has a value
  bool dense = false;        // made of a row of all inputs at their homes: the nonzero ones
  // They make and keep the lists of the rows [batch, block_steps] of each block of steps.
  std::vector<Home> homes;
  // Of a recurrent layer: of the rows [batch] that are the spikes which the state carries.
  std::vector<Home> sample_homes;
};

// A readout of at most so many outputs is narrow: its backward pass runs on the tiles of the neurons that it reads,
// each of which hears the gradients of all outputs.
constexpr unsigned kNarrow = 32;

// Of a tile's memory, what a product on the matrix unit may take.
constexpr double kUnitShare = 0.3;

struct LayerPlan {
  bool leaky = false;      // the readout
  bool recurrent = false;  // also reads the lists that it fires
  bool learns_constants = false;
  NeuronOptions neuron;  // not of the readout
  unsigned inputs = 0;
  unsigned neurons = 0;
  // Products with dense rows of the inputs, not with their lists.
  bool currents_on_unit = false, gradient_on_unit = false;
  // Gradients of weights by input, from lists without values: of the inputs, and of own spikes of the step before.
  bool gathers_gradient = false, gathers_recurrent = false;
  TileRange tiles;  // of the first group, if there were no others
  // Block p of the weights works for group g on tile p * groups + g of the layer.
  std::vector<SampleGroup> sample_groups;
  // Where a layer has few tiles, the currents of its rows are summed in so many parts on others.
  unsigned row_parts = 1;

  unsigned tileOf(std::size_t block, std::size_t group) const {
    return tiles.first + static_cast<unsigned>(block * sample_groups.size() + group);
  }
  unsigned paddedNeurons() const { return tiles.count * tiles.columns; }
  bool isNarrow() const { return leaky && neurons <= kNarrow; }
};

// The tiles that a layer does not have, for each of its blocks: whole pairs, which receive together.
constexpr unsigned othersOf(unsigned neurons, unsigned columns, unsigned groups, unsigned num_tiles) {
  const unsigned blocks = ceilDivide(neurons, columns), own = (blocks * groups + 1) / 2 * 2;
  return own < num_tiles ? (num_tiles - own) / blocks / 2 * 2 : 0;
}

struct NetworkPlan {
  NetworkOptions options;
  unsigned num_tiles = 0;
  std::size_t bytes_per_tile = 0;
  std::vector<LayerPlan> layers;  // the readout, if there is one, is the last
  // lists[l] is what layers[l] reads, lists[l + 1] what it fires. Spikes of the last layer are read off its membranes;
  // it fires lists only if it is recurrent, or they are the output.
  std::vector<ListPlan> lists;
  // Steps run in blocks; those of the last block that are too many are past the end of every sequence.
  unsigned block_steps = 0, num_blocks = 0;
  std::size_t bytes = 0;  // of data on the fullest tile, as far as the plan knows of it

  unsigned paddedSteps() const { return block_steps * num_blocks; }
  unsigned blockRows() const { return options.batch * block_steps; }
  // Whether lists[l] is made by a layer, not by the host.
  static bool isMade(std::size_t l) { return l > 0; }
  // Whether somebody reads lists[l + 1] of the layer `l`: the layer above, itself, or the user.
  bool firesLists(std::size_t layer) const { return layer + 1 < lists.size(); }
  bool listsOutput() const { return options.outputs == 0 && options.layers.back().capacity.has_value(); }
  // The last layer's membranes are always kept: they are, or determine, the output.
  bool keepsMembranes(std::size_t layer) const { return options.keeps_record || layer + 1 == layers.size(); }
  unsigned membraneRows(std::size_t layer) const { return keepsMembranes(layer) ? paddedSteps() + 1 : 1; }
  // Likewise of second states.
  bool keepsSecond(std::size_t layer) const;
  unsigned secondRows(std::size_t layer) const { return keepsSecond(layer) ? paddedSteps() + 1 : 1; }
};

// Words for the rows of a block in which an input fires, where so many are listed in each row: their numbers, if there
// are hardly more than usual, or a bit for each row.
constexpr unsigned wordsOfRows(unsigned rows) { return ceilDivide(rows, 32); }
constexpr unsigned wordsOfRecord(unsigned rows, double inputs, double listed) {
  const auto usual = static_cast<unsigned>(rows * listed / inputs);
  return std::clamp(ceilDivide(usual + usual / 4, 2), wordsOfRows(rows), 2 * wordsOfRows(rows));
}

// Of at least one step, one sample, and one layer, each of 1 to 65534 neurons. Throws where it does not fit.
NetworkPlan planNetwork(const NetworkOptions& options, unsigned num_tiles, std::size_t bytes_per_tile);

}  // namespace snnjax::builders
