// Checks of operations that add up: reductions, products, collectives.
#include "executor/plan/operation_check.hpp"

namespace snnjax::executor {
namespace {

void checkReduce(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needKind(0);
  op.needSameDtype(op.input(0), op.output());
  op.needOutput(without(op.input(0).shape, op.dimensions(0, op.input(0).shape.size())));
}

void checkArgReduce(const OperationCheck& op) {
  op.needCounts(1, 2, 1);
  const Shape& shape = op.input(0).shape;
  const Shape result = without(shape, {op.number(0, shape.size())});
  op.needOutput(result, 0);
  op.needOutput(result, 1);
  op.needSameDtype(op.input(0), op.output(0));
  op.need(op.output(1).dtype == Dtype::kInt32, "give indices of int32");
  const auto& texts = op.instruction().texts;
  op.need(!texts.empty() && (texts[0] == "maximum" || texts[0] == "minimum"), "seek the maximum or the minimum");
}

void checkCumulative(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needKind(0);
  op.need(op.input(0) == op.output(), "keep the type");
  op.need(op.ints(0).size() == 2 && op.ints(0)[0] >= 0 &&
              static_cast<std::size_t>(op.ints(0)[0]) < op.input(0).shape.size(),
          "name a dimension and a direction");
}

void checkDot(const OperationCheck& op) {
  op.needCounts(2, 1, 4);
  const Shape &a = op.input(0).shape, &b = op.input(1).shape;
  const Shape a_batch = op.dimensions(0, a.size()), b_batch = op.dimensions(1, b.size());
  const Shape a_sum = op.dimensions(2, a.size()), b_sum = op.dimensions(3, b.size());
  op.need(a_batch.size() == b_batch.size() && a_sum.size() == b_sum.size(), "pair the dimensions of its operands");
  Shape result, a_taken = a_batch, b_taken = b_batch;
  for (std::size_t i = 0; i < a_batch.size(); ++i) {
    op.need(a[a_batch[i]] == b[b_batch[i]], "pair dimensions of one size");
    result.push_back(a[a_batch[i]]);
  }
  for (std::size_t i = 0; i < a_sum.size(); ++i) {
    op.need(a[a_sum[i]] == b[b_sum[i]] && !holds(a_batch, a_sum[i]) && !holds(b_batch, b_sum[i]),
            "pair other dimensions of one size");
    a_taken.push_back(a_sum[i]);
    b_taken.push_back(b_sum[i]);
  }
  for (const std::size_t size : without(a, a_taken)) result.push_back(size);
  for (const std::size_t size : without(b, b_taken)) result.push_back(size);
  op.needOutput(result);
  const Dtype dtype = op.input(0).dtype;
  op.needSameDtype(op.input(0), op.input(1));
  op.need(op.output().dtype == dtype || op.output().dtype == Dtype::kFloat32, "give its operands' type or float32");
}

// Groups of partitions, flat in list 0; list 1 says how many and of which size. The size of a group.
std::size_t checkGroups(const OperationCheck& op, std::size_t lists) {
  op.needCounts(1, 1, lists);
  op.needSameDtype(op.input(0), op.output());
  op.need(op.ints(1).size() == 2, "say how many groups there are");
  const Shape form = op.sizes(1, 2);
  op.need(form[0] > 0 && op.ints(0).size() % form[0] == 0 && op.ints(0).size() / form[0] == form[1],
          "have as many partitions as its groups");
  const Shape members = op.dimensions(0, op.numPartitions());
  op.need(members.size() == op.numPartitions(), "have each partition in a group");
  return form[1];
}

void checkAllReduce(const OperationCheck& op) {
  checkGroups(op, 2);
  op.needKind(0);
  op.needOutput(op.input(0).shape);
}

void checkAllGather(const OperationCheck& op) {
  const std::size_t size = checkGroups(op, 3);
  Shape shape = op.input(0).shape;
  shape[op.number(2, shape.size())] *= size;
  op.needOutput(shape);
}

void checkReduceScatter(const OperationCheck& op) {
  const std::size_t size = checkGroups(op, 3);
  op.needKind(0);
  Shape shape = op.output().shape;
  op.need(shape.size() == op.input(0).shape.size(), "keep the rank");
  shape[op.number(2, shape.size())] *= size;
  op.need(op.input(0).shape == shape, "give each partition of a group a part");
}

void checkAllToAll(const OperationCheck& op) {
  const std::size_t size = checkGroups(op, 3);
  op.need(op.ints(2).size() == 2, "name two dimensions");
  Shape shape = op.input(0).shape;
  const Shape named = op.sizes(2, 2);
  op.need(named[0] < shape.size() && named[1] < shape.size(), "name dimensions that there are");
  op.need(shape[named[0]] % size == 0, "split into as many parts as a group has partitions");
  shape[named[0]] /= size;
  shape[named[1]] *= size;
  op.needOutput(shape);
}

void checkPermute(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.need(op.input(0) == op.output(), "keep the type");
  op.need(op.ints(0).size() % 2 == 0, "have pairs of partitions");
  std::vector<bool> sources(op.numPartitions()), targets(op.numPartitions());
  for (std::size_t i = 0; i < op.ints(0).size(); ++i) {
    std::vector<bool>& seen = i % 2 == 0 ? sources : targets;
    const auto partition = static_cast<std::size_t>(op.ints(0)[i]);
    op.need(op.ints(0)[i] >= 0 && partition < seen.size() && !seen[partition], "name each partition once");
    seen[partition] = true;
  }
}

}  // namespace

std::vector<CheckOf> checksOfReductions() {
  return {{"reduce", checkReduce},
          {"arg_reduce", checkArgReduce},
          {"cumulative", checkCumulative},
          {"dot", checkDot},
          {"all_reduce", checkAllReduce},
          {"all_gather", checkAllGather},
          {"reduce_scatter", checkReduceScatter},
          {"all_to_all", checkAllToAll},
          {"collective_permute", checkPermute}};
}

}  // namespace snnjax::executor
