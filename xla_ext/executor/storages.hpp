// The memory of values: on each tile a piece of a variable, reused once no value needs it.
#pragma once

#include <cstdint>
#include <map>
#include <poplar/Graph.hpp>
#include <string>
#include <vector>

#include "executor/layouts/layouts.hpp"

namespace snnjax::executor {

using StorageId = std::size_t;

class Storages {
 public:
  explicit Storages(poplar::Graph& graph);

  // Memory for an array of such elements, with one user. Tiles with too little free memory allocate more.
  StorageId take(std::size_t element_bytes, const Layout& layout, const poplar::DebugContext& debug);
  // Elements at any place: counts[t] on tile t.
  StorageId takeScratch(std::size_t element_bytes, const std::vector<std::size_t>& counts,
                        const poplar::DebugContext& debug);
  // Reserves memory for scratch alone, which is taken from there first: operations that run one after the other share
  // it, and no value splits it.
  void reserveScratch(std::size_t element_bytes, const std::vector<std::size_t>& counts,
                      const poplar::DebugContext& debug);
  // Whether the storage is one for such an array.
  bool fits(StorageId id, std::size_t element_bytes, const Layout& layout) const;

  // Flat, in memory order, of unsigned integers of the element's size.
  const poplar::Tensor& memory(StorageId id) const { return storages_[id].memory; }
  // The same with the layout's spare elements after each tile's part.
  poplar::Tensor memoryAndSpare(StorageId id) const { return joined(storages_[id], storages_[id].blocks.spare); }

  void addUser(StorageId id) { ++storages_[id].users; }
  // The last user frees it, unless it is held.
  void release(StorageId id);
  // Holds keep a storage while it has no user: a loop's or a parameter's place.
  void hold(StorageId id) { ++storages_[id].holds; }
  void endHold(StorageId id);
  std::size_t users(StorageId id) const { return storages_[id].users; }

  // Bytes of storages in use: of all tiles, and of the fullest one.
  struct Live {
    std::uint64_t bytes = 0, tile_bytes = 0;
  };
  Live live() const;

 private:
  // Elements [begin, begin + size) of a variable, which lie on one tile.
  struct Piece {
    std::size_t variable = 0, begin = 0, size = 0;
  };
  struct Storage {
    std::size_t element_bytes;
    Blocks blocks;                  // of the layout that it was taken for
    std::vector<std::size_t> cuts;  // tile t has elements [cuts[t], cuts[t + 1]) of the memory
    std::vector<Piece> pieces;      // by tile
    poplar::Tensor memory;
    std::size_t users = 0, holds = 0;
  };
  using FreePieces = std::vector<std::vector<Piece>>;  // by tile

  StorageId takePieces(Storage storage, const poplar::DebugContext& debug);
  void takeFree(Storage& storage, FreePieces& free);
  Storage storageOf(std::size_t element_bytes, const Blocks& blocks, const std::vector<std::size_t>& cuts) const;
  // Those of values, or those that are reserved for scratch.
  FreePieces& freePieces(std::size_t element_bytes, bool reserved);
  void addVariable(Storage& storage, const poplar::DebugContext& debug);
  poplar::Tensor joined(const Storage& storage, std::size_t spare) const;
  void freeUnused(StorageId id);
  void count(const Storage& storage, bool more);

  poplar::Graph& graph_;
  std::vector<Storage> storages_;
  std::vector<poplar::Tensor> variables_;
  std::vector<bool> reserved_;                      // of variables: for scratch alone
  std::map<std::size_t, FreePieces> free_;          // by bytes of an element: those of other sizes are other variables
  std::map<std::size_t, FreePieces> free_scratch_;  // likewise, of reserved variables
  std::vector<std::uint64_t> live_;                 // bytes of each tile
  std::vector<std::uint64_t> taken_;                // those of its variables
};

// Throws if one tile would hold several times its capacity: the graph of such a program would take minutes and exhaust
// the host's memory. The engine refuses slight excess, naming the largest variables.
void checkTileMemory(const poplar::Graph& graph, std::uint64_t bytes, const poplar::DebugContext& debug);

// Elements that a piece of memory takes: pieces are aligned to 64 bits, as fields of vertices are.
std::size_t roundedUp(std::size_t elements, std::size_t element_bytes);

// The unsigned integer of the same size, in which memory is kept whatever its type.
poplar::Type unsignedOf(std::size_t bytes);

}  // namespace snnjax::executor
