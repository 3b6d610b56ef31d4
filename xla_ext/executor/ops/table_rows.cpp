#include "executor/ops/table_rows.hpp"

#include <algorithm>

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

}  // namespace snnjax::executor::ops
