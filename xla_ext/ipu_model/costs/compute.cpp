// The barrel of a tile: six workers, each of which issues one bundle every six cycles, and a supervisor that starts
// them.
#include <algorithm>

#include "costs/costs.hpp"

namespace ipu_model {

TileSchedule::TileSchedule(const Chip& chip) : chip_(&chip) {}

void TileSchedule::addVertex(std::uint64_t issue_slots) {
  used_ = true;
  *std::min_element(free_at_, free_at_ + chip_->workers) += issue_slots * chip_->workers;
}

void TileSchedule::addMultiVertex(std::span<const std::uint64_t> issue_slots,
                                  std::optional<std::uint64_t> supervisor_cycles) {
  // The first launch of a compute set is counted by cycles(); each further one waits for the workers to return.
  const std::uint64_t between = used_ ? chip_->launch_cycles + chip_->rendezvous_cycles : 0;
  joinWorkers(between + supervisor_cycles.value_or(0));
  for (std::size_t w = 0; w < issue_slots.size() && w < chip_->workers; ++w) {
    free_at_[w] += issue_slots[w] * chip_->workers;
  }
}

void TileSchedule::addSupervisorVertex(std::uint64_t tile_cycles) {
  joinWorkers((used_ ? chip_->rendezvous_cycles : 0) + tile_cycles);
}

void TileSchedule::joinWorkers(std::uint64_t then) {
  std::fill_n(free_at_, chip_->workers, *std::max_element(free_at_, free_at_ + chip_->workers) + then);
  used_ = true;
}

std::uint64_t TileSchedule::cycles() const {
  if (!used_) return 0;
  return chip_->launch_cycles + chip_->rendezvous_cycles + *std::max_element(free_at_, free_at_ + chip_->workers);
}

std::uint64_t tileCopyCycles(const Chip& chip, std::uint64_t bytes, std::uint64_t pieces) {
  if (bytes == 0) return 0;
  const std::uint64_t moved = (bytes + chip.copy_bytes_per_cycle - 1) / chip.copy_bytes_per_cycle;
  return chip.copy_call_cycles + moved + (pieces > 1 ? pieces - 1 : 0) * chip.copy_piece_cycles;
}

}  // namespace ipu_model
