#pragma once

namespace poplar {

enum class VariableMappingMethod {
  NONE,    // setTileMapping says where
  LINEAR,  // evenly over all tiles, in order
};

}  // namespace poplar
