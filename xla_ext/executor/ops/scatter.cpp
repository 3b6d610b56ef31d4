// Scatters: every tile goes through the windows' rows in order and updates those that it holds; a row outside the table
// changes nothing. Where the windows are divided, each part updates its own table, initially neutral, and the tables
// are combined part after part: so the result depends on the plan, not on the order of tiles.
#include <algorithm>
#include <poputil/VertexTemplates.hpp>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/ops/indexed_windows.hpp"
#include "executor/ops/kinds.hpp"
#include "executor/ops/row_blocks.hpp"
#include "executor/ops/table_rows.hpp"

namespace snnjax::executor::ops {
namespace {

void checkScatter(const OperationCheck& op) {
  op.needCounts(3, 1, 7);
  op.need(!op.instruction().texts.empty(), "have a kind");
  if (op.instruction().texts[0] != "set") op.needKind(0);
  op.need(op.input(0) == op.output(), "keep the type");
  op.needSameDtype(op.input(0), op.input(2));
  op.needIndex(op.input(1));
  const Shape& operand = op.input(0).shape;
  const Shape& updates = op.input(2).shape;
  const IndexedWindows windows = windowsOf(op, operand, op.input(1).shape, updates.size(), 6);
  Shape window;
  for (const std::size_t d : windows.offset) window.push_back(updates[d]);
  op.needWithin(window, without(operand, windows.gone()));
  op.need(updates == windows.shapeOf(window, updates.size()), "have updates for each index");
}

Indexing indexingOf(const Lowering& lowering, const Instruction& instruction) {
  const auto& ints = instruction.ints;
  Indexing indexing{ints[0], ints[1], ints[2], ints[3], ints[4], ints[5][0], ints[6], {}, {}, {}, {}, {}};
  indexing.operand = lowering.type(instruction.inputs[0]).shape;
  indexing.indices = lowering.type(instruction.inputs[1]).shape;
  const Shape& updates = lowering.type(instruction.inputs[2]).shape;
  std::size_t next = 0;
  for (unsigned d = 0; d < indexing.operand.size(); ++d) {
    const bool window = indexing.isWindowDim(d);
    indexing.windows.push_back(window ? updates[static_cast<std::size_t>(ints[0][next])] : 1);
    next += window ? 1 : 0;
  }
  indexing.divide();
  return indexing;
}

// At most this many words of numbers and values come to a tile at once.
constexpr std::size_t kMostAtOnce = 32768;

std::size_t mostOnTile(Lowering& lowering, const poplar::Tensor& table) {
  std::size_t most = 0;
  for (const std::vector<poplar::Interval>& intervals : lowering.graph().getTileMapping(table)) {
    std::size_t elements = 0;
    for (const poplar::Interval& interval : intervals) elements += interval.size();
    most = std::max(most, elements);
  }
  return most;
}

class Scatter {
 public:
  Scatter(Lowering& lowering, std::size_t groups, const Kind& kind, double neutral, const poplar::Tensor& table,
          const poplar::Tensor& numbers, const poplar::Tensor& values)
      : lowering_(lowering),
        kind_(kind),
        neutral_(neutral),
        table_(table),
        numbers_(numbers),
        values_(values),
        blocks_(lowering,
                {groups, table.dim(0), table.dim(1), values.dim(0), kind.type.size(), mostOnTile(lowering, table)},
                kind.name.empty() ? RowBlocks::Use::ScatterInOrder : RowBlocks::Use::Scatter) {}

  void lower() {
    if (blocks_.plan().lookup_parts == 1) {
      return change(
          [this](const RowBlock& block) { return table_.slice(block.rows, 0).slice(block.columns, 1).flatten(); });
    }
    const std::vector<poplar::Tensor> tables = neutralTables();
    change([&tables](const RowBlock& block) { return tables[block.tile]; });
    join(tables);
  }

 private:
  // `tableOf(block)` is what the block changes.
  template <class TableOf>
  void change(const TableOf& tableOf) const {
    const bool sets = kind_.name.empty();
    const std::string codelet = sets ? poputil::templateVertex("snnjax::ScatterRows", kind_.type)
                                     : poputil::templateVertex("snnjax::ScatterWith", kind_.name, kind_.type);
    const std::size_t at_once = std::max<std::size_t>(1, kMostAtOnce / (1 + blocks_.plan().column_block));
    for (std::size_t done = 0; done < blocks_.mostLookups(); done += at_once) {
      ComputeStep step(lowering_, "scatter");
      blocks_.forEach([&](const RowBlock& block) {
        const std::size_t last = block.lookups.end(), first = std::min(last, block.lookups.begin() + done);
        const poplar::Interval now(first, std::min(last, first + at_once));
        if (now.size() == 0) return;
        step.add(codelet, block.tile,
                 {{"table", tableOf(block)},
                  {sets ? "ids" : "numbers", numbers_.slice(now)},
                  {"values", values_.slice(now, 0).slice(block.columns, 1).flatten()},
                  {"rows", asUnsigned(block.rows.size())},
                  {"width", asUnsigned(block.columns.size())},
                  {"count", asUnsigned(now.size())},
                  {"first_row", asUnsigned(block.rows.begin())}});
      });
      step.execute();
    }
  }

  std::vector<poplar::Tensor> neutralTables() const {
    const auto sizeOf = [](const RowBlock& block) { return block.rows.size() * block.columns.size(); };
    const std::vector<poplar::Tensor> tables = blocks_.makeOnTiles(kind_.type, sizeOf);
    poplar::Graph& graph = lowering_.graph();
    ComputeStep step(lowering_, "neutral");
    blocks_.forEach([&](const RowBlock& block) {
      const poplar::VertexRef vertex = step.add(poputil::templateVertex("snnjax::Fill", kind_.type), block.tile,
                                                {{"out", tables[block.tile]}, {"count", asUnsigned(sizeOf(block))}});
      setValue(graph, vertex);
    });
    step.execute();
    return tables;
  }

  void setValue(poplar::Graph& graph, const poplar::VertexRef& vertex) const {
    if (kind_.type == poplar::FLOAT || kind_.type == poplar::HALF) {
      graph.setInitialValue(vertex["value"], static_cast<float>(neutral_));
    } else if (kind_.type == poplar::INT) {
      graph.setInitialValue(vertex["value"], static_cast<int>(neutral_));
    } else {
      graph.setInitialValue(vertex["value"], static_cast<unsigned>(static_cast<std::int64_t>(neutral_)));
    }
  }

  // Each tile combines the parts on it.
  void join(const std::vector<poplar::Tensor>& tables) const {
    const std::vector<poplar::Tensor> parts = blocks_.asTables(tables);
    const poplar::Tensor table = table_.flatten();
    const auto mapping = lowering_.graph().getTileMapping(table);
    ComputeStep step(lowering_, "join");
    for (std::size_t tile = 0; tile < mapping.size(); ++tile) {
      if (mapping[tile].empty()) continue;
      std::vector<poplar::Tensor> in;
      const poplar::Tensor out = poplar::concat(table.slices(mapping[tile]));
      in.push_back(out);
      for (const poplar::Tensor& part : parts) in.push_back(poplar::concat(part.slices(mapping[tile])));
      const unsigned rows = asUnsigned(in.size()), columns = asUnsigned(out.numElements());
      if (kind_.name == "snnjax::Sum" && kind_.type == poplar::FLOAT) {
        step.add("snnjax::SumRows", tile,
                 {{"in", poplar::concat(in)}, {"out", out}, {"rows", rows}, {"columns", columns}});
        continue;
      }
      step.add(poputil::templateVertex("snnjax::Reduce", kind_.name, kind_.type, kind_.type), tile,
               {{"in", poplar::concat(in)}, {"out", out}, {"outer", 1U}, {"rows", rows}, {"inner", columns}});
    }
    step.execute();
  }

  Lowering& lowering_;
  Kind kind_;  // without a name: new values
  double neutral_;
  poplar::Tensor table_;             // {rows, columns}
  poplar::Tensor numbers_, values_;  // {windows}, {windows, columns}
  RowBlocks blocks_;
};

void scatter(Lowering& lowering, const Instruction& instruction) {
  const ValueId input = instruction.inputs[0], output = instruction.outputs[0];
  const std::string& name = instruction.texts[0];
  const Indexing indexing = indexingOf(lowering, instruction);
  const poplar::Tensor updates = lowering.get(instruction.inputs[2]);
  const bool sets = name == "set";
  const Kind kind = sets ? Kind{"", bitsOf(updates.elementType())} : kindOf(name, lowering.type(input).dtype);
  if (!sets && kind.name.empty()) {
    lowering.refuse(instruction, "cannot `" + name + "` these elements", "Convert them to 32 bits");
  }
  if (!lowering.takeOver(output, input)) lowering.copy(input, lowering.make(output));
  const poplar::Tensor out = lowering.get(output);
  if (updates.numElements() == 0 || out.numElements() == 0) return;
  const poplar::Tensor numbers = rowNumbers(lowering, indexing, instruction.inputs[1], false);
  const double neutral = sets ? 0 : neutralOf(name, lowering.type(input).dtype);
  Scatter(lowering, indexing.numGroups(), kind, neutral, indexing.table(out.reinterpret(kind.type)), numbers,
          indexing.windowRows(updates.reinterpret(kind.type)))
      .lower();
}

}  // namespace

extern const Operation kScatter = {checkScatter, scatter};

}  // namespace snnjax::executor::ops
