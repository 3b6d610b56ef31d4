// Neighbouring tiles that share the columns of a matrix.
#pragma once

namespace snnjax::builders {

constexpr unsigned ceilDivide(unsigned a, unsigned b) { return (a + b - 1) / b; }

// Column j lies on tile first + j / columns, as its column j % columns; the last tile may have spare columns.
struct TileRange {
  unsigned first = 0;
  unsigned count = 0;
  unsigned columns = 0;
};

}  // namespace snnjax::builders
