// Plans one compute set: addresses of all edges, the data to gather for them, and the exchange between tiles.
#pragma once

#include <cstdint>
#include <map>
#include <poplar/Target.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/compiler/exchange.hpp"
#include "engine/compiler/layout.hpp"
#include "engine/compiler/races.hpp"
#include "engine/executable/plan.hpp"

namespace ipu_model {

class ComputeSetPlanner {
 public:
  // `vertices` are all of the compute set, in the order in which they were added. `memory` is by tile.
  ComputeSetPlanner(const GraphData& graph, const Layout& layout, unsigned compute_set,
                    std::vector<std::uint32_t> vertices, std::vector<TileBytes>& memory);

  ComputeSetPlan plan();
  // Bytes that gathered rows take, from Layout::bytes() on.
  std::size_t scratchBytes() const { return scratch_; }

 private:
  void planVertex(std::uint32_t id);
  void planRow(std::uint32_t id, const Edge& edge);
  std::size_t gather(std::span<const Run> runs, const FieldType& field, std::size_t elements);
  void addExchange(std::uint32_t tile, const Edge& edge, const FieldType& field);
  void exchangeTile(std::uint32_t tile);
  std::uint32_t codeletOf(const VertexType& type);

  const GraphData& graph_;
  const Layout& layout_;
  std::vector<std::uint32_t> vertices_;  // by tile
  std::vector<TileBytes>& memory_;
  ComputeSetPlan plan_;
  Writers writers_;
  std::size_t scratch_ = 0;
  std::map<std::vector<std::size_t>, std::size_t> gathered_;  // rows that are only read, by their runs
  ExchangePhase before_, after_;
  // Of the tile that is being planned.
  struct TileRows {
    std::vector<Span> moved;                       // of rows that lie elsewhere, or in part
    std::map<std::vector<Span>, TileCopy> copied;  // rows that have to be put together on the tile
  };
  TileRows read_, written_;
};

}  // namespace ipu_model
