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
  Gather(lowering, indexing.numGroups(), table, numbers, indexing.windowRows(asBits(out))).lower();
}

}  // namespace snnjax::executor::ops
