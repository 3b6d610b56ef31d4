// The types and numbers of each operation: one function for those that are alike.
#include <unordered_map>

#include "executor/plan/check_plan.hpp"
#include "executor/plan/elementwise_program.hpp"
#include "executor/plan/operation_check.hpp"

namespace snnjax::executor {
namespace {

void checkElementwise(const OperationCheck& op) {
  op.need(op.numOutputs() > 0, "have an output");
  for (std::size_t i = 0; i < op.numOutputs(); ++i) {
    if (op.output(i).numElements() != 1) op.needOutput(op.output().shape, i);
    op.need(op.output(i).numElements() == op.output().numElements(), "have outputs of one size");
  }
  for (std::size_t i = 0; i < op.numInputs(); ++i) {
    op.need(op.input(i).shape == op.output().shape || op.input(i).numElements() == 1,
            "have inputs of the outputs' shape or of one element");
  }
  std::vector<Dtype> inputs, outputs;
  for (std::size_t i = 0; i < op.numInputs(); ++i) inputs.push_back(op.input(i).dtype);
  for (std::size_t i = 0; i < op.numOutputs(); ++i) outputs.push_back(op.output(i).dtype);
  const std::string wrong = ElementwiseProgram::problem(op.instruction(), inputs, outputs);
  op.need(wrong.empty(), wrong);
}

void checkBroadcast(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needSameDtype(op.input(0), op.output());
  const Shape to = op.dimensions(0, op.output().shape.size());
  op.need(to.size() == op.input(0).shape.size(), "place each dimension");
  for (std::size_t d = 0; d < to.size(); ++d) {
    const std::size_t size = op.input(0).shape[d];
    op.need(size == 1 || size == op.output().shape[to[d]], "keep sizes but those of 1");
  }
}

void checkReshape(const OperationCheck& op) {
  op.needCounts(1, 1, 0);
  op.needSameDtype(op.input(0), op.output());
  op.need(op.input(0).numElements() == op.output().numElements(), "keep the number of elements");
  if (op.instruction().op == "identity") op.needOutput(op.input(0).shape);
}

void checkBitcast(const OperationCheck& op) {
  op.needCounts(1, 1, 0);
  op.needOutput(op.input(0).shape);
  op.need(numBytes(op.input(0).dtype) == numBytes(op.output().dtype), "keep the size of elements");
}

void checkTranspose(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needSameDtype(op.input(0), op.output());
  const Shape& shape = op.input(0).shape;
  const Shape permutation = op.dimensions(0, shape.size());
  op.need(permutation.size() == shape.size(), "place each dimension");
  Shape result;
  for (const std::size_t d : permutation) result.push_back(shape[d]);
  op.needOutput(result);
}

void checkSlice(const OperationCheck& op) {
  op.needCounts(1, 1, 3);
  op.needSameDtype(op.input(0), op.output());
  const Shape& shape = op.input(0).shape;
  const Shape first = op.sizes(0, shape.size()), last = op.sizes(1, shape.size()), step = op.sizes(2, shape.size());
  Shape result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    op.need(first[d] <= last[d] && last[d] <= shape[d] && step[d] > 0, "stay inside of the array");
    result.push_back((last[d] - first[d] + step[d] - 1) / step[d]);
  }
  op.needOutput(result);
}

void checkReverse(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needSameDtype(op.input(0), op.output());
  op.dimensions(0, op.input(0).shape.size());
  op.needOutput(op.input(0).shape);
}

void checkConcatenate(const OperationCheck& op) {
  op.need(op.numInputs() > 0 && op.numOutputs() == 1 && op.instruction().ints.size() == 1, "have inputs and a result");
  const std::size_t dimension = op.number(0, op.output().shape.size());
  Shape result = op.output().shape;
  result[dimension] = 0;
  for (std::size_t i = 0; i < op.numInputs(); ++i) {
    op.needSameDtype(op.input(i), op.output());
    op.need(op.input(i).shape.size() == result.size(), "have inputs of one rank");
    Shape expected = result;
    expected[dimension] = op.input(i).shape[dimension];
    op.need(op.input(i).shape == expected, "have inputs that agree in the other dimensions");
    result[dimension] += expected[dimension];
  }
  op.needOutput(result);
}

void checkPad(const OperationCheck& op) {
  op.needCounts(2, 1, 3);
  op.needSameDtype(op.input(0), op.output());
  op.needSameDtype(op.input(1), op.output());
  op.need(op.input(1).numElements() == 1, "pad by one element");
  const Shape& shape = op.input(0).shape;
  const Shape inside = op.sizes(2, shape.size());
  op.need(op.ints(0).size() == shape.size() && op.ints(1).size() == shape.size(), "pad each dimension");
  op.need(op.output().shape.size() == shape.size(), "keep the rank");
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t low = op.ints(0)[d], high = op.ints(1)[d], between = op.ints(2)[d];
    for (const std::int64_t each : {low, high, between}) {
      op.need(-kMost / 4 < each && each < kMost / 4, "pad by numbers below 2^38");
    }
    const auto size = static_cast<std::int64_t>(shape[d]);
    op.need(size == 0 || between < kMost / size, "pad by numbers below 2^38");
    const std::int64_t padded = size + std::max<std::int64_t>(size - 1, 0) * between + low + high;
    op.need(padded >= 0 && static_cast<std::size_t>(padded) == op.output().shape[d], "give the padded size");
  }
}

void checkIota(const OperationCheck& op) {
  op.needCounts(0, 1, 1);
  op.number(0, op.output().shape.size());
}

void checkSort(const OperationCheck& op) {
  op.need(op.numInputs() > 0, "have an input");
  op.needCounts(op.numInputs(), op.numInputs(), 1);
  op.need(op.ints(0).size() == 2 && op.ints(0)[0] >= 0 &&
              static_cast<std::size_t>(op.ints(0)[0]) < op.input(0).shape.size(),
          "name a dimension");
  for (std::size_t i = 0; i < op.numInputs(); ++i) {
    op.need(op.input(i).shape == op.input(0).shape && op.output(i) == op.input(i), "have arrays of one shape");
  }
  const auto& keys = op.instruction().texts;
  op.need(!keys.empty() && keys.size() <= op.numInputs(), "have a key and an array for each");
  for (const std::string& key : keys) op.need(key == "ascending" || key == "descending", "go up or down");
}

void checkTopK(const OperationCheck& op) {
  op.needCounts(1, 2, 1);
  op.need(!op.input(0).shape.empty(), "have a dimension to choose from");
  Shape shape = op.input(0).shape;
  shape.back() = op.number(0, shape.back() + 1);
  op.needOutput(shape, 0);
  op.needOutput(shape, 1);
  op.needSameDtype(op.input(0), op.output(0));
  op.need(op.output(1).dtype == Dtype::kInt32, "give indices of int32");
}

void checkThreefry(const OperationCheck& op) {
  op.needCounts(4, 2, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    op.need(op.input(i).dtype == Dtype::kUint32, "work on uint32");
    op.need(op.input(i).shape == op.output().shape || (i < 2 && op.input(i).numElements() == 1),
            "have counters of the outputs' shape and such keys or single ones");
  }
  for (std::size_t i = 0; i < 2; ++i) {
    op.need(op.output(i).dtype == Dtype::kUint32, "give uint32");
    op.needOutput(op.input(2).shape, i);
  }
}

void checkCustomCall(const OperationCheck& op) { op.need(!op.instruction().texts.empty(), "have a target"); }

void checkCallback(const OperationCheck& op) {
  op.needCounts(op.numInputs(), 0, 1);
  op.need(op.ints(0).size() == 1, "have a number");
}

void checkPartitionId(const OperationCheck& op) {
  op.needCounts(0, 1, 0);
  op.need(op.output().dtype == Dtype::kUint32 && op.output().numElements() == 1, "give a uint32");
}

// Lowerings divide what there is among the tiles: without elements there is nothing to divide. Only vectors of indices
// may have none, where a window lies at the beginning.
void checkElements(const OperationCheck& op) {
  const std::string& name = op.instruction().op;
  if (name == "custom_call" || name == "callback") return;
  const bool has_indices = name == "gather" || name == "scatter";
  for (std::size_t i = 0; i < op.numInputs(); ++i) {
    op.need(op.input(i).numElements() > 0 || (has_indices && i == 1), "have elements");
  }
  for (std::size_t i = 0; i < op.numOutputs(); ++i) op.need(op.output(i).numElements() > 0, "have elements");
}

using Check = void (*)(const OperationCheck&);

const std::unordered_map<std::string, Check>& checks() {
  static const std::unordered_map<std::string, Check> kChecks = [] {
    std::unordered_map<std::string, Check> all = {
        {"elementwise", checkElementwise},
        {"broadcast_in_dim", checkBroadcast},
        {"reshape", checkReshape},
        {"identity", checkReshape},
        {"bitcast", checkBitcast},
        {"transpose", checkTranspose},
        {"slice", checkSlice},
        {"reverse", checkReverse},
        {"concatenate", checkConcatenate},
        {"pad", checkPad},
        {"iota", checkIota},
        {"sort", checkSort},
        {"top_k", checkTopK},
        {"threefry", checkThreefry},
        {"custom_call", checkCustomCall},
        {"callback", checkCallback},
        {"partition_id", checkPartitionId},
    };
    for (const auto& [name, check] : checksOfIndexing()) all.emplace(name, check);
    for (const auto& [name, check] : checksOfReductions()) all.emplace(name, check);
    for (const auto& [name, check] : checksOfControlFlow()) all.emplace(name, check);
    return all;
  }();
  return kChecks;
}

}  // namespace

void checkInstruction(const Plan& plan, const Instruction& instruction) {
  const OperationCheck op(plan, instruction);
  const auto found = checks().find(instruction.op);
  if (found == checks().end()) {
    throw Error(ErrorCode::kUnimplemented, "compile: `plan` must hold operations of its README, got \"" +
                                               instruction.op + "\". Use an snnjax of one version throughout.");
  }
  checkElements(op);
  found->second(op);
}

}  // namespace snnjax::executor
