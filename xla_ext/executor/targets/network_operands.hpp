// The operands of `lif_network` as the targets get them: the leaves of `Operands` in
// snnjax/ops/_lif_network/records.py, in order, and the attributes of snnjax/ops/_lif_network/kernel.py.
#pragma once

#include <builders/lif_network.hpp>
#include <optional>
#include <vector>

#include "executor/lowering.hpp"

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
  bool records_spikes;
};

struct LayerOperands {
  ValueId weights, decay, gain, first_v;
  std::optional<ValueId> bias, recurrent, threshold, second_threshold, first_spikes;
};

// Of one call; the read-out, if there is one, is the last layer.
struct NetworkOperands {
  NetworkOperands(const Lowering& lowering, const Instruction& instruction, Taker& taker);

  bool recordSpikes() const;  // whether those of any layer are asked for

  std::vector<LayerFields> fields;  // not of the read-out
  bool has_lists, has_readout;
  std::optional<ValueId> ids;
  ValueId inputs;  // the values of lists, or dense inputs
  std::vector<LayerOperands> layers;
  std::optional<ValueId> lengths;
};

// What a builder needs to know of it. With a record, spikes before the first step count even where they are known to be
// 0: they may get a gradient.
builders::NetworkOptions optionsOf(const Lowering& lowering, const Instruction& instruction,
                                   const NetworkOperands& operands, bool keeps_record);

}  // namespace snnjax::executor::targets
