// Which instruction set this machine runs.
#include <cstdlib>
#include <string_view>

#include "kernels.hpp"

namespace snnjax {

namespace portable {
extern const Kernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
#endif

namespace {

const Kernels& chooseKernels() {
#if defined(__x86_64__)
  // SNNJAX_CPU_ISA names a lesser set than the machine has, for tests.
  const char* wish = std::getenv("SNNJAX_CPU_ISA");
  const std::string_view limit = wish == nullptr ? "avx512" : wish;
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vbmi2");
  if (has_avx512 && limit == "avx512") return avx512::kKernels;
  if (has_avx2 && limit != "portable") return avx2::kKernels;
#endif
  return portable::kKernels;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = chooseKernels();
  return chosen;
}

}  // namespace snnjax

// What was chosen, by name: measurements say what they were taken with.
extern "C" const char* snnjax_instruction_set() { return snnjax::kernels().name; }
