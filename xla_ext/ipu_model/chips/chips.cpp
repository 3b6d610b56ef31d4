// The numbers. "ipu.md n" is a section of the facts this project collected from public sources; [stack] is
// osmarks/ipu-stack, measurements of a C600; [tut6] is tutorial 6 of graphcore/examples (v3.2.0), run on a Mk2;
// [PopLibs] its cycle estimators, release 3.4.0. What is measured on one chip holds, in cycles, for all of them here.
#include "chips/chip.hpp"

#include <array>
#include <poplar/exceptions.hpp>
#include <string>

namespace ipu_model {
namespace {

constexpr std::uint32_t kKiB = 1024;

// Mk2, the base of the others.
constexpr Chip kMk2 = {
    .name = "mk2",
    .architecture = "ipu2",
    .tiles = 1472,                   // ipu.md 3.1
    .workers = 6,                    // ipu.md 3.1
    .clock_hz = 1.33e9,              // ipu.md 3.1: [tut6] counts 6,681,766 cycles for 5,023.9 us
    .tile_memory = 624 * kKiB,       // ipu.md 3.1
    .interleaved_from = 208 * kKiB,  // ipu.md 3.2
    .memory_element = 16 * kKiB,     // ipu.md 3.2
    .repeat_count_max = 0xffff,      // ipu.md 3.3
    .launch_cycles = 11,             // [PopLibs] supervisor overhead of a basic op
    // [tut6] on hardware: 28,300 cycles of compute are 8 rounds of 6 (4 * 143 + 10) and 2 rounds of 6 (2 * 7 + 10), the
    // issue slots of its two loops, and 2 (11 + 27) for the two compute sets. The 10 are good to +-1, so this to +-30.
    .rendezvous_cycles = 27,
    .copy_call_cycles = 288,        // [stack] measured; with 8 bytes a cycle, 8 KiB take 1,312 (measured 1,308)
    .copy_bytes_per_cycle = 8,      // [stack] Target::getMemcpyBytesPerCycle
    .copy_piece_cycles = 10,        // [stack] indexed transform of single elements: 10 cycles each
    .exchange_bytes_per_cycle = 4,  // ipu.md 3.1: 8 TB/s over all tiles
    .paired_words_min = 128,        // [stack] 64 items of 64 bits
    .exchange_setup_cycles =
        7,  // ipu.md 3.6: an isolated transfer ends 58 = 7 + 51 cycles after its words and its route
    // [stack] its prices: 2 to send, 2 to switch the source and 1 the pointer. The 160 cycles a fragment of ipu.md 3.6
    // were withdrawn by their source: 110 more pieces in one exchange took no longer.
    .send_control_cycles = 2,
    .receive_control_cycles = 3,
    .memory_cycles = 51,                                             // ipu.md 3.6
    .memory_cycles_per_row = 2,                                      // ipu.md 3.6
    .ipu_sync_cycles = 150,                                          // ipu.md 3.4: 100 ns on a C600 at 1.5 GHz
    .hop_seconds = 15e-9,                                            // ipu.md 3.4, [PopLibs]
    .link_bytes_per_second = 128.0 * kKiB * kKiB * kKiB / 8 * 0.85,  // ipu.md 3.8: 128 Gib/s, 85 % of it
    .pair_links = 4,                                                 // ipu.md 3.8
    .ladder_links = 2,                                               // ipu.md 3.8: 2 straight, 2 across
    .link_latency_seconds = 250e-9,                                  // ipu.md 3.4
    .host_bytes_per_second = 20.2e9,  // [tut6] on hardware: 40,044,000 bytes in 2,641,488 cycles of host exchange
    // graphcore/examples, popvision lightweight_profiling: a request of 4 bytes takes 159 to 166 thousand cycles, of
    // which two handshakes of 77 to 88; on a Mk2, if on the clock of 1.33 GHz, 62 us each. A whole trivial run takes
    // 120 us (lohedges/ipu).
    .host_handshake_seconds = 62e-6,
    // [stack] a call of four transfers of 0.86 MB in all takes 162 us longer than its computation.
    .remote_latency_seconds = 30e-6,
};

constexpr Chip mk1() {
  Chip chip = kMk2;
  chip.name = "mk1";
  chip.architecture = "ipu1";
  chip.tiles = 1216;                   // ipu.md 3.1
  chip.clock_hz = 1.6e9;               // ipu.md 3.1
  chip.tile_memory = 256 * kKiB;       // ipu.md 3.1
  chip.interleaved_from = 128 * kKiB;  // ipu.md 3.2
  chip.repeat_count_max = 0xfff;       // ipu.md 3.3
  return chip;
}

constexpr Chip bow() {
  Chip chip = kMk2;
  chip.name = "bow";
  chip.clock_hz = 1.85e9;  // ipu.md 3.1
  return chip;
}

constexpr Chip c600() {
  Chip chip = kMk2;
  chip.name = "c600";
  chip.architecture = "ipu21";
  chip.clock_hz = 1.5e9;  // ipu.md 3.1
  return chip;
}

constexpr std::array kChips = {kMk2, mk1(), bow(), c600()};

}  // namespace

std::span<const Chip> chips() { return kChips; }

const Chip& chipNamed(std::string_view name) {
  for (const Chip& chip : kChips) {
    if (name == chip.name) return chip;
  }
  for (const Chip& chip : kChips) {
    if (name == chip.architecture) return chip;  // ipu2: Mk2, not Bow
  }
  throw poplar::poplar_error("IPUModel: `ipuVersion` must be one of mk1, mk2, bow, c600, ipu1, ipu2, ipu21, got " +
                             std::string(name) + ". Choose the chip that the program is to run on.");
}

}  // namespace ipu_model
