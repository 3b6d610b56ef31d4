#include "executor/targets/target_check.hpp"

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

struct Dtypes {
  std::string words;
  std::vector<Dtype> all;  // empty: any
};

Dtypes dtypesOf(schema::Numbers numbers) {
  using enum schema::Numbers;
  switch (numbers) {
    case kFloats:
    case kSums:
    case kValues: return {"float16 or float32", {Dtype::kFloat16, Dtype::kFloat32}};
    case kGivenIds:
    case kIds: return {"uint16 or int32", {Dtype::kUint16, Dtype::kInt32}};
    case kCounts: return {"int32", {Dtype::kInt32}};
    default: return {"any elements", {}};  // inputs
  }
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

void TargetCheck::need(const ArrayType& type, schema::Numbers numbers, const Shape& sizes) const {
  Shape shape = {1};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  const std::string text = ArrayType{type.dtype, shape}.toString();
  const Dtypes dtypes = dtypesOf(numbers);
  op_.need(dtypes.all.empty() || std::ranges::find(dtypes.all, type.dtype) != dtypes.all.end(),
           "have " + text + " of " + dtypes.words);
  op_.need(type.shape == shape, "have " + text + " for " + type.toString());
}

}  // namespace snnjax::executor::targets
