#include "pjrt/programs/program.hpp"

#include "pjrt/interface/named_value.hpp"
#include "pjrt/programs/registry.hpp"

namespace snnjax::pjrt {
namespace {

// The IPUs of the partitions: those of the plan, else the first ones.
std::vector<Device*> devicesOf(const executor::Plan& plan, const Client& client) {
  std::vector<Device*> devices;
  for (std::size_t partition = 0; partition < plan.num_partitions; ++partition) {
    const std::size_t id = plan.devices.empty() ? partition : plan.devices.at(partition);
    devices.push_back(&client.device(static_cast<std::int64_t>(id)));
  }
  return devices;
}

void appendVarint(std::string& bytes, std::size_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

// message DeviceAssignmentProto {
//   int32 replica_count = 1; int32 computation_count = 2;
//   message ComputationDevice { repeated int64 replica_device_ids = 1; }  repeated ComputationDevice = 3; }
std::string assignmentProto(const std::vector<Device*>& devices) {
  std::string bytes = "\x08\x01\x10";
  appendVarint(bytes, devices.size());
  for (const Device* device : devices) {
    std::string ids = "\x0a", id;
    appendVarint(id, static_cast<std::size_t>(device->description.id));
    appendVarint(ids, id.size());
    ids += id;
    bytes += '\x1a';
    appendVarint(bytes, ids.size());
    bytes += ids;
  }
  return bytes;
}

std::vector<executor::ArrayType> typesOf(const executor::Plan& plan, const std::vector<executor::ValueId>& values,
                                         const std::vector<std::size_t>& complex) {
  std::vector<executor::ArrayType> types;
  for (const executor::ValueId value : values) types.push_back(plan.types[value]);
  for (const std::size_t place : complex) types[place] = executor::asComplex(plan.types[values[place]]);
  return types;
}

std::vector<NamedValue> propertiesOf(const executor::Cost& cost) {
  return {named("flops", static_cast<float>(cost.flops)),
          named("transcendentals", static_cast<float>(cost.transcendentals)),
          named("bytes accessed", static_cast<float>(cost.bytes_accessed))};
}

std::vector<bool> donatedOf(const executor::Plan& plan) {
  std::vector<bool> donated(plan.main.parameters.size());
  for (const std::size_t parameter : plan.donated) donated.at(parameter) = true;
  for (const auto& [parameter, result] : plan.aliases) donated.at(parameter) = true;
  return donated;
}

}  // namespace

Texts::Texts(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    data.push_back(text.data());
    sizes.push_back(text.size());
  }
}

CompiledProgram::~CompiledProgram() {
  for (Device* device : devices) device->unload(this);
  forget(*this);
}

CompiledProgram::CompiledProgram(Client& owner, std::span<const std::byte> bytes, std::string unique_fingerprint)
    : client(owner),
      executable(owner.system, bytes),
      parameters(typesOf(plan(), plan().main.parameters, plan().complex_parameters)),
      results(typesOf(plan(), plan().main.results, plan().complex_results)),
      fingerprint(std::move(unique_fingerprint)),
      devices(devicesOf(plan(), owner)),
      device_assignment(assignmentProto(devices)),
      donated(donatedOf(plan())),
      tile_memory(static_cast<std::int64_t>(executable.tileMemory() / devices.size())),
      cost(propertiesOf(executable.cost())),
      memory_kinds({}),
      parameter_shardings(plan().parameter_shardings),
      result_shardings(plan().result_shardings) {
  for (std::size_t partition = 0; partition < devices.size(); ++partition) {
    logical_ids.push_back({0, static_cast<int>(partition)});
  }
  for (std::size_t i = 0; i < numResults(); ++i) {
    const executor::ArrayType& type = result(i);
    result_dtypes.push_back(static_cast<int>(type.dtype));
    result_dims.insert(result_dims.end(), type.shape.begin(), type.shape.end());
    result_ranks.push_back(type.shape.size());
    memory_kinds.data.push_back(kMemoryKind.data());
    memory_kinds.sizes.push_back(kMemoryKind.size());
  }
}

}  // namespace snnjax::pjrt
