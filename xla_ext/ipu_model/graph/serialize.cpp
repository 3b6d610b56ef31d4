// A graph as JSON.
#include <ostream>
#include <poplar/Graph.hpp>

#include "graph/graph_data.hpp"
#include "ipu_model/json.hpp"

namespace ipu_model {
namespace {

void writeJson(JsonWriter& json, const Variable& variable) {
  json.open('{').field("name", variable.name).field("type", variable.type.toString());
  json.field("elements", std::uint64_t{variable.elements}).key("mapping").open('[');
  for (const TilePiece& piece : variable.tiles.pieces()) {
    json.open('{').field("tile", std::uint64_t{piece.tile}).field("begin", std::uint64_t{piece.begin});
    json.field("end", std::uint64_t{piece.end}).close('}');
  }
  json.close(']').close('}');
}

void writeJson(JsonWriter& json, const GraphData& graph, const Vertex& vertex) {
  json.open('{').field("type", vertex.type->name).field("compute_set", std::uint64_t{vertex.compute_set});
  if (vertex.tile != kNoTile) json.field("tile", std::uint64_t{vertex.tile});
  json.key("edges").open('[');
  for (const Edge& edge : vertex.edges) {
    json.open('{').field("field", vertex.type->fields[edge.field].name).field("row", std::uint64_t{edge.row});
    json.key("runs").open('[');
    for (const Run& run : runsOf(graph, edge)) {
      json.open('{').field("variable", std::uint64_t{run.variable}).field("begin", std::uint64_t{run.begin});
      json.field("count", std::uint64_t{run.count}).field("stride", static_cast<double>(run.stride)).close('}');
    }
    json.close(']').close('}');
  }
  json.close(']').close('}');
}

}  // namespace
}  // namespace ipu_model

namespace poplar {

void Graph::serialize(std::ostream& out, SerializationFormat format) const {
  if (format != SerializationFormat::JSON) {
    throw poplar_error("serialize: `format` must be JSON, got Binary. Executable::serialize keeps what can be run.");
  }
  ipu_model::JsonWriter json;
  json.open('{').key("variables").open('[');
  for (const ipu_model::Variable& variable : data_->variables) ipu_model::writeJson(json, variable);
  json.close(']').key("compute_sets").open('[');
  for (const std::string& name : data_->compute_sets) json.value(name);
  json.close(']').key("vertices").open('[');
  for (const ipu_model::Vertex& vertex : data_->vertices) ipu_model::writeJson(json, *data_, vertex);
  out << json.close(']').close('}').text();
}

}  // namespace poplar
