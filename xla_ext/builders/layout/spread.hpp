// How arrays are spread over tiles: by blocks of columns or of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace snnjax::builders {

constexpr unsigned ceilDivide(unsigned a, unsigned b) { return (a + b - 1) / b; }

// Neighbouring tiles that share the columns of a matrix: column j lies on tile first + j / columns, as its column
// j % columns; the last tile may have spare columns.
struct TileRange {
  unsigned first = 0, count = 0, columns = 0;
};

// From tile 0 on, each with the fewest neighbouring columns that are whole units.
inline TileRange spreadColumns(unsigned columns, unsigned unit, unsigned num_tiles) {
  const unsigned each = ceilDivide(ceilDivide(columns, num_tiles), unit) * unit;
  return {.first = 0, .count = ceilDivide(columns, each), .columns = each};
}

// A tile that has neighbouring rows.
struct Home {
  unsigned tile = 0, first = 0, rows = 0;
};

// Rows in even shares over all tiles.
inline std::vector<Home> spreadRows(unsigned rows, unsigned num_tiles) {
  const unsigned each = ceilDivide(rows, num_tiles), count = ceilDivide(rows, each);
  std::vector<Home> homes;
  for (unsigned home = 0; home < count; ++home) {
    const unsigned tile = static_cast<unsigned>(std::size_t{home} * num_tiles / count), first = home * each;
    homes.push_back({tile, first, std::min(each, rows - first)});
  }
  return homes;
}

}  // namespace snnjax::builders
