#include "executor/targets/target_check.hpp"

#include <builders/network_plan.hpp>

namespace snnjax::executor::targets {
namespace {

constexpr std::size_t kMaxElements = (std::size_t{1} << 31) - 1;

// Of the longest row of sizes: none is hidden by a size of 0.
bool isCountable(const Shape& shape) {
  std::size_t elements = 1;
  for (const std::size_t size : shape) {
    const std::size_t counted = std::max<std::size_t>(size, 1);
    if (counted > kMaxElements / elements) return false;
    elements *= counted;
  }
  return true;
}

bool holds(Numbers numbers, Dtype dtype) {
  switch (numbers) {
    case Numbers::kFloats: return dtype == Dtype::kFloat16 || dtype == Dtype::kFloat32;
    case Numbers::kIds: return dtype == Dtype::kUint16 || dtype == Dtype::kInt32;
    case Numbers::kCounts: return dtype == Dtype::kInt32;
    case Numbers::kAny: return true;
  }
  return false;
}

std::string named(Numbers numbers) {
  switch (numbers) {
    case Numbers::kFloats: return "float16 or float32";
    case Numbers::kIds: return "uint16 or int32";
    case Numbers::kCounts: return "int32";
    case Numbers::kAny: break;
  }
  return "any elements";
}

Shape ofOneGroup(const Shape& sizes) {
  Shape shape = {1};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  return shape;
}

}  // namespace

TargetCheck::TargetCheck(const OperationCheck& op) : op_(op) {
  const auto check = [&](const ArrayType& type) {
    op_.need(!type.shape.empty() && type.shape[0] == 1, "have arrays of one group");
    op_.need(isCountable(type.shape), "have arrays of fewer than 2^31 elements");
  };
  for (std::size_t i = 0; i < op_.numInputs(); ++i) check(op_.input(i));
  for (std::size_t i = 0; i < op_.numOutputs(); ++i) check(op_.output(i));
}

Shape TargetCheck::sizes(const ArrayType& type, std::size_t rank) const {
  op_.need(type.shape.size() == rank + 1, "have an array of " + std::to_string(rank) + " axes besides the group's");
  return {type.shape.begin() + 1, type.shape.end()};
}

void TargetCheck::need(const ArrayType& type, Numbers numbers, const Shape& sizes) const {
  const Shape shape = ofOneGroup(sizes);
  const std::string text = ArrayType{type.dtype, shape}.toString();
  op_.need(holds(numbers, type.dtype), "have " + text + " of " + named(numbers));
  op_.need(type.shape == shape, "have " + text + " for " + type.toString());
}

void TargetCheck::needConstant(const ArrayType& type, std::size_t neurons) const {
  const bool is_one = type.shape == Shape{1, 1};
  need(type, Numbers::kFloats, {is_one ? 1 : neurons});
}

void TargetCheck::needNumber(const char* attribute, unsigned limit) const {
  op_.need(number(op_.instruction(), attribute) < limit,
           "have the attribute `" + std::string(attribute) + "` below " + std::to_string(limit));
}

void TargetCheck::needSurrogate() const {
  needNumber("surrogate", Surrogate::StraightThrough + 1);
  real(op_.instruction(), "slope");
}

}  // namespace snnjax::executor::targets
