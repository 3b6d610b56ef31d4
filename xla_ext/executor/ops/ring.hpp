// Partitions that work together, as rings of neighbours. All run the same program, so parts are numbered from a
// member's own place: part i belongs to the member i places further on.
#pragma once

#include <cstdint>
#include <map>
#include <poplar/Tensor.hpp>
#include <vector>

#include "executor/lowering.hpp"

namespace snnjax::executor::ops {

// ---- Arrays divided by tile ----

// Elements on each tile, flat; of rows of equal size, one after the other. Not valid where a tile has none.
using TileTensors = std::vector<poplar::Tensor>;

// How many elements each tile has, of each of `rows` rows.
std::vector<std::size_t> countsOf(const TileTensors& parts, std::size_t rows = 1);
// All elements, tile by tile.
poplar::Tensor all(const TileTensors& parts);
// Memory for `counts[t]` elements on tile t, for this operation alone.
TileTensors makeOnTiles(Lowering& lowering, const poplar::Type& type, const std::vector<std::size_t>& counts);

// Arrays of one shape, one after the other on each tile of their layout.
TileTensors onTiles(const Layout& layout, const std::vector<poplar::Tensor>& arrays);
inline TileTensors onTiles(const Lowering& lowering, const std::vector<poplar::Tensor>& arrays) {
  return onTiles(lowering.layouts().of(arrays[0].shape()), arrays);
}
// A tile's part as rows of equal size, padded with scratch elements.
TileTensors asRows(const TileTensors& parts, std::size_t rows);
// Rows that start with a tile's part; their padding is discarded.
TileTensors intoRows(Lowering& lowering, const TileTensors& parts, const TileTensors& rows);

// ---- Rings ----

class Ring {
 public:
  // `groups` as in the plan: members of all groups, then the number of groups and of members in each.
  Ring(Lowering& lowering, const std::vector<std::int64_t>& members, const std::vector<std::int64_t>& sizes);

  std::size_t size() const { return size_; }
  // The place in its group, as the program counts it, of the member at a place of the ring.
  std::size_t memberAt(std::size_t place) const { return places_[place]; }

  // Rows in the order of the ring's places, as rows counted from the own place, and back.
  TileTensors toOwn(const TileTensors& rows);
  void fromOwn(const TileTensors& rows, const TileTensors& out);

  // Each member's elements to the member `steps` places further on.
  void send(const poplar::Tensor& from, const poplar::Tensor& to, std::size_t steps);
  // Each member's elements to the one whose place differs in one bit.
  void swap(const poplar::Tensor& from, const poplar::Tensor& to, std::size_t bit);

  // The first half of each tile's elements to the next member, the other half to the one before: both directions of the
  // links at once.
  void sendBothWays(const TileTensors& from, const TileTensors& to);

  // Row `row` of all tiles.
  poplar::Tensor rowOf(const TileTensors& rows, std::size_t row) const;
  // For all tiles, the first half of row `row` and the other half of the row equally far in the other direction.
  TileTensors bothWays(const TileTensors& rows, std::size_t row) const;
  TileTensors rowsOf(const TileTensors& rows, std::size_t row) const;
  // out = kind(a, b), element by element.
  void combine(const std::string& kind, const TileTensors& a, const TileTensors& b, const TileTensors& out);

 private:
  poplar::Tensor lookUp(const std::vector<unsigned>& of_partition);
  void rotate(const TileTensors& rows, const TileTensors& out, const poplar::Tensor& offset);

  Lowering& lowering_;
  std::size_t size_;
  std::vector<std::size_t> places_;
  std::vector<std::vector<unsigned>> rings_;  // partitions, by place
  poplar::Tensor replica_;
};

}  // namespace snnjax::executor::ops
