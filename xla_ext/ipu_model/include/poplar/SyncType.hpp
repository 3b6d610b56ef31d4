#pragma once

namespace poplar {

enum class SyncType {
  EXTERNAL,  // all tiles of all IPUs, and the host
  INTERNAL,  // all tiles of each IPU
  GLOBAL,    // all tiles of all IPUs
};

}  // namespace poplar
