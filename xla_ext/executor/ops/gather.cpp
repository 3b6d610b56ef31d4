// Gathers: every tile has some rows and columns of the table, and finds those of the windows' rows that it has; where
// rows are divided, what the others found are zeros, and the bits of all are joined.
#include <poputil/VertexTemplates.hpp>

#include "executor/ops/compute_step.hpp"
#include "executor/ops/table_rows.hpp"
#include "executor/registry.hpp"

namespace snnjax::executor::ops {
namespace {

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

poplar::Interval partOf(std::size_t part, std::size_t parts, std::size_t size) {
  return {part * size / parts, (part + 1) * size / parts};
}

class Gather {
 public:
  Gather(Lowering& lowering, const poplar::Tensor& table, const poplar::Tensor& numbers, const poplar::Tensor& out)
      : lowering_(lowering),
        table_(table),
        numbers_(numbers),
        out_(out),
        parts_(divide(out.dim(0), table.dim(0), table.dim(1), lowering.layouts().tiles())) {}

  void lower() {
    const std::vector<poplar::Tensor> found = parts_.rows > 1 ? partials() : std::vector<poplar::Tensor>{};
    const std::string codelet = poputil::templateVertex("snnjax::Gather", table_.elementType(), poplar::UNSIGNED_INT);
    ComputeStep step(lowering_, "gather");
    forEachPart([&](const poplar::Interval& windows, const poplar::Interval& columns, std::size_t part) {
      for (std::size_t row = 0; row < parts_.rows; ++row) {
        const poplar::Interval rows = partOf(row, parts_.rows, table_.dim(0));
        const std::size_t tile = part * parts_.rows + row;
        step.add(codelet, tile,
                 {{"table", table_.slice(rows, 0).slice(columns, 1).flatten()},
                  {"ids", numbers_.slice(windows)},
                  {"out", found.empty() ? block(windows, columns) : found[tile]},
                  {"rows", asUnsigned(rows.size())},
                  {"width", asUnsigned(columns.size())},
                  {"count", asUnsigned(windows.size())},
                  {"first_row", asUnsigned(rows.begin())}});
      }
    });
    step.execute();
    if (!found.empty()) join(found);
  }

 private:
  poplar::Tensor block(const poplar::Interval& windows, const poplar::Interval& columns) const {
    return out_.slice(windows, 0).slice(columns, 1).flatten();
  }

  template <class Body>
  void forEachPart(Body&& body) const {
    for (std::size_t w = 0; w < parts_.windows; ++w) {
      for (std::size_t c = 0; c < parts_.columns; ++c) {
        body(partOf(w, parts_.windows, out_.dim(0)), partOf(c, parts_.columns, out_.dim(1)), w * parts_.columns + c);
      }
    }
  }

  // What each tile finds.
  std::vector<poplar::Tensor> partials() const {
    std::vector<std::size_t> counts(lowering_.layouts().tiles(), 0);
    forEachPart([&](const poplar::Interval& windows, const poplar::Interval& columns, std::size_t part) {
      for (std::size_t row = 0; row < parts_.rows; ++row) {
        counts[part * parts_.rows + row] = windows.size() * columns.size();
      }
    });
    const poplar::Tensor all = lowering_.makeScratch(table_.elementType(), counts);
    std::vector<poplar::Tensor> found;
    std::size_t begin = 0;
    for (std::size_t tile = 0; tile < parts_.all(); ++tile) {
      found.push_back(all.slice(begin, begin + counts[tile]));
      begin += counts[tile];
    }
    return found;
  }

  // The tiles of a block share its elements.
  void join(const std::vector<poplar::Tensor>& found) const {
    const poplar::Type type = table_.elementType();
    ComputeStep step(lowering_, "join");
    forEachPart([&](const poplar::Interval& windows, const poplar::Interval& columns, std::size_t part) {
      const poplar::Tensor to = block(windows, columns);
      for (std::size_t row = 0; row < parts_.rows; ++row) {
        const poplar::Interval share = partOf(row, parts_.rows, to.numElements());
        if (share.size() == 0) continue;
        std::vector<poplar::Tensor> rows;
        for (std::size_t i = 0; i < parts_.rows; ++i) rows.push_back(found[part * parts_.rows + i].slice(share));
        step.add(poputil::templateVertex("snnjax::Reduce", "snnjax::BitOr", type, type), part * parts_.rows + row,
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
  poplar::Tensor table_;    // {rows, columns}
  poplar::Tensor numbers_;  // {windows}: of rows
  poplar::Tensor out_;      // {windows, columns}
  Parts parts_;
};

}  // namespace

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
  Gather(lowering, table, numbers, indexing.windowRows(asBits(out))).lower();
}

}  // namespace snnjax::executor::ops
