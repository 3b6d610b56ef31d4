// One call of `lif_network`, and its placement on tiles. Its operands as the targets get them: the leaves of
// snnjax/ops/_lif_network/records.py, in order, and the attributes of snnjax/ops/_lif_network/kernel.py.
#pragma once

#include <array>
#include <builders/lif_network.hpp>
#include <optional>
#include <vector>

#include "executor/operations.hpp"

namespace snnjax::executor::targets {

// The next operand or result of an instruction.
class Taker {
 public:
  explicit Taker(const std::vector<ValueId>& values) : values_(&values) {}
  ValueId next();
  std::optional<ValueId> nextIf(bool is_there);
  bool done() const { return taken_ == values_->size(); }

 private:
  const std::vector<ValueId>* values_;
  std::size_t taken_ = 0;
};

// The static part of a layer, in the order of the attribute `layers`.
struct LayerFields {
  bool has_bias, is_recurrent;
  unsigned reset;
  bool detach_reset;
  unsigned surrogate;
  std::optional<unsigned> capacity;
  unsigned second_mask;  // which constants of a second state there are, a bit each; 0: no second state
  bool needs_w, records_current;
  bool records_spikes;

  bool hasSecond() const { return second_mask != 0; }
  bool hasSecond(unsigned constant) const { return (second_mask >> constant & 1U) != 0; }
};

struct LayerOperands {
  ValueId weights, decay, gain, first_v;
  std::optional<ValueId> bias, recurrent, threshold, second_threshold, first_w, first_spikes;
  std::array<std::optional<ValueId>, kSecondConstants> second;
};

// Of one call; the read-out, if there is one, is the last layer.
struct NetworkOperands {
  NetworkOperands(const Instruction& instruction, Taker& taker);

  bool recordSpikes() const;  // whether those of any layer are asked for

  std::vector<LayerFields> fields;  // not of the read-out
  bool has_lists, has_readout;
  std::optional<ValueId> ids;
  ValueId inputs;  // the values of lists, or dense inputs
  std::vector<LayerOperands> layers;
  std::optional<ValueId> lengths;
};

// What a builder needs to know of it. With a record, spikes before the first step count even where they are known to be
// 0: they may get a gradient. Before values are known, inputs are events with values.
builders::NetworkOptions optionsOf(const Plan& plan, const Instruction& instruction, const NetworkOperands& operands,
                                   bool keeps_record);
builders::NetworkOptions optionsOf(const Lowering& lowering, const Instruction& instruction,
                                   const NetworkOperands& operands, bool keeps_record);
// Its placement on the tiles, as far as weights go.
builders::NetworkPlan planOf(const Plan& plan, const Instruction& instruction, const NetworkOperands& operands,
                             bool keeps_record, const poplar::Target& target);
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
