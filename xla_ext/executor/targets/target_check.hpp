// Shared by the checks of own ops when a plan is read: arrays, each with a leading axis of one group, and attributes.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "executor/plan/operation_check.hpp"
#include "executor/targets/operands.hpp"

namespace snnjax::executor::targets {

// Numbers of these arrays. Ids are uint16 or int32, counts int32, floats float16 or float32, whatever the weights are.
enum class Numbers { kFloats, kIds, kCounts, kAny };

class TargetCheck {
 public:
  // Any array has one group and fewer than 2^31 elements: codelets count in 32 bits.
  explicit TargetCheck(const OperationCheck& op);

  const OperationCheck& op() const { return op_; }
  void needCounts(std::size_t inputs, std::size_t outputs) const { op_.needCounts(inputs, outputs, 0); }

  // The sizes of an array of so many axes besides that of the group.
  Shape sizes(const ArrayType& type, std::size_t rank) const;
  // Throws unless an array has these sizes.
  void need(const ArrayType& type, Numbers numbers, const Shape& sizes) const;
  // One number, or one a neuron.
  void needConstant(const ArrayType& type, std::size_t neurons) const;

  // An attribute that counts from 0 and stays below `limit`: the numbers of an enumeration.
  void needNumber(const char* attribute, unsigned limit) const;
  void needSurrogate() const;

 private:
  const OperationCheck& op_;
};

}  // namespace snnjax::executor::targets
