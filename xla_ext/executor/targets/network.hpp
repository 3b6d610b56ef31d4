// One call of `lif_network`, and its placement on tiles. Arrays and static values have the names of the table in
// snnjax/ops/_lif_network/records.py.
#pragma once

#include <array>
#include "builders/network/lif_network.hpp"

#include "executor/operations.hpp"
#include "executor/targets/operands.hpp"

namespace snnjax::executor::targets {

// The arrays of a layer, or their cotangents; of the readout, if there is one, those that it has.
struct LayerArrays {
  lif_network::Weighted<Value> linear;
  lif_network::LayerConstants<Value> constants;
  lif_network::LayerState<Value> first;

  const Value& weights() const { return linear.weights.array; }
  const Value& recurrent() const { return constants.recurrent.array; }
};

// The readout is the last one.
std::vector<LayerArrays> layersOf(const lif_network::Operands<Value>& operands, bool has_readout);

// Of one call.
struct NetworkOperands {
  std::vector<builders::LayerOptions> options;  // without sizes; not of the readout
  Value ids;                                    // of lists
  ValueId inputs;                               // their values, or dense inputs
  unsigned delay_rows = 0;                      // of the delays that made these lists, the longest plus 1; 0: none did
  std::vector<LayerArrays> layers;
  Value lengths;

  bool hasReadout() const { return layers.size() > options.size(); }
};

// The static values of the layers of a call.
std::vector<lif_network::LayerNumbers> numbersOf(const Instruction& instruction);

// One call of a pass.
template <typename From, typename To>
struct NetworkCall {
  explicit NetworkCall(const Instruction& given)
      : instruction(given),
        layers(numbersOf(given)),
        from(bound<From>(given, given.inputs, "operand_names", layers.size())),
        to(bound<To>(given, given.outputs, "result_names", layers.size())) {}

  const Instruction& instruction;
  std::vector<lif_network::LayerNumbers> layers;
  From from;
  To to;
};
using ForwardCall = NetworkCall<lif_network::Operands<Value>, lif_network::ForwardOnTiles<Value>>;
using BackwardCall = NetworkCall<lif_network::BackwardOnTiles<Value>, lif_network::BackwardResults<Value>>;

// Whether the run keeps a record: for the backward pass, or for results.
bool keepsRecord(const ForwardCall& call);
// Throws unless the arrays are there that the table asks for.
NetworkOperands networkOf(const ForwardCall& call);
NetworkOperands networkOf(const BackwardCall& call);

// What a builder needs to know of it. Before values are known, inputs are events with values, and recurrent layers
// start from spikes.
builders::NetworkOptions optionsOf(const Plan& plan, const NetworkOperands& operands, bool keeps_record);
builders::NetworkOptions optionsOf(const Lowering& lowering, const NetworkOperands& operands, bool keeps_record);
bool isZero(const Lowering& lowering, ValueId value);
// Its placement on the tiles, as far as weights go.
builders::NetworkPlan planOf(const Plan& plan, const NetworkOperands& operands, bool keeps_record,
                             const poplar::Target& target);
// The weights, or as results their gradients, about to be computed, that lie on the tiles of their layers.
std::vector<builders::LayerWeights> inPlace(Lowering& lowering, const std::vector<LayerArrays>& layers,
                                            const builders::NetworkPlan& plan, bool are_results);
// The columns of the last block of a matrix, [rows, columns]: where it is in place, and the network's own. None where
// it has none to spare.
struct LastBlock {
  Tensor in_place, own;
};
std::optional<LastBlock> lastBlock(const builders::LayerPlan& layer, const Tensor& in_place, const Tensor& blocks,
                                   std::size_t rows);
// Weights, or their gradients, on the tiles of their layers.
std::vector<Proposal> proposalsFor(const std::vector<LayerArrays>& layers, const builders::NetworkPlan& network);

// One network on tiles: its plan and variables. The record that the forward target returns are views of these; this is
// attached to the membranes, so that a backward pass in the same program reads them where they are.
struct NetworkOnTiles : Record {
  builders::NetworkPlan plan;
  builders::NetworkTensors tensors;
  std::vector<builders::LayerWeights> in_place;  // weights that are read in place
  // Of events with values: the slots that the sorted ones came from, unsigned, a history at the homes.
  Tensor event_slots;
};

// Adds variables and what fills them: operands, state and inputs; for a backward pass also what its forward pass left.
NetworkOnTiles bringNetwork(Lowering& lowering, const NetworkOperands& operands,
                            const builders::NetworkOptions& options, const BackwardCall* backward = nullptr);
// Membranes or second states of a layer after each step, [num_steps, batch, neurons].
Tensor afterSteps(const builders::NetworkPlan& plan, std::size_t layer, const Tensor& states);
// Weights that were read in place are now those of these operands, wherever they are.
void readWeightsOf(Lowering& lowering, const NetworkOperands& operands, NetworkOnTiles& network);

}  // namespace snnjax::executor::targets
