// Shared by the checks of operations: the parts of one instruction, which may be missing.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>
#include "builders/error.hpp"

#include "executor/plan/plan.hpp"

namespace snnjax::executor {

using Shape = std::vector<std::size_t>;

class OperationCheck {
 public:
  OperationCheck(const Plan& plan, const Instruction& instruction) : plan_(plan), instruction_(instruction) {}

  const Plan& plan() const { return plan_; }
  const Instruction& instruction() const { return instruction_; }
  std::size_t numInputs() const { return instruction_.inputs.size(); }
  std::size_t numOutputs() const { return instruction_.outputs.size(); }
  const ArrayType& input(std::size_t i) const { return plan_.types[instruction_.inputs[i]]; }
  const ArrayType& output(std::size_t i = 0) const { return plan_.types[instruction_.outputs[i]]; }
  const ArrayType& type(ValueId value) const { return plan_.types[value]; }
  std::size_t numPartitions() const { return plan_.num_partitions; }

  // "compile: `reduce` must <expected>, got f32[3] -> f32[2]. ..."
  void need(bool holds, const std::string& expected) const;

  void needCounts(std::size_t inputs, std::size_t outputs, std::size_t lists) const;
  // List `k` of ints.
  const std::vector<std::int64_t>& ints(std::size_t k) const { return instruction_.ints[k]; }
  // List `k` as different dimensions below `rank`.
  Shape dimensions(std::size_t k, std::size_t rank) const;
  // The one number of list `k`, below `limit`.
  std::size_t number(std::size_t k, std::size_t limit) const;
  // List `k` of `count` numbers from 0 on.
  Shape sizes(std::size_t k, std::size_t count) const;
  void needOutput(const Shape& shape, std::size_t i = 0) const;
  void needSameDtype(const ArrayType& a, const ArrayType& b) const;
  void needIndex(const ArrayType& type) const;  // int32 or uint32
  void needWithin(const Shape& part, const Shape& whole) const;
  void needKind(std::size_t text) const;
  // What numbers are ordered by: float32, float16, int32 or uint32.
  void needNumbers(const ArrayType& type) const;

 private:
  const Plan& plan_;
  const Instruction& instruction_;
};

inline bool holds(const Shape& dimensions, std::size_t dimension) {
  return std::find(dimensions.begin(), dimensions.end(), dimension) != dimensions.end();
}

// The sizes of a shape without some dimensions.
inline Shape without(const Shape& shape, const Shape& dimensions) {
  Shape rest;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!holds(dimensions, d)) rest.push_back(shape[d]);
  }
  return rest;
}

}  // namespace snnjax::executor
