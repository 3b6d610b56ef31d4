#include "executor/storages.hpp"

#include <algorithm>
#include <numeric>

namespace snnjax::executor {
poplar::Type unsignedOf(std::size_t bytes) {
  return bytes == 1 ? poplar::UNSIGNED_CHAR : bytes == 2 ? poplar::UNSIGNED_SHORT : poplar::UNSIGNED_INT;
}

Storages::Storages(poplar::Graph& graph, const Layouts& layouts)
    : graph_(graph), layouts_(layouts), live_(graph.getTarget().getNumTiles()) {}

StorageId Storages::take(std::size_t element_bytes, const Shape& shape, const poplar::DebugContext& debug) {
  return take(Key{element_bytes, layouts_.cuts(shape)}, debug);
}

StorageId Storages::takeScratch(std::size_t element_bytes, const std::vector<std::size_t>& counts,
                                const poplar::DebugContext& debug) {
  std::vector<std::size_t> cuts(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), cuts.begin() + 1);
  return take(Key{element_bytes, std::move(cuts)}, debug);
}

void Storages::add(const Key& key, const poplar::DebugContext& debug) {
  const poplar::Tensor memory = graph_.addVariable(unsignedOf(key.first), {key.second.back()}, debug);
  map(memory, key.second);
  const auto pool = pools_.try_emplace(key).first;
  pool->second.push_back(storages_.size());
  storages_.push_back({memory, pool, memory, key, 0, 0});
}

StorageId Storages::take(const Key& key, const poplar::DebugContext& debug) {
  count(key, true);
  if (const auto known = poolFor(key); known != pools_.end()) return takeFrom(known, key);
  add(key, debug);
  return takeFrom(pools_.find(key), key);
}

// The pool of the smallest storages that hold the key's elements on each tile.
Storages::Pools::iterator Storages::poolFor(const Key& key) {
  constexpr std::size_t kMostWaste = 2;  // times what is needed
  if (const auto exact = pools_.find(key); exact != pools_.end() && !exact->second.empty()) return exact;
  const std::vector<std::size_t>& cuts = key.second;
  const auto holdsAll = [&](const std::vector<std::size_t>& own) {
    if (own.back() < cuts.back() || own.back() > kMostWaste * cuts.back()) return false;
    for (std::size_t tile = 0; tile + 1 < cuts.size(); ++tile) {
      if (own[tile + 1] - own[tile] < cuts[tile + 1] - cuts[tile]) return false;
    }
    return true;
  };
  auto best = pools_.end();
  for (auto pool = pools_.begin(); pool != pools_.end(); ++pool) {
    if (pool->second.empty() || pool->first.first != key.first || !holdsAll(pool->first.second)) continue;
    if (best == pools_.end() || pool->first.second.back() < best->first.second.back()) best = pool;
  }
  return best;
}

StorageId Storages::takeFrom(Pools::iterator pool, const Key& key) {
  const StorageId id = pool->second.back();
  pool->second.pop_back();
  Storage& storage = storages_[id];
  storage.users = 1;
  if (storage.use == key) return id;
  const std::vector<std::size_t>&own = pool->first.second, &cuts = key.second;
  std::vector<poplar::Tensor> pieces;
  for (std::size_t tile = 0; tile + 1 < cuts.size(); ++tile) {
    const std::size_t size = cuts[tile + 1] - cuts[tile];
    if (size > 0) pieces.push_back(storage.whole.slice(own[tile], own[tile] + size));
  }
  storage.memory = pool->first == key ? storage.whole : poplar::concat(pieces);
  storage.use = key;
  return id;
}

void Storages::map(const poplar::Tensor& memory, const std::vector<std::size_t>& cuts) {
  for (std::size_t tile = 0; tile + 1 < cuts.size(); ++tile) {
    if (cuts[tile] == cuts[tile + 1]) continue;
    graph_.setTileMapping(memory.slice(cuts[tile], cuts[tile + 1]), static_cast<unsigned>(tile));
  }
}

bool Storages::fits(StorageId id, std::size_t element_bytes, const Shape& shape) const {
  const Key& use = storages_[id].use;
  return use.first == element_bytes && use.second == layouts_.cuts(shape);
}

void Storages::addUser(StorageId id) { ++storages_[id].users; }

void Storages::release(StorageId id) {
  --storages_[id].users;
  returnUnused(id);
}

void Storages::endHold(StorageId id) {
  --storages_[id].holds;
  returnUnused(id);
}

void Storages::returnUnused(StorageId id) {
  Storage& storage = storages_[id];
  if (storage.users > 0 || storage.holds > 0) return;
  storage.pool->second.push_back(id);
  count(storage.use, false);
}

void Storages::count(const Key& key, bool more) {
  for (std::size_t tile = 0; tile < live_.size(); ++tile) {
    const std::uint64_t bytes = (key.second[tile + 1] - key.second[tile]) * key.first;
    live_[tile] = more ? live_[tile] + bytes : live_[tile] - bytes;
  }
}

Storages::Live Storages::live() const {
  return {std::accumulate(live_.begin(), live_.end(), std::uint64_t{0}), *std::max_element(live_.begin(), live_.end())};
}

}  // namespace snnjax::executor
