// A graph as Graphviz's dot draws it: variables, and either the vertices or the compute sets between them.
#include <ostream>
#include <poplar/Graph.hpp>
#include <set>
#include <string>
#include <utility>

#include "graph/graph_data.hpp"

namespace ipu_model {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string variableNode(std::size_t variable) { return "variable" + std::to_string(variable); }

void writeVariables(std::ostream& stream, const GraphData& graph) {
  for (std::size_t i = 0; i < graph.variables.size(); ++i) {
    const Variable& variable = graph.variables[i];
    const std::string label =
        variable.name + ": " + variable.type.toString() + "[" + std::to_string(variable.elements) + "]";
    stream << "  " << variableNode(i) << " [shape=box, label=" << quoted(label) << "];\n";
  }
}

// Edges of a vertex, from what it reads and to what it writes; each pair of nodes once.
void writeEdges(std::ostream& stream, const GraphData& graph, const Vertex& vertex, const std::string& node,
                std::set<std::pair<std::string, std::string>>& written) {
  const auto write = [&](const std::string& from, const std::string& to) {
    if (written.emplace(from, to).second) stream << "  " << from << " -> " << to << ";\n";
  };
  for (const Edge& edge : vertex.edges) {
    const Direction direction = vertex.type->fields[edge.field].direction;
    for (const Run& run : runsOf(graph, edge)) {
      if (direction != Direction::Output) write(variableNode(run.variable), node);
      if (direction != Direction::Input) write(node, variableNode(run.variable));
    }
  }
}

void writeGraph(std::ostream& stream, const GraphData& graph, bool each_vertex) {
  stream << "digraph {\n";
  writeVariables(stream, graph);
  for (std::size_t i = 0; !each_vertex && i < graph.compute_sets.size(); ++i) {
    stream << "  computeSet" << i << " [label=" << quoted(graph.compute_sets[i]) << "];\n";
  }
  std::set<std::pair<std::string, std::string>> written;
  for (std::size_t i = 0; i < graph.vertices.size(); ++i) {
    const Vertex& vertex = graph.vertices[i];
    const std::string set = std::to_string(vertex.compute_set), node = "vertex" + std::to_string(i);
    if (each_vertex) {
      const std::string label = vertex.type->name + " in " + graph.compute_sets[vertex.compute_set];
      stream << "  " << node << " [label=" << quoted(label) << "];\n";
    }
    writeEdges(stream, graph, vertex, each_vertex ? node : "computeSet" + set, written);
  }
  stream << "}\n";
}

}  // namespace
}  // namespace ipu_model

namespace poplar {

void Graph::outputVertexGraph(std::ostream& stream, ArrayRef<program::Program>) const {
  ipu_model::writeGraph(stream, *data_, true);
}

void Graph::outputComputeGraph(std::ostream& stream, ArrayRef<program::Program>) const {
  ipu_model::writeGraph(stream, *data_, false);
}

}  // namespace poplar
