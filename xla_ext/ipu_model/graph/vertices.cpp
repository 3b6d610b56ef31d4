// Poplar's Graph: vertices, the connections of their fields, and their initial values.
#include <poplar/Graph.hpp>

#include "graph/graph_data.hpp"
#include "graph/half_bits.hpp"
#include "graph/values.hpp"

namespace poplar {
namespace {

using ipu_model::Direction;
using ipu_model::Edge;
using ipu_model::FieldType;
using ipu_model::GraphData;
using ipu_model::Vertex;

const FieldType& typeOf(const FieldRef& field) {
  return field.graph()->vertices[field.vertex()].type->fields[field.field()];
}

std::string nameOf(const FieldRef& field) {
  return field.graph()->vertices[field.vertex()].type->name + "." + typeOf(field).name;
}

[[noreturn]] void refuse(const FieldRef& field, const std::string& expected, const std::string& actual,
                         const std::string& hint) {
  throw graph_connection_error("connect: `" + nameOf(field) + "` must " + expected + ", got " + actual + ". " + hint);
}

// INT and LONG, say, are the same on a tile; signed and unsigned are not.
bool sameElements(const Type& a, const Type& b) {
  const auto plain = [](const Type& type) {
    return type == SIGNED_CHAR ? CHAR : type == LONG ? INT : type == UNSIGNED_LONG ? UNSIGNED_INT : type;
  };
  return plain(a) == plain(b);
}

void checkWriteable(const FieldRef& field, const Tensor& tensor) {
  const FieldType& type = typeOf(field);
  if (type.direction == Direction::Input || type.direction == Direction::State) return;
  if (tensor.isParallelWriteable()) return;
  refuse(field, "be connected to elements that can be written", "constants or elements that stand there twice",
         "Connect it to the variable before it is broadcast.");
}

void addEdge(const FieldRef& field, std::size_t row, const Tensor& tensor) {
  GraphData& graph = *field.graph();
  const FieldType& type = typeOf(field);
  if (!sameElements(tensor.elementType(), type.type)) {
    refuse(field, "be connected to a tensor of " + type.type.toString(), tensor.getDebugStr(),
           "popops::cast converts values.");
  }
  checkWriteable(field, tensor);
  const std::vector<ipu_model::Run> runs = ipu_model::viewOf(tensor).runs();
  const Edge edge{field.field(), static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(graph.edge_runs.size()),
                  static_cast<std::uint32_t>(runs.size())};
  graph.edge_runs.insert(graph.edge_runs.end(), runs.begin(), runs.end());
  std::vector<Edge>& edges = graph.vertices[field.vertex()].edges;
  for (Edge& known : edges) {
    if (known.field != edge.field || known.row != edge.row) continue;
    known = edge;
    return;
  }
  edges.push_back(edge);
}

void connectRows(const FieldRef& field, ArrayRef<Tensor> tensors) {
  const FieldType& type = typeOf(field);
  if (type.nesting > 0 && tensors.empty()) {
    field.graph()->without_rows.emplace(field.vertex(), field.field());
  } else if (type.nesting == 2) {
    for (std::size_t row = 0; row < tensors.size(); ++row) addEdge(field, row, tensors[row].flatten());
  } else if (type.nesting == 1) {
    addEdge(field, 0, concat(tensors));
  } else {
    refuse(field, "be a Vector to take rows", std::to_string(tensors.size()) + " tensors", "Connect one tensor.");
  }
}

void connectTensor(const FieldRef& field, const Tensor& tensor) {
  const FieldType& type = typeOf(field);
  if (type.nesting == 2 && !field.isIndexed()) {
    if (tensor.rank() != 2) {
      refuse(field, "be connected to a tensor of rank 2", "shape " + tensor.shapeToString(), "Each row is one Vector.");
    }
    std::vector<Tensor> rows;
    for (std::size_t row = 0; row < tensor.dim(0); ++row) rows.push_back(tensor[row]);
    return connectRows(field, rows);
  }
  if (type.nesting == 0 && tensor.numElements() != 1) {
    refuse(field, "be connected to one element", "shape " + tensor.shapeToString(), "Index the tensor.");
  }
  if (type.nesting > 0 && tensor.rank() != 1) {
    refuse(field, "be connected to a tensor of rank 1", "shape " + tensor.shapeToString(), "Use flatten().");
  }
  addEdge(field, field.isIndexed() ? field.row() : 0, tensor);
}

}  // namespace

FieldRef FieldRef::operator[](std::size_t index) const { return {graph_, vertex_, field_, index, true}; }

FieldRef VertexRef::operator[](StringRef field) const {
  const ipu_model::VertexType& type = *graph_->vertices[id_].type;
  for (unsigned i = 0; i < type.fields.size(); ++i) {
    if (type.fields[i].name == field) return {graph_, id_, i, 0, false};
  }
  std::string names;
  for (const FieldType& known : type.fields) names += (names.empty() ? "" : ", ") + known.name;
  throw unknown_field("VertexRef: `field` must be a field of " + type.name + ", got \"" + field +
                      "\". It has: " + names + ".");
}

VertexRef Graph::addVertex(ComputeSet cs, StringRef vertexType) {
  if (cs.getId() >= data_->compute_sets.size()) {
    throw graph_connection_error("addVertex: `cs` must be of this graph, got number " + std::to_string(cs.getId()) +
                                 ". addComputeSet makes one.");
  }
  Vertex vertex;
  vertex.type = &data_->vertexType(vertexType);
  vertex.compute_set = cs.getId();
  if (data_->onHost()) vertex.tile = 0;
  vertex.edges.reserve(vertex.type->fields.size());
  data_->vertices.push_back(std::move(vertex));
  return {data_.get(), static_cast<unsigned>(data_->vertices.size() - 1)};
}

VertexRef Graph::addVertex(ComputeSet cs, StringRef vertexType, ArrayRef<ConnectionDesc> connections) {
  const VertexRef vertex = addVertex(cs, vertexType);
  for (const ConnectionDesc& connection : connections) {
    // A field may be named with its row: "in[3]".
    const std::string& name = connection.field();
    const std::size_t bracket = name.find('[');
    FieldRef field = vertex[StringRef(name.data(), std::min(bracket, name.size()))];
    if (bracket != std::string::npos) field = field[std::stoul(name.substr(bracket + 1))];
    if (connection.value().size() > 0) {
      connectValues(field, connection.value());
    } else if (connection.areRows()) {
      connectRows(field, connection.tensors());
    } else {
      connectTensor(field, connection.tensors()[0]);
    }
  }
  return vertex;
}

void Graph::connect(FieldRef field, const Tensor& tensor) { connectTensor(field, tensor); }
void Graph::connect(FieldRef field, ArrayRef<Tensor> tensors) { connectRows(field, tensors); }

void Graph::connectValues(FieldRef field, const ipu_model::HostValues& values) {
  const FieldType& type = typeOf(field);
  if (type.direction == Direction::State) return setInitialValues(field, values);
  const std::size_t count = values.size();
  const Tensor constant = addConstantValues(type.type, count, values, nameOf(field));
  data_->variables.back().of_vertex = true;
  connectTensor(field, constant);
}

void Graph::setInitialValues(FieldRef field, const ipu_model::HostValues& values) {
  const FieldType& type = typeOf(field);
  if (type.direction != Direction::State) {
    // An edge that nothing is connected to: memory of the vertex's own, where it is one for input.
    if (type.direction == Direction::Input) return connectValues(field, values);
    refuse(field, "be a plain member or an Input to have an initial value", "an output", "Set that of the tensor.");
  }
  if (type.nesting == 0) {
    if (values.size() != 1) refuse(field, "have one value", std::to_string(values.size()), "It is no Vector.");
    data_->vertices[field.vertex()].members.push_back({field.field(), ipu_model::encodeValues(values, type.type, 1)});
    return;
  }
  // A Vector of the vertex's own: a variable on the vertex's tile that it may write.
  const unsigned id = data_->addVariable(type.type, values.size(), nameOf(field));
  data_->variables[id].of_vertex = true;
  const Tensor own(ipu_model::viewOfRuns(data_.get(), type.type, {{id, 0, values.size(), 1}}, {values.size()}));
  setInitialValues(own, values);
  addEdge(field, field.row(), own);
}

void Graph::setInitialValueHalf(FieldRef field, std::uint16_t value) {
  setInitialValue(field, ipu_model::halfToFloat(value));
}

void Graph::setFieldSize(FieldRef field, std::size_t size) {
  const FieldType& type = typeOf(field);
  if (type.nesting == 1 && type.direction == Direction::State) {
    return setInitialValues(field, ipu_model::HostValues{std::vector<std::int64_t>(size, 0), {}});
  }
  if (type.nesting != 2) {
    throw no_size_specified("setFieldSize: `field` must be a Vector of Vectors, got " + nameOf(field) +
                            ". Other Vectors take the size of the tensor they are connected to.");
  }
  // Rows come with connect(); those that are never connected are missed when the engine is made.
}

std::size_t Graph::getFieldSize(FieldRef field) const {
  std::size_t rows = 0;
  for (const Edge& edge : data_->vertices[field.vertex()].edges) {
    if (edge.field != field.field()) continue;
    if (typeOf(field).nesting == 2 && !field.isIndexed()) {
      ++rows;
    } else if (edge.row == field.row()) {
      for (const ipu_model::Run& run : ipu_model::runsOf(*data_, edge)) rows += run.count;
    }
  }
  return rows;
}

void Graph::setPerfEstimate(const VertexRef& vertex, std::uint64_t cycles, std::uint64_t) {
  data_->vertices[vertex.getId()].estimate = cycles;
}

VertexPerfEstimate Graph::getPerfEstimate(const VertexRef& vertex) const {
  return data_->vertices[vertex.getId()].estimate.value_or(0);
}

void Graph::setTileMapping(VertexRef vertex, unsigned tile) {
  if (tile >= target_.getNumTiles()) {
    throw invalid_tile_mapping("setTileMapping: `tile` must be below " + std::to_string(target_.getNumTiles()) +
                               ", got " + std::to_string(tile) + ". The graph's target has that many tiles.");
  }
  data_->vertices[vertex.getId()].tile = physicalTile(tile);
}

}  // namespace poplar
