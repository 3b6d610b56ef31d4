#include "executor/storages.hpp"

#include <algorithm>
#include <numeric>
#include <poplar/exceptions.hpp>

namespace snnjax::executor {
namespace {

std::vector<std::size_t> cutsOf(const std::vector<std::size_t>& counts) {
  std::vector<std::size_t> cuts(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), cuts.begin() + 1);
  return cuts;
}

}  // namespace

std::size_t roundedUp(std::size_t elements, std::size_t element_bytes) {
  const std::size_t unit = 8 / element_bytes;
  return (elements + unit - 1) / unit * unit;
}

poplar::Type unsignedOf(std::size_t bytes) {
  return bytes == 1 ? poplar::UNSIGNED_CHAR : bytes == 2 ? poplar::UNSIGNED_SHORT : poplar::UNSIGNED_INT;
}

void checkTileMemory(const poplar::Graph& graph, std::uint64_t bytes, const poplar::DebugContext& debug) {
  constexpr std::uint64_t kTooMuch = 2;
  const std::uint64_t limit = graph.getTarget().getBytesPerTile();
  if (bytes <= kTooMuch * limit) return;
  throw poplar::graph_memory_allocation_error("compile: `program` must fit in " + std::to_string(limit) +
                                              " bytes on each tile, got more than " + std::to_string(bytes) + " with " +
                                              debug.getPathName() + ". Use smaller arrays, or more tiles or IPUs.");
}

Storages::Storages(poplar::Graph& graph)
    : graph_(graph), live_(graph.getTarget().getNumTiles()), taken_(live_.size()) {}

StorageId Storages::take(std::size_t element_bytes, const Layout& layout, const poplar::DebugContext& debug) {
  Storage storage = storageOf(element_bytes, layout.blocks(), layout.cuts());
  takeFree(storage, freePieces(element_bytes, false));
  return takePieces(std::move(storage), debug);
}

StorageId Storages::takeScratch(std::size_t element_bytes, const std::vector<std::size_t>& counts,
                                const poplar::DebugContext& debug) {
  Storage storage = storageOf(element_bytes, {}, cutsOf(counts));
  for (const bool reserved : {true, false}) takeFree(storage, freePieces(element_bytes, reserved));
  return takePieces(std::move(storage), debug);
}

void Storages::reserveScratch(std::size_t element_bytes, const std::vector<std::size_t>& counts,
                              const poplar::DebugContext& debug) {
  const StorageId id = takePieces(storageOf(element_bytes, {}, cutsOf(counts)), debug);
  if (storages_[id].memory.numElements() == 0) return release(id);
  reserved_.resize(variables_.size(), false);
  reserved_.back() = true;
  release(id);
}

Storages::Storage Storages::storageOf(std::size_t element_bytes, const Blocks& blocks,
                                      const std::vector<std::size_t>& cuts) const {
  return {element_bytes, blocks, cuts, std::vector<Piece>(live_.size()), {}, 1, 0};
}

Storages::FreePieces& Storages::freePieces(std::size_t element_bytes, bool reserved) {
  return (reserved ? free_scratch_ : free_).try_emplace(element_bytes, live_.size()).first->second;
}

// The smallest free piece that is large enough; among equals, the one in the variable that the previous tile used, so
// that an array of the same layout can reuse another's memory in one piece.
void Storages::takeFree(Storage& storage, FreePieces& free) {
  const std::vector<std::size_t>& cuts = storage.cuts;
  std::size_t last_variable = variables_.size();
  for (std::size_t tile = 0; tile < live_.size(); ++tile) {
    if (cuts[tile] == cuts[tile + 1] || storage.pieces[tile].size > 0) continue;
    const std::size_t size = cuts[tile + 1] - cuts[tile] + storage.blocks.spare;
    auto best = free[tile].end();
    for (auto piece = free[tile].begin(); piece != free[tile].end(); ++piece) {
      if (piece->size < size) continue;
      const bool better = best == free[tile].end() || piece->size < best->size ||
                          (piece->size == best->size && piece->variable == last_variable);
      if (better) best = piece;
    }
    if (best == free[tile].end()) continue;
    const std::size_t taken = std::min(roundedUp(size, storage.element_bytes), best->size);
    storage.pieces[tile] = {best->variable, best->begin, taken};
    last_variable = best->variable;
    *best = {best->variable, best->begin + taken, best->size - taken};
    if (best->size == 0) free[tile].erase(best);
  }
}

// New memory for what has none yet.
StorageId Storages::takePieces(Storage storage, const poplar::DebugContext& debug) {
  addVariable(storage, debug);
  storage.memory = joined(storage, 0);
  count(storage, true);
  storages_.push_back(std::move(storage));
  return storages_.size() - 1;
}

// For the tiles that have no piece yet.
void Storages::addVariable(Storage& storage, const poplar::DebugContext& debug) {
  std::size_t elements = 0;
  for (std::size_t tile = 0; tile < live_.size(); ++tile) {
    if (storage.cuts[tile] == storage.cuts[tile + 1] || storage.pieces[tile].size > 0) continue;
    const std::size_t size = storage.cuts[tile + 1] - storage.cuts[tile] + storage.blocks.spare;
    storage.pieces[tile] = {variables_.size(), elements, size};
    elements += size;
    taken_[tile] += size * storage.element_bytes;
    checkTileMemory(graph_, taken_[tile], debug);
  }
  if (elements == 0 && storage.cuts.back() > 0) return;
  variables_.push_back(graph_.addVariable(unsignedOf(storage.element_bytes), {elements}, debug));
  for (std::size_t tile = 0; tile < live_.size(); ++tile) {
    const Piece& piece = storage.pieces[tile];
    if (piece.size == 0 || piece.variable + 1 != variables_.size()) continue;
    graph_.setTileMapping(variables_.back().slice(piece.begin, piece.begin + piece.size), static_cast<unsigned>(tile));
  }
}

// The pieces one after the other, each with its spare elements; pieces adjacent in their variable are merged.
poplar::Tensor Storages::joined(const Storage& storage, std::size_t spare) const {
  if (storage.cuts.back() == 0) return variables_.back();
  std::vector<poplar::Tensor> parts;
  Piece whole;
  const auto close = [&] {
    if (whole.size > 0) parts.push_back(variables_[whole.variable].slice(whole.begin, whole.begin + whole.size));
  };
  for (std::size_t tile = 0; tile < live_.size(); ++tile) {
    if (storage.cuts[tile] == storage.cuts[tile + 1]) continue;
    const std::size_t size = storage.cuts[tile + 1] - storage.cuts[tile] + spare;
    const Piece& piece = storage.pieces[tile];
    if (whole.size > 0 && piece.variable == whole.variable && piece.begin == whole.begin + whole.size) {
      whole.size += size;
      continue;
    }
    close();
    whole = {piece.variable, piece.begin, size};
  }
  close();
  return parts.size() == 1 ? parts[0] : poplar::concat(parts);
}

bool Storages::fits(StorageId id, std::size_t element_bytes, const Layout& layout) const {
  const Storage& storage = storages_[id];
  return storage.element_bytes == element_bytes && storage.blocks == layout.blocks() && storage.cuts == layout.cuts();
}

void Storages::release(StorageId id) {
  --storages_[id].users;
  freeUnused(id);
}

void Storages::endHold(StorageId id) {
  --storages_[id].holds;
  freeUnused(id);
}

// Merges a freed piece with adjacent free ones.
void Storages::freeUnused(StorageId id) {
  Storage& storage = storages_[id];
  if (storage.users > 0 || storage.holds > 0) return;
  count(storage, false);
  for (std::size_t tile = 0; tile < live_.size(); ++tile) {
    Piece piece = storage.pieces[tile];
    if (piece.size == 0) continue;
    const bool reserved = piece.variable < reserved_.size() && reserved_[piece.variable];
    FreePieces& free = freePieces(storage.element_bytes, reserved);
    std::erase_if(free[tile], [&piece](const Piece& other) {
      if (other.variable != piece.variable) return false;
      const bool before = other.begin + other.size == piece.begin, after = piece.begin + piece.size == other.begin;
      if (before) piece.begin = other.begin;
      if (before || after) piece.size += other.size;
      return before || after;
    });
    free[tile].push_back(piece);
  }
}

void Storages::count(const Storage& storage, bool more) {
  for (std::size_t tile = 0; tile < live_.size(); ++tile) {
    const std::uint64_t bytes = storage.pieces[tile].size * storage.element_bytes;
    live_[tile] = more ? live_[tile] + bytes : live_[tile] - bytes;
  }
}

Storages::Live Storages::live() const {
  return {std::accumulate(live_.begin(), live_.end(), std::uint64_t{0}), *std::max_element(live_.begin(), live_.end())};
}

}  // namespace snnjax::executor
