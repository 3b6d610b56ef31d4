#include "pjrt/programs/compile.hpp"

#include <atomic>
#include <string>
#include <string_view>

#include "floating_point.hpp"
#include "pjrt/interface/table.hpp"
#include "pjrt/programs/registry.hpp"

namespace snnjax::pjrt {
namespace {

std::atomic<SnnjaxIpuLower> lower = nullptr;

std::span<const std::byte> bytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

void compile(ClientCompileArgs& args) {
  const FloatingPoint as_on_tiles(FE_DFL_ENV);  // constants are folded here
  const SnnjaxIpuLower to_plan = lower;
  if (to_plan == nullptr) {
    throw Failure(ErrorCode::kInvalidArgument,
                  "compile: `lowering` must be set by Python, got none. Import snnjax.ipu first.");
  }
  std::string plan;
  const int code = to_plan(args.program->code, args.program->code_size, args.compile_options, args.compile_options_size,
                           &plan, giveString);
  if (code != 0) throw Failure(static_cast<ErrorCode>(code), plan);
  args.executable = new LoadedExecutable{load(*args.client, bytesOf(plan))};
}

// Header of a serialised program: the IPUs it was compiled for. The order of sums depends on the tiles.
std::string headerOf(const Client& client) {
  const auto& options = client.system->options();
  return "snnjax program for IPUs " + options.version + "/" + std::to_string(options.num_tiles) + "\n";
}

void serialise(ExecutableSerializeArgs& args) {
  const CompiledProgram& program = *args.executable->program;
  const auto& plan = program.executable.serialised();
  auto* bytes = new std::string(headerOf(program.client));
  bytes->append(reinterpret_cast<const char*>(plan.data()), plan.size());
  args.serialized_bytes = bytes->data();
  args.serialized_bytes_size = bytes->size();
  args.serialized_executable = bytes;
  args.serialized_executable_deleter = [](void* owner) { delete static_cast<std::string*>(owner); };
}

void deserialise(ExecutableDeserializeAndLoadArgs& args) {
  const std::string_view bytes(args.serialized_executable, args.serialized_executable_size);
  const std::string header = headerOf(*args.client);
  if (!bytes.starts_with(header)) {
    refuse("deserialize_and_load", "serialized", "begin with \"" + header.substr(0, header.size() - 1) + "\"",
           "\"" + std::string(bytes.substr(0, bytes.substr(0, header.size()).find('\n'))) + "\"",
           "Compile the program again, or set SNNJAX_IPU_VERSION and SNNJAX_IPU_TILES as they were");
  }
  args.loaded_executable = new LoadedExecutable{load(*args.client, bytesOf(bytes.substr(header.size())))};
}

}  // namespace

void addCompileFunctions(Table& table) {
  table.add("Client_Compile", [](ClientCompileArgs& args) { compile(args); });
  table.add("Executable_Serialize", [](ExecutableSerializeArgs& args) { serialise(args); });
  table.add("Executable_DeserializeAndLoad", [](ExecutableDeserializeAndLoadArgs& args) { deserialise(args); });
}

}  // namespace snnjax::pjrt

void snnjax_ipu_set_lowering(SnnjaxIpuLower lower) { snnjax::pjrt::lower = lower; }
