// The memory that each tile needs.
#include <algorithm>
#include <poplar/exceptions.hpp>
#include <sstream>
#include <unordered_set>

#include "engine/compiler/compiler.hpp"

namespace ipu_model {
namespace {

constexpr std::size_t kNamed = 4;  // variables that a message about memory names

std::string quoted(const std::string& name) { return "`" + name + "`"; }

// Values that vertices hold themselves: constants they were connected to, and Vectors of their own.
void addOwnValues(Plan& plan) {
  for (const Vertex& vertex : plan.graph->vertices) {
    if (vertex.tile == kNoTile) continue;
    for (const Edge& edge : vertex.edges) {
      for (const Run& run : runsOf(*plan.graph, edge)) {
        const Variable& variable = plan.graph->variables[run.variable];
        if (variable.of_vertex) plan.memory[vertex.tile].vertices += run.count * variable.type.size();
      }
    }
  }
}

// A class that several vertices of a tile share counts once. A tile with vertices has a stack for each worker.
void addCode(Plan& plan, std::uint64_t worker_stack) {
  std::vector<std::unordered_set<const VertexType*>> classes(plan.memory.size());
  for (const ComputeSetPlan& compute_set : plan.compute_sets) {
    for (const TilePlan& tile : compute_set.tiles) {
      plan.memory[tile.tile].stacks = worker_stack * plan.target.chip().workers;
      for (std::uint32_t i = 0; i < tile.vertices; ++i) {
        const VertexType* type = compute_set.vertices[tile.first_vertex + i].type;
        if (classes[tile.tile].insert(type).second) plan.memory[tile.tile].code += type->source_bytes;
      }
    }
  }
}

}  // namespace

void addMemory(Plan& plan, const Layout& layout, std::uint64_t worker_stack) {
  const auto shares = layout.shares();
  for (std::size_t tile = 0; tile < shares.size(); ++tile) {
    for (const Layout::Share& share : shares[tile]) plan.memory[tile].variables += share.bytes;
  }
  addOwnValues(plan);
  addCode(plan, worker_stack);
}

void LargestPhases::note(const std::string& name, const std::vector<TileBytes>& before,
                         const std::vector<TileBytes>& after) {
  tiles_.resize(after.size());
  for (std::size_t tile = 0; tile < after.size(); ++tile) {
    OfTile& largest = tiles_[tile];
    if (after[tile].exchange_code > before[tile].exchange_code + largest.code) {
      largest.code = after[tile].exchange_code - before[tile].exchange_code;
      largest.code_of = name;
    }
    if (after[tile].buffers > before[tile].buffers) largest.buffers_of = name;
  }
}

void checkMemory(const Plan& plan, const Layout& layout, const LargestPhases& phases) {
  const auto fullest = std::max_element(plan.memory.begin(), plan.memory.end(),
                                        [](const auto& a, const auto& b) { return a.total() < b.total(); });
  const std::uint64_t limit = plan.target.getBytesPerTile();
  if (fullest->total() <= limit) return;
  const auto tile = static_cast<std::size_t>(fullest - plan.memory.begin());
  std::vector<Layout::Share> shares = layout.shares()[tile];
  std::sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::ostringstream text;
  text << "Engine: `graph` must fit in " << limit << " bytes on each tile, got " << fullest->total() << " on tile "
       << tile << " (variables " << fullest->variables << ", vertices " << fullest->vertices << ", code "
       << fullest->code << ", exchange code " << fullest->exchange_code;
  if (fullest->exchange_code > 0) {
    text << ", " << phases.of(tile).code << " of it for " << quoted(phases.of(tile).code_of);
  }
  text << ", exchange buffers " << fullest->buffers;
  if (fullest->buffers > 0) text << " for " << quoted(phases.of(tile).buffers_of);
  text << ", stacks " << fullest->stacks << "; the largest:";
  for (std::size_t i = 0; i < std::min(kNamed, shares.size()); ++i) {
    text << (i == 0 ? " " : ", ") << plan.graph->variables[shares[i].variable].name << ' ' << shares[i].bytes;
  }
  const auto over = std::count_if(plan.memory.begin(), plan.memory.end(),
                                  [&](const TileBytes& bytes) { return bytes.total() > limit; });
  text << "). " << over << " of " << plan.memory.size()
       << " tiles hold too much: spread the largest over more tiles, or use more IPUs.";
  throw poplar::graph_memory_allocation_error(text.str());
}

}  // namespace ipu_model
