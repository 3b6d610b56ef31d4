// The memory of values: variables in the layout of a shape, each for one value after the other.
#pragma once

#include <cstdint>
#include <map>
#include <poplar/Graph.hpp>
#include <string>
#include <utility>
#include <vector>

#include "executor/layouts.hpp"

namespace snnjax::executor {

using StorageId = std::size_t;

class Storages {
 public:
  Storages(poplar::Graph& graph, const Layouts& layouts);

  // Memory for an array of such elements, with one user: that of a storage without users, if one has enough on each
  // tile and not much too much, or new.
  StorageId take(std::size_t element_bytes, const Shape& shape, const poplar::DebugContext& debug);
  // Elements wherever somebody wants them: counts[t] on tile t.
  StorageId takeScratch(std::size_t element_bytes, const std::vector<std::size_t>& counts,
                        const poplar::DebugContext& debug);
  // Whether take() of these would give what the storage is.
  bool fits(StorageId id, std::size_t element_bytes, const Shape& shape) const;

  // Flat, in memory order, of unsigned integers of the element's size.
  const poplar::Tensor& memory(StorageId id) const { return storages_[id].memory; }

  void addUser(StorageId id);
  // The last user leaves it to whoever takes it next, unless it is held.
  void release(StorageId id);
  // Holds keep a storage from being taken while it has no user: a loop's or a parameter's place.
  void hold(StorageId id) { ++storages_[id].holds; }
  void endHold(StorageId id);
  std::size_t users(StorageId id) const { return storages_[id].users; }

  // Bytes of storages in use: of all tiles, and of the fullest one.
  struct Live {
    std::uint64_t bytes = 0, tile_bytes = 0;
  };
  Live live() const;

 private:
  using Key = std::pair<std::size_t, std::vector<std::size_t>>;  // bytes of an element; cuts of the memory by tile
  using Pools = std::map<Key, std::vector<StorageId>>;
  struct Storage {
    poplar::Tensor whole;   // a variable
    Pools::iterator pool;   // where it goes without users, by what it holds as a whole
    poplar::Tensor memory;  // what it is used for: the first elements of each tile
    Key use;
    std::size_t users = 0, holds = 0;
  };
  StorageId take(const Key& key, const poplar::DebugContext& debug);
  void add(const Key& key, const poplar::DebugContext& debug);
  StorageId takeFrom(Pools::iterator pool, const Key& key);
  Pools::iterator poolFor(const Key& key);
  void map(const poplar::Tensor& memory, const std::vector<std::size_t>& cuts);
  void count(const Key& key, bool more);
  void returnUnused(StorageId id);

  poplar::Graph& graph_;
  const Layouts& layouts_;
  std::vector<Storage> storages_;
  Pools pools_;                      // storages that nobody uses
  std::vector<std::uint64_t> live_;  // bytes of each tile
};

// The unsigned integer of as many bytes, in which memory is kept whatever its values mean.
poplar::Type unsignedOf(std::size_t bytes);

}  // namespace snnjax::executor
