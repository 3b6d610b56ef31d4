// A network of LIF layers laid out on tiles: who holds which neurons, who makes and keeps which lists of spikes, and
// how late each layer runs. Pure arithmetic; README.md draws it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tiles_of_layers.hpp"

namespace snnjax::builders {

// Numbered as snnjax.ops.lif_step.RESETS and as the forms of snnjax/surrogates.py; the codelets take the numbers.
enum class Reset : unsigned char { Subtract, Zero, None };
enum class Surrogate : unsigned char { SuperSpike, Arctan, Triangle, Gaussian, Sigmoid, Boxcar, StraightThrough };

struct LayerOptions {
  unsigned neurons = 0;
  std::optional<unsigned> capacity = {};  // slots of its lists; none: all neurons are listed
};

struct NetworkOptions {
  unsigned num_steps = 0;
  unsigned batch = 0;
  unsigned num_inputs = 0;
  unsigned event_capacity = 0;  // slots of the input lists
  std::vector<LayerOptions> layers;
  unsigned outputs = 0;  // leaky integrators behind the last layer; 0: the last layer's spikes are the output
  Reset reset = Reset::Subtract;
  bool detach_reset = true;
  Surrogate surrogate = Surrogate::SuperSpike;
  float slope = 10.0F;
  bool half_weights = false;
  bool keeps_record = true;       // membranes and lists of all steps, for the backward pass
  bool has_moments = false;       // two more numbers a weight lie beside it: those of Adam
  bool learns_constants = false;  // the backward pass yields the gradients of decay, threshold and gain of LIF layers
  bool equal_columns = false;     // tilesOfEqualColumns in place of tilesOfLayers
  unsigned homes = 0;             // of the lists of a layer; 0: chosen
  unsigned group_tiles = 0;       // of the trees that combine lists and gradients; 0: chosen
};

// A tile that makes and keeps the lists of neighbouring samples.
struct Home {
  unsigned tile = 0;
  unsigned first_sample = 0;
  unsigned samples = 0;
};

// The lists that one layer reads: the network's input, or what the layer below fires.
struct ListPlan {
  unsigned capacity = 0;
  unsigned stride = 0;       // entries of a record: header and ids, padded
  unsigned num_neurons = 0;  // of the layer that fires, also the pad id
  std::vector<Home> homes;
};

// Neighbouring tiles of a layer.
struct TileGroup {
  unsigned first = 0;  // within the layer
  unsigned count = 0;
};

struct LayerPlan {
  bool leaky = false;  // the read-out
  unsigned inputs = 0;
  unsigned neurons = 0;
  TileRange tiles;
  std::vector<TileGroup> groups;
  unsigned parts = 1;           // of a group's neurons, listed by a worker each
  unsigned delay = 0;           // iterations by which the forward pass of this layer runs behind the clock
  unsigned backward_delay = 0;  // likewise of the backward pass

  unsigned paddedNeurons() const { return tiles.count * tiles.columns; }
  // The tile that combines, for the `home`-th home of `list`, what group `group` yields. Tiles of the next group do, so
  // that all they combine arrives by exchange: a tile would have to copy what it holds itself beside the rest. Groups
  // with fewer tiles than there are homes leave the work to the homes.
  unsigned leader(std::size_t group, const ListPlan& list, std::size_t home) const {
    for (std::size_t i = 1; i <= groups.size(); ++i) {
      const TileGroup& leading = groups[(group + i) % groups.size()];
      if (leading.count >= list.homes.size()) return tiles.first + leading.first + static_cast<unsigned>(home);
    }
    return list.homes[home].tile;
  }
};

struct NetworkPlan {
  NetworkOptions options;
  unsigned num_tiles = 0;
  std::vector<LayerPlan> layers;  // the read-out, if there is one, is the last
  std::vector<ListPlan> lists;  // lists[l] is what layers[l] reads; spikes of the last layer are read off its membranes
  unsigned iterations = 0;      // of the forward loop
  unsigned backward_iterations = 0;

  // Whether lists[l] is made by a layer, not by the host.
  static bool isMade(std::size_t l) { return l > 0; }
  // The last layer's membranes are kept in any case: they are, or give, the output.
  bool keepsMembranes(std::size_t layer) const { return options.keeps_record || layer + 1 == layers.size(); }
  unsigned membraneRows(std::size_t layer) const { return keepsMembranes(layer) ? options.num_steps + 1 : 1; }
};

constexpr unsigned kListHeader = 4;           // entries before the ids, as in poplar_kernels/lists.hpp
constexpr unsigned kMaxShortNeurons = 65535;  // with uint16 ids

unsigned listStride(unsigned capacity);

NetworkPlan planNetwork(const NetworkOptions& options, unsigned num_tiles, std::size_t bytes_per_tile);

}  // namespace snnjax::builders
