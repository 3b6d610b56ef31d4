// From StableHLO to a program, by the lowering in Python.
#pragma once

#include <cstddef>
#include <cstdint>

#include "export.hpp"
#include "pjrt/devices/host_callback.hpp"

namespace snnjax::pjrt {

class Table;
void addCompileFunctions(Table& table);

}  // namespace snnjax::pjrt

extern "C" {

// `snnjax.ipu.lowering.lower`: from a program (StableHLO) and its options (a serialised xla.CompileOptionsProto) to a
// plan, after so many others of it did not fit; to none if there is no other. Returns 0, or what absl::StatusCode has
// for errors.
using SnnjaxIpuLower = int (*)(const char* program, std::size_t program_size, const char* options,
                               std::size_t options_size, std::int32_t attempt, void* result, SnnjaxIpuGive give);

SNNJAX_EXPORT void snnjax_ipu_set_lowering(SnnjaxIpuLower lower);
}
