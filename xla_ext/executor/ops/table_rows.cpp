#include "executor/ops/table_rows.hpp"

#include <algorithm>

#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {
namespace {

bool holds(const Numbers& numbers, std::size_t number) {
  return std::ranges::count(numbers, static_cast<std::int64_t>(number)) > 0;
}

}  // namespace

void Indexing::divide() {
  row_dims.assign(operand_batching_dims.begin(), operand_batching_dims.end());
  for (unsigned d = 0; d < operand.size(); ++d) {
    if (holds(operand_batching_dims, d)) continue;
    const bool chosen = holds(start_index_map, d) && windows[d] < operand[d];
    (chosen ? row_dims : column_dims).push_back(d);
  }
}

bool Indexing::isWindowDim(unsigned dimension) const {
  return !holds(collapsed_dims, dimension) && !holds(operand_batching_dims, dimension);
}

Shape Indexing::batchShape() const {
  Shape batch = indices;
  if (static_cast<std::size_t>(index_vector_dim) < batch.size()) batch.erase(batch.begin() + index_vector_dim);
  return batch;
}

std::vector<unsigned> Indexing::batchOrder() const {
  std::vector<unsigned> order;
  for (const std::int64_t d : start_indices_batching_dims) {
    order.push_back(static_cast<unsigned>(d > index_vector_dim ? d - 1 : d));
  }
  for (unsigned d = 0; d < batchShape().size(); ++d) {
    if (std::ranges::count(order, d) == 0) order.push_back(d);
  }
  return order;
}

std::size_t Indexing::numGroups() const {
  std::size_t groups = 1;
  for (const std::int64_t d : operand_batching_dims) groups *= operand[static_cast<std::size_t>(d)];
  return groups;
}

std::size_t Indexing::numRows() const {
  std::size_t rows = 1;
  for (const unsigned d : row_dims) rows *= operand[d];
  return rows;
}

std::size_t Indexing::numColumns() const {
  std::size_t columns = 1;
  for (const unsigned d : column_dims) columns *= windows[d];
  return columns;
}

std::size_t Indexing::rowsOfWindow() const {
  std::size_t rows = 1;
  for (const unsigned d : row_dims) rows *= windows[d];
  return rows;
}

bool Indexing::startsAreRows() const {
  return start_index_map.size() == 1 && operand_batching_dims.empty() && row_dims.size() == 1 && rowsOfWindow() == 1;
}

std::size_t Indexing::rowStride(unsigned dimension) const {
  std::size_t stride = 1;
  for (auto d = row_dims.rbegin(); d != row_dims.rend() && *d != dimension; ++d) stride *= operand[*d];
  return stride;
}

poplar::Tensor Indexing::table(const poplar::Tensor& of) const {
  poplar::Tensor part = of;
  for (const unsigned d : column_dims) part = part.slice(0, windows[d], d);
  std::vector<unsigned> order = row_dims;
  order.insert(order.end(), column_dims.begin(), column_dims.end());
  return part.dimShuffle(order).reshape({numRows(), numColumns()});
}

poplar::Tensor Indexing::windowRows(const poplar::Tensor& gathered) const {
  std::vector<unsigned> batch, order;
  for (unsigned d = 0; d < gathered.rank(); ++d) {
    if (!holds(offset_dims, d)) batch.push_back(d);
  }
  for (const unsigned d : batchOrder()) order.push_back(batch[d]);
  // offset_dims belong to the operand's window dimensions, both in order.
  std::vector<unsigned> place(operand.size(), 0);
  std::size_t next = 0;
  for (unsigned d = 0; d < operand.size(); ++d) {
    if (isWindowDim(d)) place[d] = static_cast<unsigned>(offset_dims[next++]);
  }
  for (const std::vector<unsigned>& dims : {row_dims, column_dims}) {
    for (const unsigned d : dims) {
      if (isWindowDim(d)) order.push_back(place[d]);
    }
  }
  return gathered.dimShuffle(order).reshape({numWindows() * rowsOfWindow(), numColumns()});
}

namespace {

poplar::Tensor constant(Lowering& lowering, const std::vector<unsigned>& values, std::size_t tile) {
  const poplar::Tensor tensor = lowering.graph().addConstant(
      poplar::UNSIGNED_INT, {values.size()}, poplar::ArrayRef<unsigned>(values), lowering.debug("numbers"));
  lowering.graph().setTileMapping(tensor, asUnsigned(tile));
  return tensor;
}

// Rows of a window, counted from its first.
std::vector<unsigned> offsetsOf(const Indexing& indexing) {
  std::vector<unsigned> offsets{0};
  for (const unsigned d : indexing.row_dims) {
    std::vector<unsigned> longer;
    for (const unsigned offset : offsets) {
      for (std::size_t i = 0; i < indexing.windows[d]; ++i) {
        longer.push_back(offset + asUnsigned(i * indexing.rowStride(d)));
      }
    }
    offsets = std::move(longer);
  }
  return offsets;
}

// What the batching dimensions add to the first row of each window.
std::vector<unsigned> basesOf(const Indexing& indexing) {
  const Shape batch = indexing.batchShape();
  if (indexing.operand_batching_dims.empty()) return {0};
  std::vector<unsigned> bases(indexing.numWindows(), 0);
  const std::vector<unsigned> order = indexing.batchOrder();
  for (std::size_t i = 0; i < indexing.operand_batching_dims.size(); ++i) {
    const std::size_t in_indices = order[i];
    const std::size_t stride = indexing.rowStride(static_cast<unsigned>(indexing.operand_batching_dims[i]));
    const std::size_t inner = productOf({batch.begin() + static_cast<std::ptrdiff_t>(in_indices) + 1, batch.end()});
    for (std::size_t window = 0; window < bases.size(); ++window) {
      bases[window] += asUnsigned(window / inner % batch[in_indices] * stride);
    }
  }
  return bases;
}

// {windows, components of a start}
poplar::Tensor startsOf(Lowering& lowering, const Indexing& indexing, ValueId indices) {
  const poplar::Tensor starts = asBits(lowering.get(indices));
  const auto vector_dim = static_cast<unsigned>(indexing.index_vector_dim);
  const poplar::Tensor vectors = vector_dim == starts.rank() ? starts.expand({std::size_t{vector_dim}}) : starts;
  return vectors.dimRoll(vector_dim, vectors.rank() - 1)
      .reshape({indexing.numWindows(), indexing.start_index_map.size()});
}

// For each component, the largest start, the rows that one step spans, and what is added below 0.
struct Components {
  std::vector<unsigned> limits, strides, from_end;

  explicit Components(const Indexing& indexing) {
    for (const std::int64_t d : indexing.start_index_map) {
      const auto dimension = static_cast<unsigned>(d);
      const std::size_t limit = indexing.operand[dimension] - indexing.windows[dimension];
      limits.push_back(asUnsigned(limit));
      strides.push_back(limit == 0 ? 0 : asUnsigned(indexing.rowStride(dimension)));
    }
    for (const std::int64_t size : indexing.from_end) from_end.push_back(static_cast<unsigned>(size));
  }
};

// Windows [first, last) of all lie on tile `tile`.
struct WindowsOfTile {
  std::size_t tile, first, last;
};

std::vector<WindowsOfTile> spreadWindows(std::size_t windows, std::size_t tiles) {
  constexpr std::size_t kLeastOnTile = 12;  // two for each worker
  const std::size_t each = ceilDivide(windows, std::clamp<std::size_t>(windows / kLeastOnTile, 1, tiles));
  std::vector<WindowsOfTile> spread;
  for (std::size_t first = 0; first < windows; first += each) {
    spread.push_back({spread.size(), first, std::min(windows, first + each)});
  }
  return spread;
}

// What is accumulated the first row of each window, on the window's tile; nothing where there are no batching
// dimensions.
poplar::Tensor basesOnTiles(Lowering& lowering, const Indexing& indexing, const std::vector<WindowsOfTile>& spread) {
  const std::vector<unsigned> bases = basesOf(indexing);
  const poplar::Tensor base = constant(lowering, bases, 0);
  if (bases.size() < indexing.numWindows()) return base.broadcast(asUnsigned(indexing.numWindows()), 0);
  for (const WindowsOfTile& of : spread) {
    lowering.graph().setTileMapping(base.slice(of.first, of.last), asUnsigned(of.tile));
  }
  return base;
}

// {windows, rows of a window} by groups.
poplar::Tensor byGroups(const Indexing& indexing, const poplar::Tensor& numbers) {
  Shape shape = indexing.batchShape();
  std::vector<unsigned> order = indexing.batchOrder();
  order.push_back(asUnsigned(shape.size()));
  shape.push_back(indexing.rowsOfWindow());
  return numbers.reshape(shape).dimShuffle(order).flatten();
}

}  // namespace

poplar::Tensor rowNumbers(Lowering& lowering, const Indexing& indexing, ValueId indices, bool clamps) {
  const std::vector<WindowsOfTile> spread = spreadWindows(indexing.numWindows(), lowering.layouts().tiles());
  const std::size_t rows = indexing.rowsOfWindow();
  std::vector<std::size_t> counts(lowering.layouts().tiles(), 0);
  for (const WindowsOfTile& of : spread) counts[of.tile] = (of.last - of.first) * rows;
  const poplar::Tensor numbers = lowering.makeScratch(poplar::UNSIGNED_INT, counts);
  const Components components(indexing);
  const poplar::Tensor starts = startsOf(lowering, indexing, indices), base = basesOnTiles(lowering, indexing, spread),
                       limits = constant(lowering, components.limits, 0),
                       strides = constant(lowering, components.strides, 0),
                       from_end = constant(lowering, components.from_end, 0),
                       offsets = constant(lowering, offsetsOf(indexing), 0);
  ComputeStep step(lowering, "rows");
  for (const auto& [tile, first, last] : spread) {
    step.add("snnjax::RowNumbers", tile,
             {{"starts", starts.slice(first, last).flatten()},
              {"limits", limits},
              {"strides", strides},
              {"from_end", from_end},
              {"bases", base.slice(first, last)},
              {"offsets", offsets},
              {"numbers", numbers.slice(first * rows, last * rows)},
              {"count", asUnsigned(last - first)},
              {"depth", asUnsigned(starts.dim(1))},
              {"window", asUnsigned(rows)},
              {"is_signed", lowering.type(indices).dtype == Dtype::kInt32},
              {"clamps", clamps}});
  }
  step.execute();
  return byGroups(indexing, numbers);
}

}  // namespace snnjax::executor::ops
