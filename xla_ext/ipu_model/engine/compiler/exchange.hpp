// Which words travel between tiles in one phase, counted from the transfers that the mappings ask for.
#pragma once

#include <cstdint>
#include <poplar/Target.hpp>
#include <span>
#include <vector>

#include "costs/costs.hpp"
#include "engine/executable/plan.hpp"

namespace ipu_model {

// Bytes of one tile that another needs. Addresses are in the tiles' own memory, where a tile's elements of a variable
// are contiguous, even if others lie between them in the variable. A tile may send to itself.
struct Transfer {
  std::uint32_t source;
  std::uint32_t destination;
  std::size_t from;
  std::size_t to;
  std::size_t bytes;
};

// Bytes that a tile copies within its own memory, in this many pieces.
struct TileCopy {
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 0;
};

class ExchangePhase {
 public:
  explicit ExchangePhase(const poplar::Target& target);

  // Bytes that stay on their tile travel with the others, or are copied on the tile where no others travel.
  void add(const Transfer& transfer) { transfers_.push_back(transfer); }
  void addCopy(std::uint32_t tile, const TileCopy& copy);

  // Counts and prices what was added. `memory` gets the code of the messages, and buffers for what arrives if
  // `buffered`: a copy writes to variables, but a vertex reads what other tiles hold from a buffer of its tile.
  ExchangeCost finish(std::vector<TileBytes>& memory, bool buffered);

 private:
  void merge();
  void countReceived();
  void countSent();
  void countPairs(std::span<const Transfer> same_words);
  std::uint64_t linkTime(ExchangeCost& cost) const;
  void addMemory(std::vector<TileBytes>& memory, bool buffered) const;

  const poplar::Target* target_;
  std::vector<Transfer> transfers_;
  std::vector<TileCopy> copies_;      // by tile; empty if there are none
  std::vector<TileTraffic> traffic_;  // by tile, of all IPUs
  std::vector<std::uint64_t> received_bytes_;
};

}  // namespace ipu_model
