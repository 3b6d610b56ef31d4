// One call of `lif_network`, and its placement on tiles. Arrays and static values have the names of the table in
// snnjax/ops/_lif_network/records.py.
#pragma once

#include <array>
#include <builders/lif_network.hpp>

#include "executor/operations.hpp"
#include "executor/targets/call.hpp"

namespace snnjax::executor::targets {

// The static part of a layer.
struct LayerFields {
  bool is_recurrent;
  unsigned reset;
  bool detach_reset;
  unsigned surrogate;
  float slope;
  std::optional<unsigned> capacity;
  bool has_second, raises_threshold;
  bool keeps_second;  // the second states for the backward pass
};

struct LayerOperands {
  ValueId weights, decay, gain, first_v;
  Value bias, recurrent, threshold, second_threshold, first_w, first_spikes;
  std::array<Value, kSecondConstants> second;
};

// The constants of a second state, or their cotangents, by SecondConstant.
std::array<Value, kSecondConstants> secondOf(const lif_network::SecondState<Value>& second);

// Of one call; the read-out, if there is one, is the last layer.
struct NetworkOperands {
  std::vector<LayerFields> fields;  // not of the read-out
  bool has_lists, has_readout;
  Value ids;
  ValueId inputs;  // the values of lists, or dense inputs
  std::vector<LayerOperands> layers;
  Value lengths;
};

// One call of the forward pass.
struct ForwardCall {
  explicit ForwardCall(const Instruction& instruction);

  const Instruction& instruction;
  std::vector<lif_network::LayerNumbers> layers;
  lif_network::Operands<Value> operands;
  lif_network::ForwardResults<Value> results;

  bool keepsRecord() const;  // of the run: for the backward pass, or for results
  // Throws unless the arrays are there that the table asks for.
  NetworkOperands network() const;
};

// And of the backward pass.
struct BackwardCall {
  explicit BackwardCall(const Instruction& instruction);

  const Instruction& instruction;
  std::vector<lif_network::LayerNumbers> layers;
  lif_network::BackwardArguments<Value> arguments;
  lif_network::BackwardResults<Value> results;

  NetworkOperands network() const;
};

// What a builder needs to know of it. With a record, spikes before the first step count even where they are known to be
// 0: they may get a gradient. Before values are known, inputs are events with values.
builders::NetworkOptions optionsOf(const Plan& plan, const NetworkOperands& operands, bool keeps_record);
builders::NetworkOptions optionsOf(const Lowering& lowering, const NetworkOperands& operands, bool keeps_record);
// Its placement on the tiles, as far as weights go.
builders::NetworkPlan planOf(const Plan& plan, const NetworkOperands& operands, bool keeps_record,
                             const poplar::Target& target);
// Weights on the tiles of their layers.
std::vector<Proposal> proposalsFor(const NetworkOperands& operands, const builders::NetworkPlan& network);

// One network on tiles: its plan and variables. What its backward pass needs stays there; the record that the forward
// target returns to the program says so (kLeftOnTiles), and this is attached to it.
struct NetworkOnTiles : Record {
  builders::NetworkPlan plan;
  builders::NetworkTensors tensors;
  std::vector<builders::LayerWeights> in_place;  // weights that are read in place
  // Of events: the slots that the sorted ones came from, unsigned [batch * num_steps * capacity] at the homes.
  poplar::Tensor event_slots;
};

// A history [batch * num_steps * width] at the homes of a list, seen as [num_steps, batch, width].
poplar::Tensor inTime(const builders::NetworkPlan& plan, const builders::ListPlan& list, const poplar::Tensor& history,
                      std::size_t width);

// Adds variables and what fills them: operands, state and inputs.
NetworkOnTiles bringNetwork(Lowering& lowering, const NetworkOperands& operands,
                            const builders::NetworkOptions& options);
// Weights that were read in place are now those of these operands, wherever they are.
void readWeightsOf(Lowering& lowering, const NetworkOperands& operands, NetworkOnTiles& network);

}  // namespace snnjax::executor::targets
