// Sort and top-k: keys become unsigned numbers of the same order, positions are sorted by them, and all arrays are
// permuted accordingly.
#include <numeric>
#include <poputil/VertexTemplates.hpp>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {
namespace {

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
  for (std::size_t i = 0; i < keys.size(); ++i) {
    op.need(keys[i] == "ascending" || keys[i] == "descending", "go up or down");
    op.needNumbers(op.input(i));
  }
}

void checkTopK(const OperationCheck& op) {
  op.needCounts(1, 2, 1);
  op.need(!op.input(0).shape.empty(), "have a dimension to choose from");
  op.needNumbers(op.input(0));
  Shape shape = op.input(0).shape;
  shape.back() = op.number(0, shape.back() + 1);
  op.needOutput(shape, 0);
  op.needOutput(shape, 1);
  op.needSameDtype(op.input(0), op.output(0));
  op.need(op.output(1).dtype == Dtype::kInt32, "give indices of int32");
}

using poputil::templateVertex;

struct Key {
  poplar::Tensor lines;  // {lines, length}
  bool descending;
  bool total = false;  // the order of IEEE 754, in which zeros of both signs differ
};

class Sorting {
 public:
  Sorting(Lowering& lowering, std::size_t lines, std::size_t length)
      : lowering_(lowering),
        length_(length),
        spread_(length >= kLongLine ? spreadLines(lowering, lines, 1) : spreadLines(lowering, lines)) {}

  // The places of the elements of each line, sorted, counted from the first line of the tile.
  void sort(const std::vector<Key>& keys) {
    const poplar::Tensor bits = makeLines(lowering_, poplar::UNSIGNED_INT, spread_, length_ * keys.size());
    numbers_ = makeLines(lowering_, poplar::UNSIGNED_INT, spread_, length_);
    const poplar::Tensor scratch = makeLines(lowering_, poplar::UNSIGNED_INT, spread_, length_);
    ComputeStep order(lowering_, "keys");
    for (const LinesOfTile& lines : spread_) addKeys(order, lines, keys, bits);
    order.execute();
    // Where a tile has fewer lines than workers, all workers first sort parts of long lines.
    const std::size_t parts = length_ >= kLongLine ? workers() / std::min(workers(), spread_[0].count) : 1;
    if (parts > 1) addSort(bits, scratch, keys.size(), parts, 1);
    addSort(bits, scratch, keys.size(), 1, parts > 1 ? ceilDivide(length_, parts) : 1);
  }

  // to[line, i] = from[line, the place of the i-th].
  void take(const poplar::Tensor& from, const poplar::Tensor& to) const {
    const poplar::Type type = bitsOf(from.elementType());
    const std::size_t count = to.dim(1);
    ComputeStep step(lowering_, "take");
    for (const LinesOfTile& lines : spread_) {
      step.add(templateVertex("snnjax::TakeNumbers", type), lines.tile,
               {{"in", asBits(from).slice(lines.first, lines.first + lines.count).flatten()},
                {"numbers", numbersOf(lines)},
                {"out", asBits(to).slice(lines.first, lines.first + lines.count).flatten()},
                {"rows", asUnsigned(lines.count)},
                {"length", asUnsigned(length_)},
                {"count", asUnsigned(count)}});
    }
    step.execute();
  }

 private:
  static constexpr std::size_t kLongLine = 64;

  std::size_t workers() const { return lowering_.graph().getTarget().getNumWorkerContexts(); }

  poplar::Tensor numbersOf(const LinesOfTile& lines) const {
    return numbers_.slice(lines.first * length_, (lines.first + lines.count) * length_);
  }

  // Key by key, each with all lines of the tile.
  void addKeys(ComputeStep& step, const LinesOfTile& lines, const std::vector<Key>& keys, const poplar::Tensor& bits) {
    const std::size_t size = lines.count * length_, begin = lines.first * length_ * keys.size();
    for (std::size_t key = 0; key < keys.size(); ++key) {
      const poplar::Tensor& from = keys[key].lines;
      step.add(templateVertex("snnjax::OrderedBits", from.elementType()), lines.tile,
               {{"in", from.slice(lines.first, lines.first + lines.count).flatten()},
                {"out", bits.slice(begin + key * size, begin + (key + 1) * size)},
                {"count", asUnsigned(size)},
                {"descending", keys[key].descending},
                {"total", keys[key].total}});
    }
  }

  void addSort(const poplar::Tensor& bits, const poplar::Tensor& scratch, std::size_t keys, std::size_t parts,
               std::size_t sorted) {
    ComputeStep step(lowering_, "sort");
    for (const LinesOfTile& lines : spread_) {
      const std::size_t begin = lines.first * length_, end = begin + lines.count * length_;
      step.add("snnjax::SortNumbers", lines.tile,
               {{"keys", bits.slice(begin * keys, end * keys)},
                {"numbers", numbersOf(lines)},
                {"scratch", scratch.slice(begin, end)},
                {"num_keys", asUnsigned(keys)},
                {"rows", asUnsigned(lines.count)},
                {"length", asUnsigned(length_)},
                {"parts", asUnsigned(parts)},
                {"sorted", asUnsigned(sorted)}});
    }
    step.execute();
  }

  Lowering& lowering_;
  std::size_t length_;
  std::vector<LinesOfTile> spread_;
  poplar::Tensor numbers_;  // of all lines
};

void sort(Lowering& lowering, const Instruction& instruction) {
  const auto dimension = static_cast<std::size_t>(instruction.ints[0][0]);
  std::vector<poplar::Tensor> arrays;
  for (const ValueId input : instruction.inputs) arrays.push_back(asLines(lowering.get(input), dimension));
  std::vector<Key> keys;
  for (const std::string& direction : instruction.texts) {
    keys.push_back({arrays[keys.size()], direction == "descending"});
  }
  Sorting sorting(lowering, arrays[0].dim(0), arrays[0].dim(1));
  sorting.sort(keys);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    sorting.take(arrays[i], asLines(lowering.make(instruction.outputs[i]), dimension));
  }
}

void topK(Lowering& lowering, const Instruction& instruction) {
  const poplar::Tensor x = lowering.get(instruction.inputs[0]);
  const poplar::Tensor lines = asLines(x, x.rank() - 1);
  const std::size_t length = lines.dim(1);
  Sorting sorting(lowering, lines.dim(0), length);
  sorting.sort({{lines, true, true}});
  const poplar::Tensor values = lowering.make(instruction.outputs[0]), places = lowering.make(instruction.outputs[1]);
  sorting.take(lines, asLines(values, x.rank() - 1));
  std::vector<unsigned> numbers(length);
  std::iota(numbers.begin(), numbers.end(), 0U);
  const poplar::Tensor of_line = lowering.graph().addConstant(
      poplar::UNSIGNED_INT, {1, length}, poplar::ArrayRef<unsigned>(numbers), lowering.debug("places"));
  lowering.layouts().map(lowering.graph(), of_line.flatten(), {length});
  sorting.take(of_line.broadcast(asUnsigned(lines.dim(0)), 0), asLines(places, x.rank() - 1));
}

}  // namespace

extern const Operation kSort = {checkSort, sort};
extern const Operation kTopK = {checkTopK, topK};

}  // namespace snnjax::executor::ops
