// What the IPU Model accounts for, which no other engine has: the only way from the executor to the model itself.
#pragma once

#include <cstddef>
#include <poplar/Engine.hpp>
#include <string>

namespace snnjax::executor {

// A JSON object (ipu_model/profile.hpp) of all runs since the engine's last reset.
std::string modelProfile(const poplar::Engine& engine);
// Bytes in use, of all tiles.
std::size_t modelMemory(const poplar::Engine& engine);

}  // namespace snnjax::executor
