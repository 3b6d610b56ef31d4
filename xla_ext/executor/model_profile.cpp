#include "executor/model_profile.hpp"

#include <ipu_model/profile.hpp>

namespace snnjax::executor {

std::string modelProfile(const poplar::Engine& engine) { return ipu_model::toJson(ipu_model::profileOf(engine)); }

std::size_t modelMemory(const poplar::Engine& engine) {
  std::size_t bytes = 0;
  for (const ipu_model::TileProfile& tile : ipu_model::profileOf(engine).tiles) bytes += tile.memory();
  return bytes;
}

}  // namespace snnjax::executor
