// A program's variables, vertices and compute sets, and their tile mapping. It includes more than it needs, because
// programs rely on what the vendor's header includes.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <numeric>
#include <poplar/ArrayRef.hpp>
#include <poplar/CodeletFileType.hpp>
#include <poplar/DataStream.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/Device.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/HostValues.hpp>
#include <poplar/Interval.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/SerializationFormat.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/TensorCloneMethod.hpp>
#include <poplar/VariableMappingMethod.hpp>
#include <poplar/exceptions.hpp>
#include <string>
#include <type_traits>
#include <vector>
#if __cplusplus >= 201703L
#include <optional>
#endif

namespace poplar {

// Cycles of a vertex on its tile; flops are kept for programs that give them.
struct VertexPerfEstimate {
  std::uint64_t cycles = 0;
  std::uint64_t flops = 0;
  VertexPerfEstimate() = default;
  VertexPerfEstimate(std::uint64_t cycle_count, std::uint64_t flop_count = 0)
      : cycles(cycle_count), flops(flop_count) {}
};

// What a field of a new vertex is connected to: a tensor, rows of tensors, or one value.
class ConnectionDesc {
 public:
  ConnectionDesc(StringRef field, Tensor tensor) : field_(field), tensors_{std::move(tensor)} {}
  ConnectionDesc(StringRef field, ArrayRef<Tensor> rows) : field_(field), tensors_(rows), rows_(true) {}
  ConnectionDesc(StringRef field, const std::vector<Tensor>& rows) : field_(field), tensors_(rows), rows_(true) {}
  ConnectionDesc(StringRef field, const std::initializer_list<Tensor>& rows)
      : field_(field), tensors_(rows), rows_(true) {}
  template <typename T,
            typename = typename std::enable_if<std::is_arithmetic<T>::value || std::is_enum<T>::value>::type>
  ConnectionDesc(StringRef field, T value) : field_(field), value_(ipu_model::hostValues(ArrayRef<T>(value))) {}

  const std::string& field() const { return field_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  bool areRows() const { return rows_; }
  const ipu_model::HostValues& value() const { return value_; }

 private:
  std::string field_;
  std::vector<Tensor> tensors_;
  bool rows_ = false;
  ipu_model::HostValues value_;
};

// The number of copies of a graph that run at once, each with its own IPUs and data.
struct replication_factor {
  explicit replication_factor(unsigned number) : value(number) {}
  unsigned value;
};

class Graph {
 public:
  // The intervals of a flattened tensor that lie on each tile.
  using TileToTensorMapping = std::vector<std::vector<Interval>>;
  using ConnectionDesc = poplar::ConnectionDesc;

  // Of a CPU, to be assigned to.
  Graph() : Graph(Target::createCPUTarget()) {}
  // Of several replicas each has an equal share of the target's IPUs; the graph's own target is that share.
  explicit Graph(const Target& target, replication_factor replicas = replication_factor(1));
  explicit Graph(const Device& device, replication_factor replicas = replication_factor(1))
      : Graph(device.getTarget(), replicas) {}

  const Target& getTarget() const { return target_; }
  unsigned getReplicationFactor() const;
  // The number of the replica that reads it: a scalar UNSIGNED_INT.
  Tensor addReplicationIndexConstant(const DebugContext& debugContext = {});

  // A graph with the same contents, whose tile t is one of this graph's tiles: the first ones of each IPU, a range, or
  // those of a list (one entry for each tile of the new graph).
  Graph createVirtualGraph(unsigned numTilesPerIPU);
  Graph createVirtualGraph(unsigned lowerTile, unsigned upperTile);
  Graph createVirtualGraph(const std::vector<unsigned>& perIPUTiles);
  Graph getTopLevelGraph();
  // The IPUs' tile that is tile `tile` of this graph.
  unsigned physicalTile(unsigned tile) const;

  // Sources are compiled with popc.py and the host's compiler; a .gp is loaded. False: nothing was added, because the
  // name is known.
  bool addCodelets(StringRef src, CodeletFileType type = CodeletFileType::Auto, StringRef compileFlags = "",
                   StringRef targetName = "");
  // Several sources, compiled together.
  void addCodelets(const std::vector<std::string>& sources, StringRef compileFlags = "", StringRef targetName = "");
  void addCodelets(std::initializer_list<std::string> sources, StringRef compileFlags = "", StringRef targetName = "") {
    addCodelets(std::vector<std::string>(sources), compileFlags, targetName);
  }
  void addCodelets(std::stringstream& source, StringRef compileFlags = "",
                   CodeletFileType type = CodeletFileType::CppSource, StringRef targetName = "");

  // Variables and constants.
  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape, const DebugContext& debugContext = {});
  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape, VariableMappingMethod mappingMethod,
                     const DebugContext& debugContext = {});
  template <typename T>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, ArrayRef<T> values,
                     const DebugContext& debugContext = {}) {
    return addConstantValues(type, shape, ipu_model::hostValues(values), debugContext);
  }
  template <typename T,
            typename = typename std::enable_if<!std::is_pointer<T>::value && !std::is_class<T>::value>::type>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, T value, const DebugContext& debugContext = {}) {
    return addConstantValues(type, shape, ipu_model::hostValues(ArrayRef<T>(value)), debugContext);
  }
  template <typename T>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, const T* values,
                     const DebugContext& debugContext = {}) {
    std::size_t elements = 1;
    for (const std::size_t size : shape) elements *= size;
    return addConstantValues(type, shape, ipu_model::hostValues(ArrayRef<T>(values, elements)), debugContext);
  }
  // Of the bits of half numbers.
  Tensor addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, std::uint16_t value,
                         const DebugContext& debugContext = {});
  Tensor addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* values,
                         const DebugContext& debugContext = {});

  Tensor clone(const Type& type, const Tensor& tensor, const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  Tensor clone(const Tensor& tensor, const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  Tensor cloneN(const Type& type, const Tensor& tensor, std::size_t N, const DebugContext& debugContext = {},
                TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  Tensor cloneN(const Tensor& tensor, std::size_t N, const DebugContext& debugContext = {},
                TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

  // Compute sets and vertices.
  ComputeSet addComputeSet(const DebugContext& debugContext = {});
  VertexRef addVertex(ComputeSet cs, StringRef vertexType);
  VertexRef addVertex(ComputeSet cs, StringRef vertexType, ArrayRef<ConnectionDesc> connections);

  void connect(FieldRef field, const Tensor& tensor);
  void connect(FieldRef field, ArrayRef<Tensor> tensors);
  void connect(FieldRef field, const std::vector<Tensor>& tensors) { connect(field, ArrayRef<Tensor>(tensors)); }
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  void connect(FieldRef field, T value) {
    connectValues(field, ipu_model::hostValues(ArrayRef<T>(value)));
  }
  template <typename T>
  void connect(FieldRef field, ArrayRef<T> values) {
    connectValues(field, ipu_model::hostValues(values));
  }

  template <typename T,
            typename = typename std::enable_if<std::is_arithmetic<T>::value || std::is_enum<T>::value>::type>
  void setInitialValue(FieldRef field, T value) {
    setInitialValues(field, ipu_model::hostValues(ArrayRef<T>(value)));
  }
  template <typename T>
  void setInitialValue(FieldRef field, ArrayRef<T> values) {
    setInitialValues(field, ipu_model::hostValues(values));
  }
  template <typename T>
  void setInitialValue(FieldRef field, const std::vector<T>& values) {
    setInitialValues(field, ipu_model::hostValues(ArrayRef<T>(values)));
  }
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  void setInitialValue(const Tensor& tensor, T value) {
    setInitialValues(tensor, ipu_model::hostValues(ArrayRef<T>(value)));
  }
  template <typename T>
  void setInitialValue(const Tensor& tensor, ArrayRef<T> values) {
    setInitialValues(tensor, ipu_model::hostValues(values));
  }
  void setInitialValueHalf(const Tensor& tensor, ArrayRef<std::uint16_t> values);
  void setInitialValueHalf(FieldRef field, std::uint16_t value);
  // The number of rows of a field that is a Vector of Vectors.
  void setFieldSize(FieldRef field, std::size_t size);
  std::size_t getFieldSize(FieldRef field) const;

  // Overrides the codelet's own cost function: of a Vertex in issue slots of its worker, one every sixth cycle; of a
  // MultiVertex or SupervisorVertex in tile cycles in all.
  void setPerfEstimate(const VertexRef& vertex, std::uint64_t cycles, std::uint64_t flops = 0);
  void setPerfEstimate(const VertexRef& vertex, const VertexPerfEstimate& estimate) {
    setPerfEstimate(vertex, estimate.cycles, estimate.flops);
  }
  VertexPerfEstimate getPerfEstimate(const VertexRef& vertex) const;
  // Older names of the same.
  void setCycleEstimate(const VertexRef& vertex, std::uint64_t cycles) { setPerfEstimate(vertex, cycles); }
  std::uint64_t getCycleEstimate(const VertexRef& vertex) const { return getPerfEstimate(vertex).cycles; }

  // Tile mapping.
  void setTileMapping(VertexRef vertex, unsigned tile);
  void setTileMapping(const Tensor& tensor, unsigned tile);
  void setTileMapping(const Tensor& tensor, const TileToTensorMapping& mapping);
  TileToTensorMapping getTileMapping(const Tensor& tensor, bool requireComplete = true) const;
  TileToTensorMapping getTileMapping(const Tensor& tensor, bool* isComplete) const;

  // Regions of the flattened tensor, put together where they lie next to each other in a variable: each inner vector is
  // one contiguous part of memory.
  std::vector<std::vector<Interval>> getSortedContiguousRegions(const Tensor& tensor, ArrayRef<Interval> regions,
                                                                bool removeAliasedIntervals = false) const;
  // Reorders one-dimensional tensors of equal size by the memory order of the first.
  void reorderToSimplify(Tensor* ref, ArrayRef<Tensor*> others, bool requireSimplestOrder = true) const;
  // Without what broadcast repeated.
  Tensor findUnbroadcastTensor(const Tensor& tensor) const;

  // The host's access.
  void createHostWrite(StringRef handle, const Tensor& tensor, bool rearrangeOnHost = false);
  void createHostRead(StringRef handle, const Tensor& tensor, bool rearrangeOnHost = false);
  DataStream addHostToDeviceFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                 ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE,
                                 const OptionFlags& options = {});
  DataStream addDeviceToHostFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                 const OptionFlags& options = {});
  RemoteBuffer addRemoteBuffer(StringRef handle, const Type& elementType, std::size_t numElements,
                               std::size_t repeats = 1, bool rearrangeOnHost = false, bool optimiseMemory = false);

  // Programs to be called from several places.
  Function addFunction(const program::Program& program);
  HostFunction addHostFunction(StringRef handle, ArrayRef<Type> inputTypes, ArrayRef<std::size_t> inputSizes,
                               ArrayRef<Type> outputTypes, ArrayRef<std::size_t> outputSizes);

  std::size_t getNumVars() const;
  std::size_t getNumVertices() const;
  std::size_t getNumComputeSets() const;

  const std::shared_ptr<ipu_model::GraphData>& data() const { return data_; }  // the model's own

  // The whole graph in Graphviz's dot format: variables and vertices, or variables and compute sets.
  void outputVertexGraph(std::ostream& stream, ArrayRef<program::Program> programs = {}) const;
  void outputComputeGraph(std::ostream& stream, ArrayRef<program::Program> programs = {}) const;
  // The variables with their mappings, the compute sets and the vertices with their edges, as JSON, the one format.
  void serialize(std::ostream& out, SerializationFormat format) const;

 private:
  Graph(std::shared_ptr<ipu_model::GraphData> data, Target target, std::vector<unsigned> tiles);
  Tensor addConstantValues(const Type& type, ArrayRef<std::size_t> shape, const ipu_model::HostValues& values,
                           const DebugContext& debugContext);
  void connectValues(FieldRef field, const ipu_model::HostValues& values);
  void setInitialValues(FieldRef field, const ipu_model::HostValues& values);
  void setInitialValues(const Tensor& tensor, const ipu_model::HostValues& values);

  std::shared_ptr<ipu_model::GraphData> data_;
  Target target_;
  std::vector<unsigned> tiles_;  // of the IPUs; empty: tile t is tile t
};

}  // namespace poplar
