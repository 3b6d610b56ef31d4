// Which instruction set this machine runs.
#include "choose_kernels.hpp"

#include <cstdlib>
#include <string_view>

#include "export.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace snnjax {

// Every machine of an architecture has its first set.
#if defined(__aarch64__)
namespace neon {
extern const Kernels kKernels;
}
namespace first = neon;
#else
namespace portable {
extern const Kernels kKernels;
}
namespace first = portable;
#endif
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
extern const Kernels kTileKernels;
}  // namespace avx512
#endif

namespace {

#if defined(__x86_64__)

// Whether this machine has a matrix unit for bfloat16 and the system lets the process use it, for which Linux wants to
// be asked (its documentation, arch/x86/xstate): it refuses where a signal's stack is too small for the tiles.
bool mayUseTiles() {
#if defined(__linux__)
  constexpr unsigned kFeatures = 7, kBfloat16 = 1U << 22, kTiles = 1U << 24;  // CPUID, in EDX
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(kFeatures, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kBfloat16) == 0 || (edx & kTiles) == 0) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

#endif

}  // namespace

std::vector<const Kernels*> kernelsOfMachine() {
  std::vector<const Kernels*> sets{&first::kKernels};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vbmi2");
  if (has_avx2) sets.push_back(&avx2::kKernels);
  if (has_avx512) sets.push_back(&avx512::kKernels);
  static const bool may_use_tiles = has_avx512 && mayUseTiles();
  if (may_use_tiles) sets.push_back(&avx512::kTileKernels);
#endif
  return sets;
}

namespace {

const Kernels& chooseKernels() {
  const std::vector<const Kernels*> sets = kernelsOfMachine();
  // SNNJAX_CPU_ISA names a smaller set than the machine has, for tests.
  const char* wish = std::getenv("SNNJAX_CPU_ISA");
  for (const Kernels* set : sets) {
    if (wish != nullptr && std::string_view(wish) == set->name) return *set;
  }
  return *sets.back();
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = chooseKernels();
  return chosen;
}

}  // namespace snnjax

// The name of the chosen set, for measurements to report.
extern "C" SNNJAX_EXPORT const char* snnjax_instruction_set() { return snnjax::kernels().name; }
