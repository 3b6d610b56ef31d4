// A plan as an engine on a device, with programs that transfer arguments in and results out.
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
  // Of parameters in ascending order. All of them are one request, and so are those that no result replaces.
  void upload(const std::vector<std::size_t>& parameters, std::vector<Sources> from);
  void run();
  // From places, in ascending order: results are the first, then the parameters of kept(). `counted`: in the profile.
  void download(const std::vector<std::size_t>& places, std::vector<Targets> to, bool counted);
  // The results that come to the host when these are wanted: with a small one all small ones, and with several of the
  // others all others, if that is faster than a request each.
  std::vector<std::size_t> together(std::vector<std::size_t> results) const;

  // A result and a parameter of the same type, such as the state of a step: the result can move to the parameter's
  // place without the host.
  struct Kept {
    std::size_t parameter, result;
  };
  const std::vector<Kept>& kept() const { return kept_; }
  void keep(const std::vector<std::size_t>& pairs);

  // Called for callbacks, with arrays of one partition.
  using Callback =
      std::function<std::string(std::int64_t, const std::vector<ArrayType>&, poplar::ArrayRef<const void*>)>;
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
  using Programs = std::vector<poplar::program::Program>;
  // Programs of some copies, one after the other, and the number by which the engine runs them.
  struct Group {
    std::vector<std::size_t> members;
    unsigned program = 0;
  };
  Group addGroup(Programs& programs, const Programs& singles, std::vector<std::size_t> members);
  std::size_t bytesOf(const std::vector<std::size_t>& results) const;
  // The whole group if all of it is wanted, the rest one by one.
  void runAll(std::vector<std::size_t> wanted, const std::vector<Group>& groups, unsigned first_single);
  void addUploads(PlanLowering& lowering, Programs& programs);
  void addDownloads(PlanLowering& lowering, Programs& programs);
  void addKeeping(PlanLowering& lowering, Programs& programs);
  void connectTransfers();

  const Plan& plan_;
  poplar::Device device_;
  std::unique_ptr<poplar::Engine> engine_;
  std::size_t runs_ = 0;                       // since the profile was reset
  std::vector<Transfer> uploads_, downloads_;  // by parameter, by place
  std::vector<std::size_t> small_, others_;    // results, in ascending order
  std::vector<Kept> kept_;
  std::vector<Group> upload_groups_, download_groups_, keep_groups_;
  unsigned first_upload_ = 0, first_download_ = 0, first_keep_ = 0, main_ = 0;  // programs of the engine
  std::vector<PlanLowering::Callback> callbacks_;
  std::vector<PlanLowering::LiveMemory> live_memory_;
};

// ---- Accounts that only the IPU Model keeps: model_profile.cpp alone knows the model ----

// Of a program: how often it ran since its profile was reset, and the memory that values take while it runs.
struct ProgramFacts {
  std::string name;
  std::size_t runs;
  std::vector<PlanLowering::LiveMemory> live_memory;
  std::vector<std::pair<std::string, std::string>> options;  // of the plan, with its facts
};

// A JSON object (ipu_model/profile.hpp) of all runs since the engine's last reset, with these facts.
std::string modelProfile(const poplar::Engine& engine, const ProgramFacts& facts);
// Bytes in use, of all tiles.
std::size_t modelMemory(const poplar::Engine& engine);

}  // namespace snnjax::executor
