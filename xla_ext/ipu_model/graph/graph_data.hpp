// The contents of a graph. Filled by poplar::Graph, read by the engine when it plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <poplar/DataStream.hpp>
#include <poplar/Program.hpp>
#include <poplar/Target.hpp>
#include <poplar/Type.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codelets/codelet_library.hpp"
#include "codelets/vertex_type.hpp"
#include "graph/tile_map.hpp"
#include "tensor/view.hpp"

namespace ipu_model {

struct Variable {
  std::string name;
  poplar::Type type;
  std::size_t elements = 0;
  TileMap tiles;
  bool constant = false;
  bool of_vertex = false;  // values that a vertex was connected to: they are on the vertex's tile, and have no mapping
  std::shared_ptr<const Source> source;
};

// Values that elements have when a program is loaded.
struct InitialValues {
  std::vector<Run> runs;
  std::vector<std::byte> bytes;
};

// One row of a field: runs [first_run, first_run + runs) of GraphData::edge_runs.
struct Edge {
  std::uint32_t field;
  std::uint32_t row;
  std::uint32_t first_run;
  std::uint32_t runs;
};

// The initial value of a plain member.
struct MemberValue {
  std::uint32_t field;
  std::vector<std::byte> bytes;
};

struct Vertex {
  const VertexType* type = nullptr;
  std::uint32_t compute_set = 0;
  std::uint32_t tile = kNoTile;
  std::vector<Edge> edges;
  std::vector<MemberValue> members;
  std::optional<std::uint64_t>
      estimate;  // of setPerfEstimate: a worker's issue slots; a multi vertex's or a supervisor's tile cycles
};

struct HostTensor {
  std::vector<Run> runs;
  std::size_t bytes = 0;
};

struct HostFunctionType {
  std::string handle;
  std::vector<std::size_t> input_bytes, output_bytes;
};

struct GraphData {
  explicit GraphData(poplar::Target of) : target(std::move(of)) {}

  poplar::Target target;                  // all tiles of one replica, whatever virtual graphs there are
  unsigned replicas = 1;                  // each of which has such tiles
  std::vector<unsigned> replica_numbers;  // variables that hold the number of the replica
  std::vector<Variable> variables;
  std::vector<InitialValues> initial_values;
  std::vector<std::string> compute_sets;
  std::vector<Vertex> vertices;
  std::vector<Run> edge_runs;
  std::set<std::pair<std::uint32_t, std::uint32_t>> without_rows;  // vertex and field that were connected to no rows
  std::vector<std::shared_ptr<const CodeletLibrary>> libraries;
  std::unordered_map<std::string, const VertexType*> vertex_types;  // by the name that was asked for
  std::vector<poplar::program::Program> functions;
  std::vector<poplar::DataStream> streams;
  std::vector<poplar::RemoteBuffer> remote_buffers;
  std::vector<HostFunctionType> host_functions;
  std::unordered_map<std::string, HostTensor> host_writes, host_reads;

  // A CPU, where nothing needs a mapping: unmapped elements are on tile 0.
  bool onHost() const { return target.getTargetType() == poplar::TargetType::CPU; }
  // Copies what a name of a vertex class means from the libraries; throws unknown_vertex_type.
  const VertexType& vertexType(const std::string& name);
  unsigned addVariable(poplar::Type type, std::size_t elements, std::string name);
};

// The runs of one edge.
inline std::span<const Run> runsOf(const GraphData& graph, const Edge& edge) {
  return std::span(graph.edge_runs).subspan(edge.first_run, edge.runs);
}

}  // namespace ipu_model
