// Scatters: every tile has some rows and columns of the table, goes through all windows' rows in their order and
// changes those that it has. So the result depends on no order but theirs, and a row outside of the table changes
// nothing.
#include <poputil/VertexTemplates.hpp>

#include "executor/ops/compute_step.hpp"
#include "executor/ops/kinds.hpp"
#include "executor/ops/table_rows.hpp"
#include "executor/registry.hpp"

namespace snnjax::executor::ops {
namespace {

// More words of numbers and values than this do not come to a tile at once.
constexpr std::size_t kMostWords = 32768;

poplar::Interval partOf(std::size_t part, std::size_t parts, const poplar::Interval& of) {
  return {of.begin() + part * of.size() / parts, of.begin() + (part + 1) * of.size() / parts};
}

struct Scattering {
  std::string codelet;
  std::size_t groups;
  poplar::Tensor table;            // {rows, columns}
  poplar::Tensor numbers, values;  // {windows}, {windows, columns}
};

// Chunks of groups have tiles of their own, which share rows and columns; columns first, as they divide the values too.
void scatterRows(Lowering& lowering, const Scattering& of) {
  const std::size_t tiles = lowering.layouts().tiles(), chunks = std::min(of.groups, tiles);
  const std::size_t each = ceilDivide(of.groups, chunks), columns = of.table.dim(1);
  const std::size_t rows = of.table.dim(0) / of.groups, windows = of.values.dim(0) / of.groups;
  const std::size_t column_parts = std::min(columns, tiles / chunks);
  const std::size_t row_parts = std::min(rows * each, tiles / chunks / column_parts);
  const std::size_t at_once = std::max<std::size_t>(1, kMostWords / (1 + ceilDivide(columns, column_parts)));
  const char* const ids = of.codelet.find("ScatterRows") == of.codelet.npos ? "numbers" : "ids";
  for (std::size_t done = 0; done < each * windows; done += at_once) {
    ComputeStep step(lowering, "scatter");
    for (std::size_t tile = 0; tile < chunks * column_parts * row_parts; ++tile) {
      const poplar::Interval groups = partOf(tile / (column_parts * row_parts), chunks, {0, of.groups});
      const poplar::Interval of_rows =
          partOf(tile % row_parts, row_parts, {groups.begin() * rows, groups.end() * rows});
      const poplar::Interval of_columns = partOf(tile / row_parts % column_parts, column_parts, {0, columns});
      const std::size_t last = groups.end() * windows, first = std::min(last, groups.begin() * windows + done);
      const poplar::Interval now(first, std::min(last, first + at_once));
      if (now.size() == 0) continue;
      step.add(of.codelet, tile,
               {{"table", of.table.slice(of_rows, 0).slice(of_columns, 1).flatten()},
                {ids, of.numbers.slice(now)},
                {"values", of.values.slice(now, 0).slice(of_columns, 1).flatten()},
                {"rows", asUnsigned(of_rows.size())},
                {"width", asUnsigned(of_columns.size())},
                {"count", asUnsigned(now.size())},
                {"first_row", asUnsigned(of_rows.begin())}});
    }
    step.execute();
  }
}

Indexing indexingOf(const Lowering& lowering, const Instruction& instruction) {
  const auto& ints = instruction.ints;
  Indexing indexing{ints[0], ints[1], ints[2], ints[3], ints[4], ints[5][0], {}, {}, {}, {}, {}};
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

}  // namespace

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
  const std::string codelet = sets ? poputil::templateVertex("snnjax::ScatterRows", kind.type, poplar::UNSIGNED_INT)
                                   : poputil::templateVertex("snnjax::ScatterWith", kind.name, kind.type);
  scatterRows(lowering, {codelet, indexing.numGroups(), indexing.table(out.reinterpret(kind.type)), numbers,
                         indexing.windowRows(updates.reinterpret(kind.type))});
}

}  // namespace snnjax::executor::ops
