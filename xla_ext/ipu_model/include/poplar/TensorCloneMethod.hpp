#pragma once

namespace poplar {

// The properties of a tensor that its clone shares.
enum class TensorCloneMethod {
  PRESERVE_ORDER_AND_ALIASES,  // elements lie in memory as in the original, and alias one another as there
  CREATE_NEW_ORDER,            // elements lie in the order of the tensor
  PRESERVE_ORDER_UNLESS_ALIASES,
  GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES,
};

enum class TensorRearrangementMethod { MERGE_SPLIT };

}  // namespace poplar
