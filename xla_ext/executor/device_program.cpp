#include "executor/device_program.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <poplar/IPUModel.hpp>
#include <poplin/codelets.hpp>
#include <popops/codelets.hpp>

#include "executor/plan/options.hpp"

namespace snnjax::executor {
namespace {

// Bytes that take as long as a request: its handshakes of 124 us at 20.2 GB/s (ipu_model/README.md).
constexpr std::size_t kRequest = 2'500'000;
constexpr std::size_t kSmall = 16384;  // bytes, which take less than a hundredth of that

poplar::Device createDevice(const Plan& plan, const SystemOptions& system) {
  const PlanOptions options = optionsOf(plan);
  poplar::IPUModel model((options.version.empty() ? system.version : options.version).c_str());
  const std::size_t tiles = options.tiles > 0 ? options.tiles : system.num_tiles;
  if (tiles > model.tilesPerIPU) {
    refuseOption("tiles", "be an integer from 1 to " + std::to_string(model.tilesPerIPU), std::to_string(tiles));
  }
  if (tiles > 0) model.tilesPerIPU = static_cast<unsigned>(tiles);
  model.numIPUs = static_cast<unsigned>(plan.num_partitions) * options.ipus;
  return model.createDevice();
}

// Results and parameters of one type, in order, except those that share their memory.
std::vector<DeviceProgram::Kept> keptOf(const Plan& plan) {
  std::vector<bool> taken(plan.main.results.size(), false), paired(plan.main.parameters.size(), false);
  for (const auto& [parameter, result] : plan.aliases) taken[result] = paired[parameter] = true;
  for (const std::size_t parameter : plan.donated) paired[parameter] = true;
  std::vector<DeviceProgram::Kept> kept;
  for (std::size_t parameter = 0; parameter < paired.size(); ++parameter) {
    const ArrayType& type = plan.types[plan.main.parameters[parameter]];
    for (std::size_t result = 0; !paired[parameter] && result < taken.size(); ++result) {
      if (taken[result] || plan.types[plan.main.results[result]] != type || type.numElements() == 0) continue;
      taken[result] = paired[parameter] = true;
      kept.push_back({parameter, result});
    }
  }
  return kept;
}

}  // namespace

DeviceProgram::DeviceProgram(const Plan& plan, const SystemOptions& options)
    : plan_(plan), device_(createDevice(plan, options)), kept_(keptOf(plan)) {
  poplar::Graph scratch(device_.getTarget());
  checkCodelets(scratch);
  poplar::Graph graph(device_.getTarget(), poplar::replication_factor(static_cast<unsigned>(plan.num_partitions)));
  poplin::addCodelets(graph);
  popops::addCodelets(graph);
  PlanLowering lowering(graph, plan);
  Programs programs;
  const poplar::program::Sequence main = lowering.lowerMain();
  addUploads(lowering, programs);
  main_ = static_cast<unsigned>(programs.size());
  programs.push_back(main);
  addKeeping(lowering, programs);
  addDownloads(lowering, programs);
  engine_ = std::make_unique<poplar::Engine>(graph, programs);
  engine_->load(device_);
  connectTransfers();
  callbacks_ = lowering.callbacks();
  live_memory_ = lowering.liveMemory();
}

DeviceProgram::Group DeviceProgram::addGroup(Programs& programs, const Programs& singles,
                                             std::vector<std::size_t> members) {
  poplar::program::Sequence all;
  for (const std::size_t member : members) all.add(singles[member]);
  programs.push_back(all);
  return {std::move(members), static_cast<unsigned>(programs.size() - 1)};
}

// The host reorders data for the tiles (`true`).
void DeviceProgram::addUploads(PlanLowering& lowering, Programs& programs) {
  poplar::Graph& graph = lowering.graph();
  std::vector<bool> replaced(plan_.main.parameters.size(), false);
  for (const auto& [parameter, result] : plan_.aliases) replaced[parameter] = true;
  for (const Kept& pair : kept_) replaced[pair.parameter] = true;
  Programs singles;
  std::vector<std::size_t> all, inputs;
  for (std::size_t i = 0; i < plan_.main.parameters.size(); ++i) {
    const poplar::Tensor tensor = lowering.parameter(i).flatten();
    const std::string name = "argument " + std::to_string(i);
    const auto stream = graph.addHostToDeviceFIFO(name, tensor.elementType(), tensor.numElements());
    uploads_.push_back({{}, {}, tensor.numElements() * tensor.elementType().size(), 0});
    singles.push_back(poplar::program::Copy(stream, tensor, true));
    if (uploads_.back().bytes == 0) continue;
    all.push_back(i);
    if (!replaced[i]) inputs.push_back(i);
  }
  first_upload_ = static_cast<unsigned>(programs.size());
  programs.insert(programs.end(), singles.begin(), singles.end());
  for (const std::vector<std::size_t>& members : {all, inputs}) {
    if (members.size() > 1) upload_groups_.push_back(addGroup(programs, singles, members));
  }
}

void DeviceProgram::addDownloads(PlanLowering& lowering, Programs& programs) {
  poplar::Graph& graph = lowering.graph();
  Programs singles;
  const auto add = [&](const poplar::Tensor& tensor, const std::string& name) {
    const auto stream = graph.addDeviceToHostFIFO(name, tensor.elementType(), tensor.numElements());
    downloads_.push_back({{}, {}, tensor.numElements() * tensor.elementType().size(), 0});
    singles.push_back(poplar::program::Copy(tensor, stream, true));
  };
  for (std::size_t i = 0; i < plan_.main.results.size(); ++i) {
    add(lowering.result(i).flatten(), "result " + std::to_string(i));
    const bool replaces = std::ranges::any_of(plan_.aliases, [i](const auto& pair) { return pair.second == i; });
    const std::size_t bytes = downloads_.back().bytes;
    if (bytes > 0) (!replaces && bytes <= kSmall ? small_ : others_).push_back(i);
  }
  for (const Kept& pair : kept_) {
    add(lowering.parameter(pair.parameter).flatten(), "kept argument " + std::to_string(pair.parameter));
  }
  first_download_ = static_cast<unsigned>(programs.size());
  programs.insert(programs.end(), singles.begin(), singles.end());
  for (const std::vector<std::size_t>& members : {small_, others_}) {
    if (members.size() > 1) download_groups_.push_back(addGroup(programs, singles, members));
  }
}

std::size_t DeviceProgram::bytesOf(const std::vector<std::size_t>& results) const {
  std::size_t bytes = 0;
  for (const std::size_t each : results) bytes += downloads_[each].bytes;
  return bytes;
}

std::vector<std::size_t> DeviceProgram::together(std::vector<std::size_t> results) const {
  std::ranges::sort(results);
  results.erase(std::unique(results.begin(), results.end()), results.end());
  std::vector<std::size_t> of_small, of_others, all;
  std::ranges::set_intersection(results, small_, std::back_inserter(of_small));
  std::ranges::set_intersection(results, others_, std::back_inserter(of_others));
  if (!of_small.empty()) of_small = small_;
  const std::size_t more = bytesOf(others_) - bytesOf(of_others);
  if (of_others.size() > 1 && more < (of_others.size() - 1) * kRequest) of_others = others_;
  std::ranges::merge(of_small, of_others, std::back_inserter(all));
  return all;
}

// All copies of a group share one exchange, if they need any: values of one shape have one layout.
void DeviceProgram::addKeeping(PlanLowering& lowering, Programs& programs) {
  Programs singles;
  std::vector<std::size_t> all;
  for (const Kept& pair : kept_) {
    all.push_back(singles.size());
    singles.push_back(poplar::program::Copy(lowering.result(pair.result), lowering.parameter(pair.parameter)));
  }
  first_keep_ = static_cast<unsigned>(programs.size());
  programs.insert(programs.end(), singles.begin(), singles.end());
  if (all.size() > 1) keep_groups_.push_back(addGroup(programs, singles, all));
}

void DeviceProgram::connectTransfers() {
  for (std::size_t i = 0; i < uploads_.size(); ++i) {
    engine_->connectStreamToCallback("argument " + std::to_string(i), [this, i](void* data) {
      Transfer& transfer = uploads_[i];
      std::memcpy(data, transfer.sources[transfer.next++], transfer.bytes);
    });
  }
  for (std::size_t i = 0; i < downloads_.size(); ++i) {
    const std::size_t results = plan_.main.results.size();
    const std::string name =
        i < results ? "result " + std::to_string(i) : "kept argument " + std::to_string(kept_[i - results].parameter);
    engine_->connectStreamToCallback(name, [this, i](void* data) {
      Transfer& transfer = downloads_[i];
      std::memcpy(transfer.targets[transfer.next++], data, transfer.bytes);
    });
  }
}

void DeviceProgram::runAll(std::vector<std::size_t> wanted, const std::vector<Group>& groups, unsigned first_single) {
  for (const Group& group : groups) {
    if (!std::ranges::includes(wanted, group.members)) continue;
    engine_->run(group.program);
    std::vector<std::size_t> rest;
    std::ranges::set_difference(wanted, group.members, std::back_inserter(rest));
    wanted = std::move(rest);
  }
  for (const std::size_t each : wanted) engine_->run(first_single + static_cast<unsigned>(each));
}

void DeviceProgram::upload(const std::vector<std::size_t>& parameters, std::vector<Sources> from) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Transfer& transfer = uploads_[parameters[i]];
    if (transfer.bytes == 0) continue;
    transfer.sources = std::move(from[i]);
    transfer.next = 0;
    wanted.push_back(parameters[i]);
  }
  runAll(std::move(wanted), upload_groups_, first_upload_);
}

void DeviceProgram::keep(const std::vector<std::size_t>& pairs) { runAll(pairs, keep_groups_, first_keep_); }

void DeviceProgram::run() {
  engine_->run(main_);
  ++runs_;
}

void DeviceProgram::resetProfile() {
  engine_->resetExecutionProfile();
  runs_ = 0;
}

void DeviceProgram::download(const std::vector<std::size_t>& places, std::vector<Targets> to, bool counted) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < places.size(); ++i) {
    Transfer& transfer = downloads_[places[i]];
    if (transfer.bytes == 0) continue;
    transfer.targets = std::move(to[i]);
    transfer.next = 0;
    wanted.push_back(places[i]);
  }
  if (!counted) engine_->disableExecutionProfiling();
  runAll(std::move(wanted), download_groups_, first_download_);
  if (!counted) engine_->enableExecutionProfiling();
}

namespace {

// Splits the bytes that a callback returned.
void writeResults(const std::string& bytes, const std::vector<ArrayType>& types, poplar::ArrayRef<void*> outputs) {
  std::size_t expected = 0;
  for (const ArrayType& type : types) expected += type.numBytes();
  if (bytes.size() != expected) {
    throw Error(ErrorCode::kInternal, "callback: `results` must have " + std::to_string(expected) + " bytes, got " +
                                          std::to_string(bytes.size()) + ". Compile the program again.");
  }
  const char* next = bytes.data();
  for (std::size_t i = 0; i < types.size(); ++i) {
    std::memcpy(outputs[i], next, types[i].numBytes());
    next += types[i].numBytes();
  }
}

}  // namespace

void DeviceProgram::connectCallbacks(const Callback& callback) {
  for (const PlanLowering::Callback& each : callbacks_) {
    const auto call = [callback, each](poplar::ArrayRef<const void*> inputs, poplar::ArrayRef<void*> outputs) {
      writeResults(callback(each.number, each.types, inputs), each.results, outputs);
    };
    engine_->connectHostFunction(each.handle, 0, call);
  }
}

std::string DeviceProgram::profile() const {
  return modelProfile(*engine_, {plan_.name, runs_, live_memory_, plan_.options});
}

std::size_t DeviceProgram::tileMemory() const { return modelMemory(*engine_); }

}  // namespace snnjax::executor
