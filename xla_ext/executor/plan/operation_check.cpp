#include "executor/plan/operation_check.hpp"

#include <array>

namespace snnjax::executor {

void OperationCheck::need(bool holds, const std::string& expected) const {
  if (holds) return;
  std::string actual;
  for (const ValueId value : instruction_.inputs) actual += (actual.empty() ? "" : ", ") + type(value).toString();
  actual += " ->";
  for (const ValueId value : instruction_.outputs) actual += " " + type(value).toString();
  const bool own = instruction_.op == "custom_call" && !instruction_.texts.empty();
  const std::string& name = own ? instruction_.texts[0] : instruction_.op;
  throw Error(ErrorCode::kInvalidArgument, "compile: `" + name + "` of the plan must " + expected + ", got " + actual +
                                               ". Compile the function again." +
                                               (instruction_.where.empty() ? "" : " (" + instruction_.where + ")"));
}

void OperationCheck::needCounts(std::size_t inputs, std::size_t outputs, std::size_t lists) const {
  need(numInputs() == inputs, "have " + std::to_string(inputs) + " inputs");
  need(numOutputs() == outputs, "have " + std::to_string(outputs) + " outputs");
  need(instruction_.ints.size() >= lists, "have " + std::to_string(lists) + " lists of numbers");
}

Shape OperationCheck::dimensions(std::size_t k, std::size_t rank) const {
  Shape dimensions;
  for (const std::int64_t dimension : ints(k)) {
    const auto d = static_cast<std::size_t>(dimension);
    need(dimension >= 0 && d < rank && !holds(dimensions, d), "name different dimensions that there are");
    dimensions.push_back(d);
  }
  return dimensions;
}

std::size_t OperationCheck::number(std::size_t k, std::size_t limit) const {
  need(ints(k).size() == 1 && ints(k)[0] >= 0 && static_cast<std::size_t>(ints(k)[0]) < limit,
       "have a number below " + std::to_string(limit));
  return static_cast<std::size_t>(ints(k)[0]);
}

Shape OperationCheck::sizes(std::size_t k, std::size_t count) const {
  need(ints(k).size() == count, "have a number for each dimension");
  for (const std::int64_t each : ints(k)) need(each >= 0, "have numbers from 0 on");
  return {ints(k).begin(), ints(k).end()};
}

void OperationCheck::needOutput(const Shape& shape, std::size_t i) const {
  need(output(i).shape == shape, "give " + ArrayType{output(i).dtype, shape}.toString());
}

void OperationCheck::needSameDtype(const ArrayType& a, const ArrayType& b) const {
  need(a.dtype == b.dtype, "have arrays of one element type");
}

void OperationCheck::needIndex(const ArrayType& type) const {
  need(type.dtype == Dtype::kInt32 || type.dtype == Dtype::kUint32, "have indices of int32 or uint32");
}

void OperationCheck::needWithin(const Shape& part, const Shape& whole) const {
  need(part.size() == whole.size(), "keep the rank");
  for (std::size_t d = 0; d < part.size(); ++d) need(part[d] <= whole[d], "have parts not larger than the array");
}

void OperationCheck::needKind(std::size_t text) const {
  constexpr std::array kKinds = {"add", "multiply", "maximum", "minimum", "and", "or", "xor"};
  need(instruction_.texts.size() > text &&
           std::find(kKinds.begin(), kKinds.end(), instruction_.texts[text]) != kKinds.end(),
       "have a kind of reduction");
}

}  // namespace snnjax::executor
