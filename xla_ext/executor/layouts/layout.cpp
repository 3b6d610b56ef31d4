#include "executor/layouts/layout.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

namespace snnjax::executor {
namespace {

// Tiles share a block in whole grains, so that their parts begin at 64 bits whatever the type.
constexpr std::size_t kGrain = 8;

poplar::Tensor joined(const std::vector<poplar::Tensor>& pieces) {
  return pieces.size() == 1 ? pieces[0] : poplar::concat(pieces);
}

}  // namespace

std::size_t productOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

Shape withoutOnes(const Shape& shape) {
  Shape kept;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept), [](std::size_t size) { return size != 1; });
  return kept;
}

Layout::Layout(const Blocks& blocks, std::size_t tiles) : blocks_(blocks), cuts_(tiles + 1, 0) {
  std::size_t tile = blocks.first_tile, end = 0;
  for (std::size_t row = 0; row < blocks.rows; row += blocks.row_block) {
    const std::size_t rows = std::min(blocks.row_block, blocks.rows - row);
    for (std::size_t column = 0; column < blocks.columns; column += blocks.column_block) {
      const std::size_t size = rows * std::min(blocks.column_block, blocks.columns - column);
      const std::size_t grains = ceilDivide(size, kGrain);
      for (std::size_t i = 1; i <= blocks.spread; ++i) {
        cuts_.at(++tile) = blocks.leading * (end + std::min(size, i * grains / blocks.spread * kGrain));
      }
      end += size;
    }
  }
  while (tile < tiles) cuts_[++tile] = blocks.numElements();
}

// Of the blocks in a row {block rows, columns of all}, the rows: each goes through all blocks. Columns are cut evenly
// but for the last block.
poplar::Tensor Layout::rowsInOrder(const poplar::Tensor& blocks) const {
  const std::size_t width = blocks_.column_block, whole = blocks_.columns / width;
  const std::size_t rest = blocks_.columns - whole * width;
  std::vector<poplar::Tensor> pieces;
  std::size_t begin = 0;
  for (std::size_t row = 0; row < blocks_.rows; row += blocks_.row_block) {
    const std::size_t rows = std::min(blocks_.row_block, blocks_.rows - row);
    const std::size_t middle = begin + rows * whole * width, end = begin + rows * blocks_.columns;
    const poplar::Tensor even =
        blocks.slice(begin, middle).reshape({whole, rows, width}).dimShuffle({1, 0, 2}).reshape({rows, whole * width});
    begin = end;
    if (rest == 0) {
      pieces.push_back(even.flatten());
      continue;
    }
    const poplar::Tensor last = blocks.slice(middle, end).reshape({rows, rest});
    for (std::size_t i = 0; i < rows; ++i) {
      if (whole > 0) pieces.push_back(even[i]);
      pieces.push_back(last[i]);
    }
  }
  return joined(pieces);
}

// Of all tiles' parts {tile by tile: leading, elements of the tile}, the slices: each goes through all tiles.
poplar::Tensor Layout::slicesInOrder(const poplar::Tensor& memory) const {
  if (blocks_.leading == 1) return rowsInOrder(memory);
  std::vector<poplar::Tensor> slices;
  for (std::size_t i = 0; i < blocks_.leading; ++i) {
    std::vector<poplar::Tensor> parts;
    for (std::size_t tile = 0; tile + 1 < cuts_.size(); ++tile) {
      const std::size_t size = (cuts_[tile + 1] - cuts_[tile]) / blocks_.leading, first = cuts_[tile] + i * size;
      if (size > 0) parts.push_back(memory.slice(first, first + size));
    }
    slices.push_back(rowsInOrder(joined(parts)));
  }
  return joined(slices);
}

poplar::Tensor Layout::view(const poplar::Tensor& memory, const Shape& shape) const {
  if (isRowMajor() || memory.numElements() == 0) return memory.reshape(shape);
  return slicesInOrder(memory).reshape(shape);
}

// {leading, rows, columns} in memory order.
poplar::Tensor Layout::blocksOf(const poplar::Tensor& matrices) const {
  std::vector<poplar::Tensor> pieces;
  std::size_t tile = blocks_.first_tile, done = 0;
  for (std::size_t row = 0; row < blocks_.rows; row += blocks_.row_block) {
    const poplar::Tensor rows = matrices.slice(row, std::min(row + blocks_.row_block, blocks_.rows), 1);
    for (std::size_t column = 0; column < blocks_.columns; column += blocks_.column_block) {
      const std::size_t last = std::min(column + blocks_.column_block, blocks_.columns);
      const std::size_t size = rows.dim(1) * (last - column);
      const poplar::Tensor block = rows.slice(column, last, 2).reshape({blocks_.leading, size});
      if (blocks_.leading == 1) {
        pieces.push_back(block.flatten());
        continue;
      }
      for (std::size_t i = 0; i < blocks_.spread; ++i, ++tile) {
        const std::size_t begin = cuts_[tile] / blocks_.leading - done, end = cuts_[tile + 1] / blocks_.leading - done;
        if (end > begin) pieces.push_back(block.slice(begin, end, 1).flatten());
      }
      done += size;
    }
  }
  return joined(pieces);
}

poplar::Tensor Layout::memoryOrder(const poplar::Tensor& tensor) const {
  if (isRowMajor() || tensor.numElements() == 0) return tensor.flatten();
  return blocksOf(tensor.reshape({blocks_.leading, blocks_.rows, blocks_.columns}));
}

void Layout::map(poplar::Graph& graph, const poplar::Tensor& memory) const {
  for (std::size_t tile = 0; tile + 1 < cuts_.size(); ++tile) {
    if (cuts_[tile] == cuts_[tile + 1]) continue;
    graph.setTileMapping(memory.slice(cuts_[tile], cuts_[tile + 1]), static_cast<unsigned>(tile));
  }
}

}  // namespace snnjax::executor
