#include "builders/layout/spread.hpp"

#include <algorithm>
#include <cstddef>

namespace snnjax::builders {

TileRange spreadColumns(unsigned columns, unsigned unit, unsigned num_tiles) {
  const unsigned each = ceilDivide(ceilDivide(columns, num_tiles), unit) * unit;
  return {.first = 0, .count = ceilDivide(columns, each), .columns = each};
}

std::vector<Home> spreadRows(unsigned rows, unsigned num_tiles) {
  const unsigned each = ceilDivide(rows, num_tiles), count = ceilDivide(rows, each);
  std::vector<Home> homes;
  for (unsigned home = 0; home < count; ++home) {
    const unsigned tile = static_cast<unsigned>(std::size_t{home} * num_tiles / count), first = home * each;
    homes.push_back({tile, first, std::min(each, rows - first)});
  }
  return homes;
}

}  // namespace snnjax::builders
