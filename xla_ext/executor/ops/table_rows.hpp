// General gathers and scatters as rows of a table: indexed dimensions are the table's rows, the others its columns, and
// a window is a list of rows. Batching dimensions form groups of neighbouring rows and of the windows in them.
#pragma once

#include <poplar/Tensor.hpp>
#include <vector>

#include "executor/lowering.hpp"

namespace snnjax::executor::ops {

using Numbers = std::vector<std::int64_t>;

// The dimension numbers of a gather or scatter, in the terms of a gather.
struct Indexing {
  Numbers offset_dims, collapsed_dims, operand_batching_dims, start_indices_batching_dims, start_index_map;
  std::int64_t index_vector_dim = 0;
  Numbers from_end;                 // what is added to starts below 0, for each number of an index
  Shape operand, indices, windows;  // shapes; `windows` has the slice size of each of the operand's dimensions
  std::vector<unsigned> row_dims, column_dims;  // of the operand; batching dimensions come first

  // Works out rows and columns.
  void divide();
  bool isWindowDim(unsigned dimension) const;

  Shape batchShape() const;                  // of the indices
  std::vector<unsigned> batchOrder() const;  // of these dimensions, batching ones first
  std::size_t numWindows() const { return productOf(batchShape()); }
  std::size_t numGroups() const;
  std::size_t numRows() const;
  std::size_t numColumns() const;  // of a window
  std::size_t rowsOfWindow() const;
  // Whether each index is one number, that of the one row of its window.
  bool startsAreRows() const;
  // Rows of the table from one element of a row dimension to the next.
  std::size_t rowStride(unsigned dimension) const;

  // The part of the operand that windows may touch, as {rows, columns}.
  poplar::Tensor table(const poplar::Tensor& operand) const;
  // The gathered windows, or updates, as {windows * rows of a window, columns}, by groups.
  poplar::Tensor windowRows(const poplar::Tensor& gathered) const;
};

// Adds the computation of the number of each row of each window, {windows * rows of a window} by groups; starts are
// moved into the operand if `clamps`, else those outside have the number 0xffffffff.
poplar::Tensor rowNumbers(Lowering& lowering, const Indexing& indexing, ValueId indices, bool clamps);

}  // namespace snnjax::executor::ops
