// How a reduction is divided: blocks of the input on one tile, and partial results still to be summed.
#pragma once

#include <cstddef>
#include <vector>

#include "poplibs/popops/per_tile.hpp"

namespace poplibs {

// Rows `major`, in ranges, and columns [minor.begin, minor.end) of a matrix.
struct Block {
  Regions major;
  poplar::Interval minor;

  std::size_t rows() const;
};

// Regions of a flattened matrix with `columns` columns as few blocks: rows of the same columns are in one.
std::vector<Block> blocksOf(const Regions& regions, std::size_t columns);

// Partial results of outputs [outputs.begin, outputs.end): elements `position` and following of a tensor of partials.
struct Group {
  poplar::Interval outputs;
  std::size_t position;
};

// A range of outputs that all the same groups contribute to, with the places of the first one's partial results.
struct Segment {
  poplar::Interval outputs;
  std::vector<std::size_t> positions;
};

// In order of outputs; every range is cut where a group begins or ends.
std::vector<Segment> segmentsOf(const std::vector<Group>& groups);

}  // namespace poplibs
