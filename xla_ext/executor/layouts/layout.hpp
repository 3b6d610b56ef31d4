// The layout of a shape on the tiles: a permutation of its elements, the memory order, of which every tile holds one
// interval. So an operation on arrays of one shape needs one vertex and one piece per tile.
#pragma once

#include <cstddef>
#include <poplar/Graph.hpp>
#include <vector>

namespace snnjax::executor {

using Shape = std::vector<std::size_t>;

std::size_t productOf(const Shape& shape);
inline std::size_t ceilDivide(std::size_t a, std::size_t b) { return b == 0 ? 0 : (a + b - 1) / b; }

// A matrix {leading, rows, columns}: rows and columns are cut into blocks, each of which lies row-major on `spread`
// neighbouring tiles. A tile holds the same part of each of the `leading` slices, one after the other, so that a slice
// chosen at run time never leaves its tile.
struct Blocks {
  std::size_t leading = 1, rows = 1, columns = 1;
  std::size_t row_block = 1, column_block = 1;  // elements; the last block of each may be smaller
  std::size_t spread = 1;                       // tiles of a block
  std::size_t first_tile = 0;
  std::size_t spare = 0;       // spare elements after each tile's part, for the library's own ops
  bool columns_first = false;  // blocks are ordered by column, not by row
  bool whole_rows = false;     // of a block on each of its tiles

  std::size_t rowParts() const { return ceilDivide(rows, row_block); }
  std::size_t columnParts() const { return ceilDivide(columns, column_block); }
  std::size_t parts() const { return rowParts() * columnParts(); }
  std::size_t numElements() const { return leading * rows * columns; }
  // Calls body(first row, first column) for each block, in order.
  template <class Body>
  void forEach(Body&& body) const {
    for (std::size_t i = 0; i < parts(); ++i) {
      const std::size_t row = columns_first ? i % rowParts() : i / columnParts();
      const std::size_t column = columns_first ? i / rowParts() : i % columnParts();
      body(row * row_block, column * column_block);
    }
  }
  friend bool operator==(const Blocks&, const Blocks&) = default;
};

// The sizes of a shape but those of 1.
Shape withoutOnes(const Shape& shape);

class Layout {
 public:
  Layout(const Blocks& blocks, std::size_t tiles);

  const Blocks& blocks() const { return blocks_; }
  // Tile t holds elements [cuts[t], cuts[t + 1]) of the memory order.
  const std::vector<std::size_t>& cuts() const { return cuts_; }
  // A variable {elements} in memory order as an array of the shape, and back (of any array of the shape).
  poplar::Tensor view(const poplar::Tensor& memory, const Shape& shape) const;
  poplar::Tensor memoryOrder(const poplar::Tensor& tensor) const;
  // Maps such a variable to the tiles.
  void map(poplar::Graph& graph, const poplar::Tensor& memory) const;

 private:
  bool isRowMajor() const { return blocks_.leading == 1 && blocks_.parts() <= 1; }
  poplar::Tensor slicesInOrder(const poplar::Tensor& memory) const;
  poplar::Tensor rowsInOrder(const poplar::Tensor& blocks) const;
  poplar::Tensor columnsSideBySide(const poplar::Tensor& blocks) const;
  poplar::Tensor blocksOf(const poplar::Tensor& matrices) const;

  Blocks blocks_;
  std::vector<std::size_t> cuts_;
};

}  // namespace snnjax::executor
