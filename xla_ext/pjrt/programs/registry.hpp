// The programs that live in this process, by their fingerprint.
#pragma once

#include <memory>
#include <span>

#include "export.hpp"
#include "pjrt/programs/program.hpp"

namespace snnjax::pjrt {

// Builds and registers a program. Its fingerprint says what it computes and for which IPUs; the second of two live
// programs that compute the same has a number appended.
std::shared_ptr<CompiledProgram> load(Client& client, std::span<const std::byte> plan);
void forget(const CompiledProgram& program);

}  // namespace snnjax::pjrt

// The profile (JSON) of all runs of a program since it was last reset, after those under way. Returns 0, or what
// absl::StatusCode has for errors; `give` takes the profile, or the error's message.
extern "C" SNNJAX_EXPORT int snnjax_ipu_profile(const char* fingerprint, std::size_t fingerprint_size,
                                                std::int32_t reset, void* result,
                                                void (*give)(void* result, const char* bytes, std::size_t size));
