// Gathers: every tile has some rows and columns of the table, and finds those of the windows' rows that it has; where
// rows are divided, what the others found are zeros, and the bits of all are joined. Scatters: every tile goes through
// all windows' rows in their order and changes those that it has, so that the result depends on no order but theirs,
// and a row outside of the table changes nothing.
#include <poputil/VertexTemplates.hpp>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/ops/kinds.hpp"
#include "executor/ops/table_rows.hpp"

namespace snnjax::executor::ops {
namespace {

// What gather and scatter say of an array, its windows and the indices.
struct Windows {
  Shape offset, collapsed, operand_batching, indices_batching, map;
  std::size_t vector_dim = 0;
  Shape batch;  // sizes of the indices but for those of a vector
};

Windows windowsOf(const OperationCheck& op, const Shape& operand, const Shape& indices, std::size_t result_rank) {
  Windows windows;
  windows.offset = op.dimensions(0, result_rank);
  windows.collapsed = op.dimensions(1, operand.size());
  windows.operand_batching = op.dimensions(2, operand.size());
  windows.indices_batching = op.dimensions(3, indices.size());
  windows.map = op.dimensions(4, operand.size());
  windows.vector_dim = op.number(5, indices.size() + 1);
  const std::size_t vector = windows.vector_dim < indices.size() ? indices[windows.vector_dim] : 1;
  op.need(windows.map.size() == vector, "map each number of an index to a dimension");
  op.need(std::is_sorted(windows.offset.begin(), windows.offset.end()), "have window dimensions in order");
  op.need(windows.operand_batching.size() == windows.indices_batching.size(), "pair dimensions of batches");
  op.need(windows.offset.size() + windows.collapsed.size() + windows.operand_batching.size() == operand.size(),
          "have windows of the array's rank");
  for (std::size_t i = 0; i < windows.operand_batching.size(); ++i) {
    const std::size_t d = windows.operand_batching[i], e = windows.indices_batching[i];
    op.need(operand[d] == indices[e] && e != windows.vector_dim, "pair dimensions of batches of one size");
    op.need(!holds(windows.collapsed, d) && !holds(windows.map, d), "index no dimension of a batch");
  }
  windows.batch = without(indices, {windows.vector_dim});
  op.need(windows.batch.size() + windows.offset.size() == result_rank, "have a window for each index");
  return windows;
}

// The shape of gather's result, of scatter's updates.
Shape windowed(const Windows& windows, const Shape& window, std::size_t rank) {
  Shape shape;
  std::size_t of_window = 0, of_batch = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    shape.push_back(holds(windows.offset, d) ? window[of_window++] : windows.batch[of_batch++]);
  }
  return shape;
}

Shape goneFrom(const Windows& windows) {
  Shape gone = windows.collapsed;
  gone.insert(gone.end(), windows.operand_batching.begin(), windows.operand_batching.end());
  return gone;
}

void checkGather(const OperationCheck& op) {
  op.needCounts(2, 1, 7);
  op.needSameDtype(op.input(0), op.output());
  op.needIndex(op.input(1));
  const Shape& operand = op.input(0).shape;
  const std::size_t rank = op.output().shape.size();
  const Windows windows = windowsOf(op, operand, op.input(1).shape, rank);
  const Shape sizes = op.sizes(6, operand.size());
  op.needWithin(sizes, operand);
  for (const std::size_t d : goneFrom(windows)) op.need(sizes[d] <= 1, "drop dimensions of one element only");
  op.needOutput(windowed(windows, without(sizes, goneFrom(windows)), rank));
}

void checkScatter(const OperationCheck& op) {
  op.needCounts(3, 1, 6);
  op.need(!op.instruction().texts.empty(), "have a kind");
  if (op.instruction().texts[0] != "set") op.needKind(0);
  op.need(op.input(0) == op.output(), "keep the type");
  op.needSameDtype(op.input(0), op.input(2));
  op.needIndex(op.input(1));
  const Shape& operand = op.input(0).shape;
  const Shape& updates = op.input(2).shape;
  const Windows windows = windowsOf(op, operand, op.input(1).shape, updates.size());
  Shape window;
  for (const std::size_t d : windows.offset) window.push_back(updates[d]);
  op.needWithin(window, without(operand, goneFrom(windows)));
  op.need(updates == windowed(windows, window, updates.size()), "have updates for each index");
}

// Into how many parts rows of the windows, rows and columns of the table are divided.
struct Parts {
  std::size_t windows = 1, rows = 1, columns = 1;
  std::size_t all() const { return windows * rows * columns; }
};

// In cycles of a tile: words that come, ids looked up by six workers, and a second stage where rows are divided.
double estimate(std::size_t windows, std::size_t rows, std::size_t columns, const Parts& parts) {
  constexpr double kStage = 600, kRow = 19, kWord = 1.5, kJoin = 2.5, kMostWords = 60000, kImpossible = 1e30;
  const auto count = static_cast<double>(ceilDivide(windows, parts.windows));
  const auto width = static_cast<double>(ceilDivide(columns, parts.columns));
  const double table = static_cast<double>(ceilDivide(rows, parts.rows)) * width;
  const double words = table + count * (1 + width);
  if (words > kMostWords) return kImpossible + words;
  return words + count * (kRow + kWord * width) + (parts.rows > 1 ? kStage + kJoin * count * width : 0);
}

Parts divide(std::size_t windows, std::size_t rows, std::size_t columns, std::size_t tiles) {
  Parts best, parts;
  double least = estimate(windows, rows, columns, best);
  for (parts.windows = 1; parts.windows <= std::min(tiles, windows); parts.windows *= 2) {
    for (parts.columns = 1; parts.windows * parts.columns <= tiles && parts.columns <= columns; parts.columns *= 2) {
      for (parts.rows = 1; parts.all() <= tiles && parts.rows <= rows; parts.rows *= 2) {
        const double cycles = estimate(windows, rows, columns, parts);
        if (cycles < least) {
          least = cycles;
          best = parts;
        }
      }
    }
  }
  return best;
}

poplar::Interval partOf(std::size_t part, std::size_t parts, const poplar::Interval& of) {
  return {of.begin() + part * of.size() / parts, of.begin() + (part + 1) * of.size() / parts};
}

class Gather {
 public:
  Gather(Lowering& lowering, std::size_t groups, const poplar::Tensor& table, const poplar::Tensor& numbers,
         const poplar::Tensor& out)
      : lowering_(lowering), groups_(groups), table_(table), numbers_(numbers), out_(out) {
    const std::size_t tiles = lowering.layouts().tiles();
    chunks_ = std::min(groups, tiles);
    const std::size_t each = ceilDivide(groups, chunks_);
    parts_ = divide(out.dim(0) / groups * each, table.dim(0) / groups * each, table.dim(1), tiles / chunks_);
  }

  void lower() {
    const std::vector<poplar::Tensor> found = parts_.rows > 1 ? partials() : std::vector<poplar::Tensor>{};
    const std::string codelet = poputil::templateVertex("snnjax::Gather", table_.elementType(), poplar::UNSIGNED_INT);
    ComputeStep step(lowering_, "gather");
    forEachPart([&](const Part& part) {
      for (std::size_t row = 0; row < parts_.rows; ++row) {
        const poplar::Interval rows = partOf(row, parts_.rows, part.rows);
        step.add(codelet, part.tile + row,
                 {{"table", table_.slice(rows, 0).slice(part.columns, 1).flatten()},
                  {"ids", numbers_.slice(part.windows)},
                  {"out", found.empty() ? block(part) : found[part.tile + row]},
                  {"rows", asUnsigned(rows.size())},
                  {"width", asUnsigned(part.columns.size())},
                  {"count", asUnsigned(part.windows.size())},
                  {"first_row", asUnsigned(rows.begin())}});
      }
    });
    step.execute();
    if (!found.empty()) join(found);
  }

 private:
  // A block of the output, made by the tiles from `tile` on, each from a part of the rows.
  struct Part {
    poplar::Interval windows, rows, columns;
    std::size_t tile;
  };

  poplar::Tensor block(const Part& part) const { return out_.slice(part.windows, 0).slice(part.columns, 1).flatten(); }

  template <class Body>
  void forEachPart(Body&& body) const {
    for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
      const poplar::Interval groups = partOf(chunk, chunks_, {0, groups_});
      const auto ofGroups = [&](std::size_t size) {
        return poplar::Interval(groups.begin() * (size / groups_), groups.end() * (size / groups_));
      };
      for (std::size_t w = 0; w < parts_.windows; ++w) {
        for (std::size_t c = 0; c < parts_.columns; ++c) {
          const std::size_t tile = ((chunk * parts_.windows + w) * parts_.columns + c) * parts_.rows;
          const Part part{partOf(w, parts_.windows, ofGroups(out_.dim(0))), ofGroups(table_.dim(0)),
                          partOf(c, parts_.columns, {0, out_.dim(1)}), tile};
          if (part.windows.size() * part.columns.size() > 0) body(part);
        }
      }
    }
  }

  // What each tile finds.
  std::vector<poplar::Tensor> partials() const {
    std::vector<std::size_t> counts(lowering_.layouts().tiles(), 0);
    forEachPart([&](const Part& part) {
      for (std::size_t row = 0; row < parts_.rows; ++row) {
        counts[part.tile + row] = part.windows.size() * part.columns.size();
      }
    });
    const poplar::Tensor all = lowering_.makeScratch(table_.elementType(), counts);
    std::vector<poplar::Tensor> found;
    std::size_t begin = 0;
    for (const std::size_t count : counts) {
      found.push_back(all.slice(begin, begin + count));
      begin += count;
    }
    return found;
  }

  // The tiles of a block share its elements.
  void join(const std::vector<poplar::Tensor>& found) const {
    const poplar::Type type = table_.elementType();
    ComputeStep step(lowering_, "join");
    forEachPart([&](const Part& part) {
      const poplar::Tensor to = block(part);
      for (std::size_t row = 0; row < parts_.rows; ++row) {
        const poplar::Interval share = partOf(row, parts_.rows, {0, to.numElements()});
        if (share.size() == 0) continue;
        std::vector<poplar::Tensor> rows;
        for (std::size_t i = 0; i < parts_.rows; ++i) rows.push_back(found[part.tile + i].slice(share));
        step.add(poputil::templateVertex("snnjax::Reduce", "snnjax::BitOr", type, type), part.tile + row,
                 {{"in", poplar::concat(rows)},
                  {"out", to.slice(share)},
                  {"outer", 1U},
                  {"rows", asUnsigned(rows.size())},
                  {"inner", asUnsigned(share.size())}});
      }
    });
    step.execute();
  }

  Lowering& lowering_;
  std::size_t groups_, chunks_ = 1;  // chunks of groups, each on tiles of its own
  poplar::Tensor table_;             // {rows, columns}
  poplar::Tensor numbers_;           // {windows}: of rows
  poplar::Tensor out_;               // {windows, columns}
  Parts parts_;                      // of a chunk
};

// More words of numbers and values than this do not come to a tile at once.
constexpr std::size_t kMostAtOnce = 32768;

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
  const std::size_t at_once = std::max<std::size_t>(1, kMostAtOnce / (1 + ceilDivide(columns, column_parts)));
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

void gather(Lowering& lowering, const Instruction& instruction) {
  const auto& ints = instruction.ints;
  Indexing indexing{ints[0], ints[1], ints[2], ints[3], ints[4], ints[5][0], {}, {}, {}, {}, {}};
  indexing.operand = lowering.type(instruction.inputs[0]).shape;
  indexing.indices = lowering.type(instruction.inputs[1]).shape;
  indexing.windows.assign(ints[6].begin(), ints[6].end());
  indexing.divide();
  const poplar::Tensor table = indexing.table(asBits(lowering.get(instruction.inputs[0])));
  const poplar::Tensor out = lowering.make(instruction.outputs[0]);
  if (out.numElements() == 0) return;
  const poplar::Tensor numbers = rowNumbers(lowering, indexing, instruction.inputs[1], true);
  Gather(lowering, indexing.numGroups(), table, numbers, indexing.windowRows(asBits(out))).lower();
}

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

}  // namespace

extern const Operation kGather = {checkGather, gather};
extern const Operation kScatter = {checkScatter, scatter};

}  // namespace snnjax::executor::ops
