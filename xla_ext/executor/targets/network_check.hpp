// The operands of a call of `lif_network`, forward or backward, checked; and checks of what else depends on their
// sizes.
#pragma once

#include "executor/targets/network.hpp"
#include "executor/targets/target_check.hpp"

namespace snnjax::executor::targets {

class NetworkCheck {
 public:
  // Throws unless the operands fit each other. Both outlive it.
  NetworkCheck(const OperationCheck& op, const NetworkOperands& operands);

  const OperationCheck& op() const { return check_.op(); }
  const NetworkOperands& operands() const { return operands_; }
  const Shape& sizesOfInputs() const { return inputs_; }  // [num_steps, batch, inputs or slots]
  std::size_t inputs(std::size_t l) const { return widths_[l]; }
  std::size_t neurons(std::size_t l) const { return widths_[l + 1]; }

  void need(ValueId value, Numbers numbers, const Shape& sizes) const { check_.need(op().type(value), numbers, sizes); }
  // [num_steps, batch, sizes...] and [batch, sizes...]
  void needTimed(ValueId value, Numbers numbers, Shape sizes) const;
  void needSequences(ValueId value, Numbers numbers, Shape sizes) const;
  // The next values are the states of all layers, or their cotangents.
  void needStates(Taker& values) const;

 private:
  void checkInputs();
  void checkLayer(std::size_t l);

  TargetCheck check_;
  const NetworkOperands& operands_;
  Shape inputs_, widths_;
};

}  // namespace snnjax::executor::targets
