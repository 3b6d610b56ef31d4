#include "executor/ops/product_blocks.hpp"

namespace snnjax::executor::ops {

bool ProductBlocks::areThoseOf(const Blocks& layout) const {
  return product_.groups == 1 && layout.leading == 1 && !layout.columns_first && layout.rows == product_.m &&
         layout.columns == product_.n && layout.row_block == plan_.m_block && layout.column_block == plan_.n_block &&
         layout.first_tile == 0;
}

std::vector<std::size_t> ProductBlocks::counts() const {
  std::vector<std::size_t> counts(tiles_, 0);
  forEach([&](const ProductBlock& block) { counts[block.tile] += elements(block); });
  return counts;
}

}  // namespace snnjax::executor::ops
