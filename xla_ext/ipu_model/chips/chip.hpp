// Facts about each chip: one table, every figure with its source in chips.cpp. Cycles are those of a tile.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ipu_model {

inline constexpr unsigned kMaxWorkers = 6;

struct Chip {
  std::string_view name;          // as SNNJAX_IPU_VERSION takes it
  std::string_view architecture;  // Poplar's name of the target: ipu1, ipu2, ipu21

  // The chip.
  std::uint32_t tiles;
  std::uint32_t workers;      // hardware contexts of a tile besides its supervisor; each issues every `workers` cycles
  double clock_hz;            // of the tiles
  std::uint32_t tile_memory;  // bytes
  std::uint32_t interleaved_from;  // bytes into tile memory where interleaved elements begin
  std::uint32_t memory_element;    // bytes of one memory element
  std::uint32_t repeat_count_max;  // largest count of a rpt loop

  // Compute.
  std::uint32_t launch_cycles;         // the supervisor starts all workers, or one vertex after another
  std::uint32_t rendezvous_cycles;     // from the end of the last worker until the supervisor goes on
  std::uint32_t copy_call_cycles;      // a copy within a tile, besides its bytes
  std::uint32_t copy_bytes_per_cycle;  // by all workers together
  std::uint32_t copy_piece_cycles;     // for each further contiguous run

  // Exchange within the chip.
  std::uint32_t exchange_bytes_per_cycle;  // of one tile, in either direction
  std::uint32_t
      paired_words_min;  // from this length on the two tiles of a pair receive one stream at twice the rate; 0: never
  std::uint32_t exchange_setup_cycles;   // from the sync to the first word
  std::uint32_t send_control_cycles;     // for each further message: the sender's address set
  std::uint32_t receive_control_cycles;  // for each further message: source and pointer switched
  std::uint32_t memory_cycles;           // from the switched input to memory, in row 0 of the chip
  std::uint32_t memory_cycles_per_row;

  // Synchronisation.
  std::uint32_t ipu_sync_cycles;  // of all tiles of one IPU
  double hop_seconds;             // of a sync signal between neighbouring IPUs, one way

  // Links and host.
  double link_bytes_per_second;   // of one link, one way, as far as data fill it
  std::uint32_t pair_links;       // between the two IPUs of a pair
  std::uint32_t ladder_links;     // from an IPU to each of the two of the next pair, and of the pair before
  double link_latency_seconds;    // of one hop
  double host_bytes_per_second;   // of one IPU
  double host_handshake_seconds;  // of the two of a request of streams
  double remote_latency_seconds;  // of one row of a remote buffer
};

std::span<const Chip> chips();

// By its name (mk1, mk2, bow, c600) or its architecture (ipu1, ipu2, ipu21); throws poplar::poplar_error.
const Chip& chipNamed(std::string_view name);

}  // namespace ipu_model
