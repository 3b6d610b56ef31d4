#include "executor/device_program.hpp"

#include <cstring>
#include <poplar/IPUModel.hpp>

namespace snnjax::executor {
namespace {

std::string option(const Plan& plan, std::string_view name, const std::string& otherwise) {
  for (const auto& [key, value] : plan.options) {
    if (key == name) return value;
  }
  return otherwise;
}

unsigned numberOption(const Plan& plan, std::string_view name, std::size_t otherwise, std::size_t most) {
  const std::string text = option(plan, name, std::to_string(otherwise));
  const bool digits = !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == text.npos;
  const std::size_t number = digits ? std::stoul(text) : most + 1;
  if (number <= most) return static_cast<unsigned>(number);
  throw Error(ErrorCode::kInvalidArgument, "compile: `" + std::string(name) + "` must be a number up to " +
                                               std::to_string(most) + ", got \"" + text +
                                               "\". Leave the option out for the device's own.");
}

poplar::Device createDevice(const Plan& plan, const SystemOptions& options) {
  constexpr std::size_t kMostIpus = 64;  // of a partition
  poplar::IPUModel model(option(plan, "version", options.version).c_str());
  const unsigned tiles = numberOption(plan, "tiles", options.num_tiles, model.tilesPerIPU);
  if (tiles > 0) model.tilesPerIPU = tiles;
  const unsigned ipus = numberOption(plan, "ipus", 1, kMostIpus);
  model.numIPUs = static_cast<unsigned>(plan.num_partitions) * std::max(ipus, 1U);
  return model.createDevice();
}

}  // namespace

DeviceProgram::DeviceProgram(const Plan& plan, const SystemOptions& options)
    : plan_(plan), device_(createDevice(plan, options)) {
  poplar::Graph graph(device_.getTarget(), poplar::replication_factor(static_cast<unsigned>(plan.num_partitions)));
  PlanLowering lowering(graph, plan);
  std::vector<poplar::program::Program> programs;
  const poplar::program::Sequence main = lowering.lowerMain();
  addTransfers(lowering, programs);
  programs.insert(programs.begin() + static_cast<std::ptrdiff_t>(uploads_.size()), main);
  engine_ = std::make_unique<poplar::Engine>(graph, programs);
  engine_->load(device_);
  connectTransfers();
  callbacks_ = lowering.callbacks();
  live_memory_ = lowering.liveMemory();
}

// The programs of parameters, before the plan's own, and those of results behind it. Their data are put in the order of
// the tiles by the host (`true`).
void DeviceProgram::addTransfers(PlanLowering& lowering, std::vector<poplar::program::Program>& programs) {
  poplar::Graph& graph = lowering.graph();
  for (std::size_t i = 0; i < plan_.main.parameters.size(); ++i) {
    const poplar::Tensor tensor = lowering.parameter(i).flatten();
    const std::string name = "argument " + std::to_string(i);
    const auto stream = graph.addHostToDeviceFIFO(name, tensor.elementType(), tensor.numElements());
    uploads_.push_back({{}, {}, tensor.numElements() * tensor.elementType().size(), 0});
    programs.push_back(poplar::program::Copy(stream, tensor, true));
  }
  for (std::size_t i = 0; i < plan_.main.results.size(); ++i) {
    const poplar::Tensor tensor = lowering.result(i).flatten();
    const std::string name = "result " + std::to_string(i);
    const auto stream = graph.addDeviceToHostFIFO(name, tensor.elementType(), tensor.numElements());
    downloads_.push_back({{}, {}, tensor.numElements() * tensor.elementType().size(), 0});
    programs.push_back(poplar::program::Copy(tensor, stream, true));
  }
}

void DeviceProgram::connectTransfers() {
  for (std::size_t i = 0; i < uploads_.size(); ++i) {
    engine_->connectStreamToCallback("argument " + std::to_string(i), [this, i](void* data) {
      Transfer& transfer = uploads_[i];
      std::memcpy(data, transfer.sources[transfer.next++], transfer.bytes);
    });
  }
  for (std::size_t i = 0; i < downloads_.size(); ++i) {
    engine_->connectStreamToCallback("result " + std::to_string(i), [this, i](void* data) {
      Transfer& transfer = downloads_[i];
      std::memcpy(transfer.targets[transfer.next++], data, transfer.bytes);
    });
  }
}

void DeviceProgram::upload(std::size_t parameter, Sources from) {
  Transfer& transfer = uploads_[parameter];
  if (transfer.bytes == 0) return;
  transfer.sources = std::move(from);
  transfer.next = 0;
  engine_->run(static_cast<unsigned>(parameter));
}

void DeviceProgram::run() {
  engine_->run(static_cast<unsigned>(uploads_.size()));
  ++runs_;
}

void DeviceProgram::resetProfile() {
  engine_->resetExecutionProfile();
  runs_ = 0;
}

void DeviceProgram::download(std::size_t result, Targets to) {
  Transfer& transfer = downloads_[result];
  if (transfer.bytes == 0) return;
  transfer.targets = std::move(to);
  transfer.next = 0;
  engine_->run(static_cast<unsigned>(1 + uploads_.size() + result));
}

void DeviceProgram::connectCallbacks(const Callback& callback) {
  for (const PlanLowering::Callback& each : callbacks_) {
    const auto call = [callback, number = each.number, types = each.types](poplar::ArrayRef<const void*> inputs,
                                                                           poplar::ArrayRef<void*>) {
      callback(number, types, inputs);
    };
    engine_->connectHostFunction(each.handle, 0, call);
  }
}

std::string DeviceProgram::profile() const { return modelProfile(*engine_, {plan_.name, runs_, live_memory_}); }

std::size_t DeviceProgram::tileMemory() const { return modelMemory(*engine_); }

}  // namespace snnjax::executor
