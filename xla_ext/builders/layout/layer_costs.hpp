// What a layer of a network costs in a placement, in cycles and bytes, from its sizes alone.
#pragma once

#include "builders/layout/network_plan.hpp"

namespace snnjax::builders {

constexpr unsigned kWorkers = 6;  // of a tile
constexpr std::size_t kWord = 4;  // bytes

// The lists that multiply a matrix of a layer.
struct Product {
  double inputs, listed;
  std::size_t capacity, record;  // slots and entries of a list
  bool dense, valued, sends_gradient;
};

// On the fullest tile: variables, and what arrives for the largest compute set.
struct Bytes {
  double kept = 0, buffer = 0;
};

// What a product of all steps, where they run at once, takes on the matrix unit: with the rows that it reads, and what
// goes to it and from it.
struct UnitProduct {
  double cycles = 0;
  Bytes bytes;
};
struct Unit {
  UnitProduct currents, gradient;
};

// A layer's sizes, and what is done with them.
struct Work {
  Product input;
  std::optional<Unit> unit;  // where it may take them
  std::optional<Product> recurrent;
  unsigned neurons, batch, block_steps, blocks;
  bool leaky;        // the readout
  bool gathers;      // the gradient of weights by input
  bool gathers_own;  // likewise that of the weights of own spikes
  bool learns;       // also backward; a narrow readout's is that of the neurons below
  double scan;       // slots of a pair of neurons in a step
  unsigned outputs;  // of a narrow readout of these neurons, 0 if there is none, and the neurons that it hears
  double heard;
  // Numbers for each neuron, sample and step: of all steps, and of a block. Rows of a list at a home.
  std::size_t weight_bytes, kept, states, home_rows;
  double tiles;  // of the device

  unsigned steps() const { return block_steps * blocks; }
  double weights() const { return (input.inputs + (recurrent ? recurrent->inputs : 0)) * neurons; }
};

// The columns of a block of neurons, the groups of samples, and which products the matrix unit takes.
struct Choice {
  unsigned columns = 0, groups = 0;
  bool currents_on_unit = false, gradient_on_unit = false;
};

// The layer `l` of a plan whose lists and blocks of steps are known.
Work workOf(const NetworkPlan& plan, std::size_t l);
// Rows of a list at each home.
std::size_t rowsAtHome(const NetworkPlan& plan);
unsigned samplesOf(const Work& work, unsigned groups);
// In how many parts the rows of each tile are summed (LayerPlan::row_parts).
unsigned rowPartsOf(const Work& work, Choice choice);

// Of all steps, forward and, if it learns, backward: those of a tile.
double cyclesOf(const Work& work, Choice choice);

Bytes bytesOf(const Work& work, Choice choice);

// In how many parts of so many blocks, the last of which may be fewer, the spikes of a sample are listed in the loop of
// a recurrent layer, with so many slots each. What a step costs grows with the neurons of a part, and with the number
// of parts, all of which each of them hears. Where that takes long, the parts are merged instead, and ranked only in
// steps in which a list has too many.
// Few short lists take one exchange: each block lists its own spikes, of which all workers select.
struct PartsPlan {
  unsigned count = 1, blocks = 1, slots = 2;
  bool are_merged = false, are_blocks = false;
  unsigned lists = 1, of_list = 2;  // that a neuron reads, with so many words but for the one that ends it
  double cycles = 0;                // with its exchanges
};
struct OwnSpikes {
  unsigned blocks, columns, capacity;
  double listed;  // of the slots, on average
  unsigned samples;

  double numbers() const;  // pairs of a worker
};
PartsPlan planParts(const OwnSpikes& of);

// Of these, what products on the matrix unit take, of all tiles.
Bytes unitBytesOf(const Work& work, Choice choice);

// How the dot products of all blocks with listed entries are summed: rows in `parts`, whose sums their readers add,
// each part in `runs` of an even number of entries, the last of which may be shorter. As many parts as blocks are the
// dot products themselves.
struct SumsPlan {
  unsigned parts = 1, runs = 1, of_run = 0;
  double cycles = 0;
};
SumsPlan planSums(unsigned blocks, unsigned entries);

}  // namespace snnjax::builders
