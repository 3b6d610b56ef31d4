// What the IPU Model accounts for, which no other engine has: the only way from the executor to the model itself.
#pragma once

#include <cstddef>
#include <poplar/Engine.hpp>
#include <string>
#include <vector>

#include "executor/plan_lowering.hpp"

namespace snnjax::executor {

// Of a program: how often it ran since its profile was reset, and the memory that values take while it runs.
struct ProgramFacts {
  std::string name;
  std::size_t runs;
  std::vector<PlanLowering::LiveMemory> live_memory;
};

// A JSON object (ipu_model/profile.hpp) of all runs since the engine's last reset, with these facts.
std::string modelProfile(const poplar::Engine& engine, const ProgramFacts& facts);
// Bytes in use, of all tiles.
std::size_t modelMemory(const poplar::Engine& engine);

}  // namespace snnjax::executor
