// The shapes and types of a call of `lif_network`, forward or backward, checked against its table.
#pragma once

#include "executor/targets/network.hpp"
#include "executor/targets/target_check.hpp"

namespace snnjax::executor::targets {

class NetworkCheck {
 public:
  // Throws unless there are inputs and neurons. Both outlive it.
  NetworkCheck(const OperationCheck& op, const NetworkOperands& operands);

  std::size_t neurons(std::size_t l) const { return widths_[l + 1]; }

  // Throws unless the arrays of a root, which are there as the table asks for, have its shapes and types.
  template <typename Root>
  void needAll(const Root& root) const {
    for (std::size_t number = 0; number < Root::kLeaves.size(); ++number) {
      const schema::Leaf& leaf = Root::kLeaves[number];
      for (std::size_t l = 0; l < (leaf.is_layered ? operands_.options.size() : 1); ++l) {
        const Value& value = root.at(number, l);
        if (value) need(leaf, leaf.is_layered ? l : operands_.options.size(), *value);
      }
    }
  }
  // Throws unless the record of a layer has its lists, if it fires any, and second states only if it has them.
  void needLists(std::size_t l, const lif_network::LayerOnTiles<Value>& record) const;
  // The same as needAll for the results of the backward pass.
  void needCotangents(const BackwardCall& call) const;

 private:
  void need(const schema::Leaf& leaf, std::size_t l, ValueId value) const;
  std::size_t lengthOf(schema::Axis axis, std::size_t l) const;

  TargetCheck check_;
  const NetworkOperands& operands_;
  Shape inputs_;  // [num_steps, batch, inputs or slots]
  Shape widths_;  // of the inputs, of the neurons of each layer, and at last of the readout
};

}  // namespace snnjax::executor::targets
