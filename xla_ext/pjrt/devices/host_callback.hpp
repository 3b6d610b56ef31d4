// jax.debug.print and the like: programs that call back into Python while they run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "executor/executable.hpp"
#include "export.hpp"

namespace snnjax::pjrt {

// Where Python puts bytes: a std::string.
void giveString(void* result, const char* bytes, std::size_t size);

// Called by the executor: passes the arrays to Python, returns the bytes of the results. Throws the error that Python
// reports.
std::string callHost(std::int64_t number, std::span<const std::shared_ptr<executor::Array>> arrays);

}  // namespace snnjax::pjrt

extern "C" {

// Takes what Python made: a plan, results, or the message of an error.
using SnnjaxIpuGive = void (*)(void* result, const char* bytes, std::size_t size);

// An array that lives as long as the call, row-major.
struct SnnjaxIpuArray {
  std::int64_t dtype;  // as PJRT numbers them
  std::size_t rank;
  const std::size_t* shape;
  const void* data;
};
// `snnjax.ipu.lowering.call_back`: returns 0, or what absl::StatusCode has for errors; `give` takes the
// bytes of the results, one array after the other, or the message.
using SnnjaxIpuCallback = int (*)(std::int64_t number, const SnnjaxIpuArray* arrays, std::size_t num_arrays,
                                  void* result, SnnjaxIpuGive give);

SNNJAX_EXPORT void snnjax_ipu_set_callback(SnnjaxIpuCallback callback);
}
