// Poplar's Graph: variables, constants, compute sets, functions and the host's access.
#include <poplar/Graph.hpp>

#include <ostream>

#include "graph/graph_data.hpp"
#include "graph/half_bits.hpp"
#include "graph/values.hpp"
#include "program/nodes.hpp"

namespace ipu_model {

unsigned GraphData::addVariable(poplar::Type type, std::size_t elements, std::string name) {
  const auto id = static_cast<unsigned>(variables.size());
  Variable variable;
  variable.name = name.empty() ? "variable " + std::to_string(id) : std::move(name);
  variable.type = type;
  variable.elements = elements;
  variable.source = std::make_shared<const Source>(std::vector<Run>{{id, 0, elements, 1}});
  if (onHost()) variable.tiles.set(0, elements, 0);
  variables.push_back(std::move(variable));
  return id;
}

}  // namespace ipu_model

namespace poplar {
namespace {

using ipu_model::GraphData;
using ipu_model::Run;
using ipu_model::Variable;

std::size_t product(ArrayRef<std::size_t> shape) {
  std::size_t elements = 1;
  for (const std::size_t size : shape) elements *= size;
  return elements;
}

Tensor wholeVariable(GraphData& graph, unsigned id, ArrayRef<std::size_t> shape) {
  auto view = std::make_shared<ipu_model::View>();
  view->graph = &graph;
  view->source = graph.variables[id].source;
  view->type = graph.variables[id].type;
  view->shape = shape.cloneAsVector();
  view->strides = ipu_model::rowMajorStrides(view->shape);
  return Tensor(view);
}

void checkCount(const ipu_model::HostValues& values, std::size_t elements, const char* operation) {
  if (values.size() == elements || values.size() == 1) return;
  throw poplar_error(std::string(operation) + ": `values` must be one value or " + std::to_string(elements) + ", got " +
                     std::to_string(values.size()) + ". The product of the shape's sizes counts.");
}

ipu_model::HostTensor hostTensor(const Tensor& tensor) {
  return {ipu_model::viewOf(tensor).runs(), tensor.numElements() * tensor.elementType().size()};
}

DataStream addStream(GraphData& graph, StringRef handle, DataStreamType type, const Type& element, std::size_t count,
                     ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE) {
  for (const DataStream& stream : graph.streams) {
    if (stream.handle() == handle) {
      throw poplar_error("addHostToDeviceFIFO: `handle` must be new, got \"" + handle +
                         "\" again. Each stream has a name of its own.");
    }
  }
  return graph.streams.emplace_back(static_cast<unsigned>(graph.streams.size()), handle, type, element, count, mode);
}

Target shareOf(const Target& target, unsigned replicas) {
  if (target.getNumTiles() == 0) {
    throw poplar_error("Graph: `target` must have tiles, got none. DeviceManager and IPUModel make devices.");
  }
  if (replicas == 0 || target.getNumIPUs() % replicas != 0) {
    throw poplar_error("Graph: `replicas` must divide the " + std::to_string(target.getNumIPUs()) +
                       " IPUs of the target, got " + std::to_string(replicas) + ". Choose a device with more IPUs.");
  }
  return replicas == 1 ? target : target.createVirtualTarget(target.getNumIPUs() / replicas, target.getTilesPerIPU());
}

}  // namespace

Graph::Graph(const Target& target, replication_factor replicas)
    : data_(std::make_shared<GraphData>(shareOf(target, replicas.value))), target_(data_->target) {
  data_->replicas = replicas.value;
}

unsigned Graph::getReplicationFactor() const { return data_->replicas; }

Tensor Graph::addReplicationIndexConstant(const DebugContext& debugContext) {
  Tensor number = addVariable(UNSIGNED_INT, {}, debugContext);
  data_->variables.back().constant = true;
  data_->replica_numbers.push_back(static_cast<unsigned>(data_->variables.size() - 1));
  return number;
}

Graph::Graph(std::shared_ptr<GraphData> data, Target target, std::vector<unsigned> tiles)
    : data_(std::move(data)), target_(std::move(target)), tiles_(std::move(tiles)) {}

Tensor Graph::addVariable(const Type& type, ArrayRef<std::size_t> shape, const DebugContext& debugContext) {
  return wholeVariable(*data_, data_->addVariable(type, product(shape), debugContext.getPathName()), shape);
}

Tensor Graph::addVariable(const Type& type, ArrayRef<std::size_t> shape, VariableMappingMethod mappingMethod,
                          const DebugContext& debugContext) {
  Tensor tensor = addVariable(type, shape, debugContext);
  if (mappingMethod == VariableMappingMethod::NONE) return tensor;
  const std::size_t elements = tensor.numElements();
  const std::size_t tiles = target_.getNumTiles();
  const std::size_t share = (elements + tiles - 1) / tiles;
  const Tensor flat = tensor.flatten();
  for (std::size_t begin = 0, tile = 0; begin < elements; begin += share, ++tile) {
    setTileMapping(flat.slice(begin, std::min(begin + share, elements)), static_cast<unsigned>(tile));
  }
  return tensor;
}

Tensor Graph::addConstantValues(const Type& type, ArrayRef<std::size_t> shape, const ipu_model::HostValues& values,
                                const DebugContext& debugContext) {
  Tensor tensor = addVariable(type, shape, debugContext);
  checkCount(values, tensor.numElements(), "addConstant");
  data_->variables.back().constant = true;
  data_->initial_values.push_back({tensor.view()->runs(), ipu_model::encodeValues(values, type, tensor.numElements())});
  return tensor;
}

Tensor Graph::addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, std::uint16_t value,
                              const DebugContext& debugContext) {
  return addConstant(type, shape, ipu_model::halfToFloat(value), debugContext);
}

Tensor Graph::addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* values,
                              const DebugContext& debugContext) {
  std::vector<float> numbers(product(shape));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = ipu_model::halfToFloat(values[i]);
  return addConstant(type, shape, ArrayRef<float>(numbers), debugContext);
}

void Graph::setInitialValues(const Tensor& tensor, const ipu_model::HostValues& values) {
  checkCount(values, tensor.numElements(), "setInitialValue");
  data_->initial_values.push_back(
      {ipu_model::viewOf(tensor).runs(), ipu_model::encodeValues(values, tensor.elementType(), tensor.numElements())});
}

void Graph::setInitialValueHalf(const Tensor& tensor, ArrayRef<std::uint16_t> values) {
  std::vector<float> numbers;
  for (const std::uint16_t bits : values) numbers.push_back(ipu_model::halfToFloat(bits));
  setInitialValue(tensor, ArrayRef<float>(numbers));
}

ComputeSet Graph::addComputeSet(const DebugContext& debugContext) {
  const auto id = static_cast<unsigned>(data_->compute_sets.size());
  const std::string& name = debugContext.getPathName();
  data_->compute_sets.push_back(name.empty() ? "compute set " + std::to_string(id) : name);
  return ComputeSet(id);
}

void Graph::createHostWrite(StringRef handle, const Tensor& tensor, bool) {
  if (!tensor.isParallelWriteable()) {
    throw poplar_error("createHostWrite: `tensor` must hold each element once and no constants, got " +
                       tensor.getDebugStr() + ". Write to the variable before it is broadcast.");
  }
  data_->host_writes[handle] = hostTensor(tensor);
}

void Graph::createHostRead(StringRef handle, const Tensor& tensor, bool) {
  data_->host_reads[handle] = hostTensor(tensor);
}

DataStream Graph::addHostToDeviceFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                      ReplicatedStreamMode mode, const OptionFlags&) {
  return addStream(*data_, handle, DataStreamType::HostToDeviceFIFO, elementType, numElements, mode);
}

DataStream Graph::addDeviceToHostFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                      const OptionFlags&) {
  return addStream(*data_, handle, DataStreamType::DeviceToHostFIFO, elementType, numElements);
}

RemoteBuffer Graph::addRemoteBuffer(StringRef handle, const Type& elementType, std::size_t numElements,
                                    std::size_t repeats, bool, bool) {
  return data_->remote_buffers.emplace_back(static_cast<unsigned>(data_->remote_buffers.size()), handle, elementType,
                                            numElements, repeats);
}

Function Graph::addFunction(const program::Program& program) {
  data_->functions.push_back(program);
  return Function(static_cast<unsigned>(data_->functions.size() - 1));
}

HostFunction Graph::addHostFunction(StringRef handle, ArrayRef<Type> inputTypes, ArrayRef<std::size_t> inputSizes,
                                    ArrayRef<Type> outputTypes, ArrayRef<std::size_t> outputSizes) {
  const auto bytes = [](ArrayRef<Type> types, ArrayRef<std::size_t> sizes) {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < types.size(); ++i) result.push_back(types[i].size() * sizes[i]);
    return result;
  };
  data_->host_functions.push_back({handle, bytes(inputTypes, inputSizes), bytes(outputTypes, outputSizes)});
  return HostFunction(static_cast<unsigned>(data_->host_functions.size() - 1));
}

std::size_t Graph::getNumVars() const { return data_->variables.size(); }
std::size_t Graph::getNumVertices() const { return data_->vertices.size(); }
std::size_t Graph::getNumComputeSets() const { return data_->compute_sets.size(); }

}  // namespace poplar
