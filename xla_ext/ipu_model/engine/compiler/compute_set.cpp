#include "engine/compiler/compute_set.hpp"

#include <algorithm>
#include <poplar/exceptions.hpp>

namespace ipu_model {
namespace {

constexpr std::size_t kRowAlign = 64;  // bytes, of a gathered row

// Of a vertex on its tile.
std::string placeOf(const Vertex& vertex) {
  return vertex.type->name + (vertex.tile == kNoTile ? "" : " on tile " + std::to_string(vertex.tile));
}

void checkMapped(const GraphData& graph, std::span<const std::uint32_t> vertices, const std::string& compute_set) {
  for (const std::uint32_t id : vertices) {
    if (graph.vertices[id].tile != kNoTile) continue;
    throw poplar::invalid_tile_mapping("Execute: `" + graph.vertices[id].type->name + "` of " + compute_set +
                                       " must lie on a tile, got a vertex without. Call Graph::setTileMapping.");
  }
}

// Every edge has its tensor, or was said to have none; rows of a Vector of Vectors count from 0 without a gap.
void checkConnected(const GraphData& graph, std::uint32_t id, std::span<const Edge> sorted_edges) {
  const Vertex& vertex = graph.vertices[id];
  for (std::uint32_t field = 0; field < vertex.type->fields.size(); ++field) {
    const FieldType& type = vertex.type->fields[field];
    if (type.direction == Direction::State) continue;
    std::uint32_t rows = 0;
    bool gap = false;
    for (const Edge& edge : sorted_edges) {
      if (edge.field == field) gap = gap || edge.row != rows++;
    }
    if (!gap && (rows > 0 || graph.without_rows.count({id, field}) > 0)) continue;
    throw poplar::graph_connection_error(
        "Execute: `" + type.name + "` of " + placeOf(vertex) + " must be connected, got " +
        (gap ? "rows with a gap" : std::string("no tensor")) + ". Call Graph::connect before the engine is made.");
  }
}

std::vector<std::uint32_t> byTile(const GraphData& graph, std::vector<std::uint32_t> vertices) {
  std::stable_sort(vertices.begin(), vertices.end(), [&graph](std::uint32_t a, std::uint32_t b) {
    return graph.vertices[a].tile < graph.vertices[b].tile;
  });
  return vertices;
}

// Bytes of the record of a vertex on a tile, with the pointers of its rows.
std::uint64_t recordBytes(const VertexType& type, std::span<const Edge> edges) {
  std::uint64_t bytes = 0;
  for (const FieldType& field : type.fields) bytes += field.tile_bytes;
  for (const Edge& edge : edges) {
    if (type.fields[edge.field].nesting == 2) bytes += type.fields[edge.field].tile_row_bytes;
  }
  return bytes;
}

}  // namespace

ComputeSetPlanner::ComputeSetPlanner(const GraphData& graph, const Layout& layout, unsigned compute_set,
                                     std::vector<std::uint32_t> vertices, std::vector<TileBytes>& memory)
    : graph_(graph),
      layout_(layout),
      vertices_((checkMapped(graph, vertices, graph.compute_sets[compute_set]), byTile(graph, std::move(vertices)))),
      memory_(memory),
      writers_(graph, vertices_, graph.compute_sets[compute_set]),
      before_(graph.target),
      after_(graph.target) {
  plan_.name = graph.compute_sets[compute_set];
}

ComputeSetPlan ComputeSetPlanner::plan() {
  plan_.vertices.reserve(vertices_.size());
  for (std::size_t first = 0; first < vertices_.size();) {
    const std::uint32_t tile = graph_.vertices[vertices_[first]].tile;
    std::size_t after = first;
    while (after < vertices_.size() && graph_.vertices[vertices_[after]].tile == tile) planVertex(vertices_[after++]);
    plan_.tiles.push_back({tile, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(after - first)});
    exchangeTile(tile);
    first = after;
  }
  plan_.before = before_.finish(memory_, true);
  plan_.after = after_.finish(memory_, false);
  return std::move(plan_);
}

std::uint32_t ComputeSetPlanner::codeletOf(const VertexType& type) {
  const auto found = std::find(plan_.codelets.begin(), plan_.codelets.end(), &type);
  const auto index = static_cast<std::uint32_t>(found - plan_.codelets.begin());
  if (found == plan_.codelets.end()) plan_.codelets.push_back(&type);
  return index;
}

void ComputeSetPlanner::planVertex(std::uint32_t id) {
  const Vertex& vertex = graph_.vertices[id];
  std::vector<Edge> edges = vertex.edges;
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.field != b.field ? a.field < b.field : a.row < b.row; });
  checkConnected(graph_, id, edges);
  VertexPlan plan{vertex.type,
                  codeletOf(*vertex.type),
                  static_cast<std::uint32_t>(plan_.rows.size()),
                  static_cast<std::uint32_t>(edges.size()),
                  vertex.members,
                  vertex.estimate};
  for (const Edge& edge : edges) {
    planRow(id, edge);
    addExchange(vertex.tile, edge, vertex.type->fields[edge.field]);
  }
  plan_.vertices.push_back(std::move(plan));
  memory_[vertex.tile].vertices += recordBytes(*vertex.type, edges);
}

// A row that is one piece of memory is used in place, unless another vertex writes to it in the same compute set.
void ComputeSetPlanner::planRow(std::uint32_t id, const Edge& edge) {
  const FieldType& field = graph_.vertices[id].type->fields[edge.field];
  const std::span<const Run> runs = runsOf(graph_, edge);
  std::size_t elements = 0;
  for (const Run& run : runs) elements += run.count;
  const Addresses addresses{layout_.addresses(), field.type.size()};
  RowPlan row{edge.field, runs.empty() ? 0 : addresses.of(runs[0]), elements};
  const bool one_piece = runs.empty() || (runs.size() == 1 && runs[0].contiguous());
  const bool aligned = field.alignment == 0 || row.address % field.alignment == 0;
  const bool only_read = field.direction == Direction::Input;
  if (!one_piece || !aligned || (only_read && writers_.othersWrite(runs, id))) {
    row.address = gather(runs, field, elements);
  }
  plan_.rows.push_back(row);
}

// Vertices that only read share a row.
std::size_t ComputeSetPlanner::gather(std::span<const Run> runs, const FieldType& field, std::size_t elements) {
  const Addresses addresses{layout_.addresses(), field.type.size()};
  const std::size_t address = layout_.bytes() + scratch_;
  if (field.direction == Direction::Input) {
    std::vector<std::size_t> key{field.type.size()};
    for (const Run& run : runs) {
      key.insert(key.end(), {run.variable, run.begin, run.count, static_cast<std::size_t>(run.stride)});
    }
    const auto [known, is_new] = gathered_.emplace(std::move(key), address);
    if (!is_new) return known->second;
  }
  scratch_ += (elements * field.type.size() + kRowAlign - 1) / kRowAlign * kRowAlign;
  const std::vector<Move> to_variables = movesFromRow(address, runs, addresses);
  const std::vector<Move> from_variables = reversed(to_variables);
  plan_.gathers.insert(plan_.gathers.end(), from_variables.begin(), from_variables.end());
  if (field.direction != Direction::Input) {
    plan_.scatters.insert(plan_.scatters.end(), to_variables.begin(), to_variables.end());
  }
  return address;
}

// Records what has to travel for a row. Where part of it is on other tiles, the local part travels too, back to its own
// tile, to join the rest (osmarks/ipu-stack, docs/EXCHANGE_INSTRUCTION_REFERENCE.md: multicast loopback). A row of
// several pieces of the tile's own memory is put together there by a copy, once for all vertices that read it.
void ComputeSetPlanner::addExchange(std::uint32_t tile, const Edge& edge, const FieldType& field) {
  std::vector<Span> spans;
  appendSpans(runsOf(graph_, edge), spans);
  bool elsewhere = false;
  TileCopy here;
  const Span* last = nullptr;
  std::size_t next = 0;  // where the last piece ends
  for (const Span& span : spans) {
    layout_.forEach(span, "Execute", [&](std::size_t begin, std::size_t end, std::uint32_t home, std::size_t address) {
      const std::size_t bytes = (end - begin) * field.type.size();
      const bool joins = last != nullptr && last->variable == span.variable && next == address;
      elsewhere = elsewhere || home != tile;
      here.pieces += joins ? 0 : 1;
      here.bytes += bytes;
      last = &span;
      next = address + bytes;
    });
  }
  if (!elsewhere && here.pieces <= 1) return;
  const auto note = [&](TileRows& of_tile) {
    if (!elsewhere) {
      of_tile.copied.emplace(spans, here);
    } else {
      of_tile.moved.insert(of_tile.moved.end(), spans.begin(), spans.end());
    }
  };
  if (field.direction != Direction::Output) note(read_);
  if (field.direction != Direction::Input) note(written_);
}

// An element that several vertices of a tile read comes to it once.
void ComputeSetPlanner::exchangeTile(std::uint32_t tile) {
  const auto add = [&](TileRows& of_tile, ExchangePhase& phase, bool arrives) {
    mergeSpans(of_tile.moved);
    for (const Span& span : of_tile.moved) {
      const std::size_t element = graph_.variables[span.variable].type.size();
      layout_.forEach(
          span, "Execute", [&](std::size_t begin, std::size_t end, std::uint32_t home, std::size_t address) {
            phase.add({arrives ? home : tile, arrives ? tile : home, address, address, (end - begin) * element});
          });
    }
    for (const auto& [row, copy] : of_tile.copied) phase.addCopy(tile, copy);
    of_tile = {};
  };
  add(read_, before_, true);
  add(written_, after_, false);
}

}  // namespace ipu_model
