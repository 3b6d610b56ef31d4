#include "engine/compiler/races.hpp"

#include <algorithm>
#include <poplar/exceptions.hpp>

namespace ipu_model {

Writers::Writers(const GraphData& graph, std::span<const std::uint32_t> vertices, const std::string& compute_set)
    : is_written_(graph.variables.size(), false) {
  for (const std::uint32_t vertex : vertices) collect(graph, vertex);
  std::sort(writes_.begin(), writes_.end(), [](const Write& a, const Write& b) { return a.span < b.span; });
  for (std::size_t i = 1; i < writes_.size(); ++i) {
    const Write& before = writes_[i - 1];
    if (before.span.variable == writes_[i].span.variable && writes_[i].span.begin < before.span.end) {
      refuse(graph, before, writes_[i], compute_set);
    }
  }
}

void Writers::collect(const GraphData& graph, std::uint32_t vertex) {
  std::vector<Span> spans;
  for (const Edge& edge : graph.vertices[vertex].edges) {
    const Direction direction = graph.vertices[vertex].type->fields[edge.field].direction;
    if (direction != Direction::Output && direction != Direction::InOut) continue;
    spans.clear();
    appendSpans(runsOf(graph, edge), spans);
    for (const Span& span : spans) {
      writes_.push_back({span, vertex, edge.field});
      is_written_[span.variable] = true;
    }
  }
}

bool Writers::othersWrite(std::span<const Run> runs, std::uint32_t vertex) const {
  std::vector<Span> spans;
  for (const Run& run : runs) {
    if (is_written_[run.variable]) appendSpans({&run, 1}, spans);
  }
  for (const Span& span : spans) {
    auto write = std::lower_bound(writes_.begin(), writes_.end(), span,
                                  [](const Write& a, const Span& b) { return a.span < b; });
    if (write != writes_.begin()) --write;
    for (; write != writes_.end() && write->span.variable <= span.variable; ++write) {
      if (write->span.variable < span.variable || write->span.end <= span.begin) continue;
      if (write->span.begin >= span.end) break;
      if (write->vertex != vertex) return true;
    }
  }
  return false;
}

void Writers::refuse(const GraphData& graph, const Write& a, const Write& b, const std::string& name) {
  const auto writer = [&graph](const Write& write) {
    const Vertex& vertex = graph.vertices[write.vertex];
    return vertex.type->name + "." + vertex.type->fields[write.field].name + " on tile " + std::to_string(vertex.tile);
  };
  throw poplar::graph_connection_error("Execute: `" + graph.variables[b.span.variable].name +
                                       "` must have one writer for each element in " + name + ", got " + writer(a) +
                                       " and " + writer(b) + " for element " + std::to_string(b.span.begin) +
                                       ". Write to different elements, or in different compute sets.");
}

}  // namespace ipu_model
