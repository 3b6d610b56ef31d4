// Gathers: every tile holds some rows and columns of the table and looks up the windows' rows among them; where rows
// are divided, it gives zeros for the others, and the bits of all tiles are combined.
#include <optional>
#include <poputil/VertexTemplates.hpp>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/ops/indexed_windows.hpp"
#include "executor/ops/row_blocks.hpp"
#include "executor/ops/table_rows.hpp"

namespace snnjax::executor::ops {
namespace {

void checkGather(const OperationCheck& op) {
  op.needCounts(2, 1, 8);
  op.needSameDtype(op.input(0), op.output());
  op.needIndex(op.input(1));
  const Shape& operand = op.input(0).shape;
  const std::size_t rank = op.output().shape.size();
  const IndexedWindows windows = windowsOf(op, operand, op.input(1).shape, rank, 7);
  const Shape sizes = op.sizes(6, operand.size());
  op.needWithin(sizes, operand);
  // A window of nothing has no element for a result that holds any.
  const bool is_empty = holds(op.output().shape, 0);
  for (const std::size_t d : windows.gone()) {
    op.need(sizes[d] == 1 || (sizes[d] == 0 && is_empty), "drop dimensions of one element only");
  }
  op.needOutput(windows.shapeOf(without(sizes, windows.gone()), rank));
}

class Gather {
 public:
  // Numbers of rows, or with what is added to those below 0 the starts of windows of one row.
  Gather(Lowering& lowering, std::size_t groups, const poplar::Tensor& table, const poplar::Tensor& numbers,
         std::optional<std::size_t> from_end, const poplar::Tensor& out)
      : lowering_(lowering),
        from_end_(from_end),
        table_(table),
        numbers_(numbers),
        out_(out),
        blocks_(lowering, {groups, table.dim(0), table.dim(1), out.dim(0), table.elementType().size()},
                RowBlocks::Use::Gather) {}

  void lower() {
    const bool joins = blocks_.plan().row_parts > 1;
    const std::vector<poplar::Tensor> found = joins ? partials() : std::vector<poplar::Tensor>{};
    const poplar::Type type = table_.elementType();
    const std::string codelet = from_end_ ? poputil::templateVertex("snnjax::GatherAt", type, numbers_.elementType())
                                          : poputil::templateVertex("snnjax::Gather", type);
    ComputeStep step(lowering_, "gather");
    blocks_.forEach([&](const RowBlock& block) {
      const poplar::VertexRef vertex =
          step.add(codelet, block.tile,
                   {{"table", table_.slice(block.rows, 0).slice(block.columns, 1).flatten()},
                    {from_end_ ? "starts" : "ids", numbers_.slice(block.lookups)},
                    {"out", joins ? found[block.tile] : outOf(block)},
                    {"rows", asUnsigned(block.rows.size())},
                    {"width", asUnsigned(block.columns.size())},
                    {"count", asUnsigned(block.lookups.size())},
                    {"first_row", asUnsigned(block.rows.begin())}});
      if (!from_end_) return;
      lowering_.graph().setInitialValue(vertex["last"], asUnsigned(table_.dim(0) - 1));
      lowering_.graph().setInitialValue(vertex["from_end"], asUnsigned(*from_end_));
    });
    step.execute();
    if (joins) join(found);
  }

 private:
  poplar::Tensor outOf(const RowBlock& block) const {
    return out_.slice(block.lookups, 0).slice(block.columns, 1).flatten();
  }

  // What each tile finds.
  std::vector<poplar::Tensor> partials() const {
    return blocks_.makeOnTiles(table_.elementType(),
                               [](const RowBlock& block) { return block.lookups.size() * block.columns.size(); });
  }

  // The tiles of a block of the output share its elements.
  void join(const std::vector<poplar::Tensor>& found) const {
    const poplar::Type type = table_.elementType();
    const std::size_t parts = blocks_.plan().row_parts;
    ComputeStep step(lowering_, "join");
    blocks_.forEach([&](const RowBlock& block) {
      const poplar::Tensor to = outOf(block);
      const std::size_t first = block.tile - block.row_part;
      const poplar::Interval share(block.row_part * to.numElements() / parts,
                                   (block.row_part + 1) * to.numElements() / parts);
      if (share.size() == 0) return;
      std::vector<poplar::Tensor> rows;
      for (std::size_t i = 0; i < parts; ++i) rows.push_back(found[first + i].slice(share));
      step.add(poputil::templateVertex("snnjax::Reduce", "snnjax::BitOr", type, type), block.tile,
               {{"in", poplar::concat(rows)},
                {"out", to.slice(share)},
                {"outer", 1U},
                {"rows", asUnsigned(rows.size())},
                {"inner", asUnsigned(share.size())}});
    });
    step.execute();
  }

  Lowering& lowering_;
  std::optional<std::size_t> from_end_;
  poplar::Tensor table_;    // {rows, columns}
  poplar::Tensor numbers_;  // {windows}
  poplar::Tensor out_;      // {windows, columns}
  RowBlocks blocks_;
};

void gather(Lowering& lowering, const Instruction& instruction) {
  const auto& ints = instruction.ints;
  Indexing indexing{ints[0], ints[1], ints[2], ints[3], ints[4], ints[5][0], ints[7], {}, {}, {}, {}, {}};
  indexing.operand = lowering.type(instruction.inputs[0]).shape;
  indexing.indices = lowering.type(instruction.inputs[1]).shape;
  indexing.windows.assign(ints[6].begin(), ints[6].end());
  indexing.divide();
  const poplar::Tensor table = indexing.table(asBits(lowering.get(instruction.inputs[0])));
  const poplar::Tensor out = lowering.make(instruction.outputs[0]);
  if (out.numElements() == 0) return;
  const poplar::Tensor rows = indexing.windowRows(asBits(out));
  if (indexing.startsAreRows()) {
    const auto from_end = static_cast<std::size_t>(indexing.from_end[0]);
    const poplar::Tensor starts = lowering.get(instruction.inputs[1]).flatten();
    Gather(lowering, 1, table, starts, from_end, rows).lower();
  } else {
    const poplar::Tensor numbers = rowNumbers(lowering, indexing, instruction.inputs[1], true);
    Gather(lowering, indexing.numGroups(), table, numbers, {}, rows).lower();
  }
}

}  // namespace

extern const Operation kGather = {checkGather, gather};

}  // namespace snnjax::executor::ops
