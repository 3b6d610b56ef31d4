// A plan as an engine on a device, with programs that bring arguments in and results out.
#pragma once

#include <memory>
#include <poplar/Device.hpp>
#include <poplar/Engine.hpp>
#include <string>
#include <vector>

#include "executor/executable.hpp"
#include "executor/plan_lowering.hpp"

namespace snnjax::executor {

class DeviceProgram {
 public:
  DeviceProgram(const Plan& plan, const SystemOptions& options);

  // Parts of an array, one for each partition: where they are read, and where they are written.
  using Sources = std::vector<const std::byte*>;
  using Targets = std::vector<std::byte*>;
  void upload(std::size_t parameter, Sources from);
  void run();
  void download(std::size_t result, Targets to);

  // Called for callbacks, with arrays of one partition.
  using Callback = std::function<void(std::int64_t, const std::vector<ArrayType>&, poplar::ArrayRef<const void*>)>;
  void connectCallbacks(const Callback& callback);

  std::string profile() const;
  void resetProfile();
  std::size_t tileMemory() const;

 private:
  // The host's end of a stream: the parts of partitions, one after the other.
  struct Transfer {
    std::vector<const std::byte*> sources;
    std::vector<std::byte*> targets;
    std::size_t bytes = 0, next = 0;
  };
  void addTransfers(PlanLowering& lowering, std::vector<poplar::program::Program>& programs);
  void connectTransfers();

  const Plan& plan_;
  poplar::Device device_;
  std::unique_ptr<poplar::Engine> engine_;
  std::size_t runs_ = 0;                       // since the profile was reset
  std::vector<Transfer> uploads_, downloads_;  // by parameter, by result
  std::vector<PlanLowering::Callback> callbacks_;
  std::vector<PlanLowering::LiveMemory> live_memory_;
};

// ---- What the IPU Model accounts for, which no other engine has: model_profile.cpp alone knows the model ----

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
