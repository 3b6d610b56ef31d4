#include "pjrt/programs/registry.hpp"

#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "pjrt/interface/errors.hpp"

namespace snnjax::pjrt {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<CompiledProgram>, std::less<>> programs;
};

Registry& registry() {
  static auto& registry = *new Registry;  // never destroyed: programs may outlive everything else
  return registry;
}

// FNV-1a, 64 bits.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) state_ = (state_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
  std::string toString() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(state_));
    return digits;
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325;
};

std::string fingerprintOf(const Client& client, std::span<const std::byte> plan) {
  const auto& options = client.system->options();
  const std::string ipus = options.version + "/" + std::to_string(options.num_tiles);
  Hash hash;
  hash.add(std::as_bytes(std::span(ipus)));
  hash.add(plan);
  return hash.toString();
}

// The fingerprint, reserved for one program.
std::string reserve(const std::string& fingerprint) {
  const std::lock_guard lock(registry().mutex);
  std::string unique = fingerprint;
  for (int number = 2; !registry().programs.try_emplace(unique).second; ++number) {
    unique = fingerprint + "-" + std::to_string(number);
  }
  return unique;
}

void release(const std::string& fingerprint) {
  const std::lock_guard lock(registry().mutex);
  registry().programs.erase(fingerprint);
}

std::shared_ptr<CompiledProgram> find(std::string_view fingerprint) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().programs.find(fingerprint);
  auto program = found == registry().programs.end() ? nullptr : found->second.lock();
  if (program == nullptr) {
    throw Failure(ErrorCode::kInvalidArgument, "profile: `fingerprint` must be that of a loaded program, got " +
                                                   std::string(fingerprint) + ". Compile it again.");
  }
  return program;
}

}  // namespace

std::shared_ptr<CompiledProgram> load(Client& client, std::span<const std::byte> plan) {
  std::string fingerprint = reserve(fingerprintOf(client, plan));
  try {
    // It is destroyed in a task: its arrays leave the tiles, which nothing may use meanwhile.
    const auto end = [](CompiledProgram* program) {
      program->client.queue.push([program] { delete program; }, Queue::Kind::kShort);
    };
    const std::shared_ptr<CompiledProgram> program(new CompiledProgram(client, plan, fingerprint), end);
    const std::lock_guard lock(registry().mutex);
    registry().programs[fingerprint] = program;
    return program;
  } catch (...) {
    release(fingerprint);
    throw;
  }
}

void forget(const CompiledProgram& program) { release(program.fingerprint); }

}  // namespace snnjax::pjrt

int snnjax_ipu_profile(const char* fingerprint, std::size_t fingerprint_size, std::int32_t reset, void* result,
                       void (*give)(void* result, const char* bytes, std::size_t size)) {
  using namespace snnjax::pjrt;
  try {
    Queue::refuseInside("profile");
    const auto program = find({fingerprint, fingerprint_size});
    program->client.queue.drain();
    const std::string profile = program->executable.profile();
    if (reset != 0) program->executable.resetProfile();
    give(result, profile.data(), profile.size());
    return 0;
  } catch (const std::exception& exception) {
    const Failure failure = snnjax::errorOf(exception);
    const std::string_view message = failure.what();
    give(result, message.data(), message.size());
    return static_cast<int>(failure.code());
  }
}
