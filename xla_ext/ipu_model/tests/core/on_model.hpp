// Shared by the tests of the core: a graph on a few tiles with the codelets of core/codelets/core.cpp, and one program
// that is made, loaded and run between writing and reading tensors.
#pragma once

#include <ipu_model/profile.hpp>
#include <map>
#include <memory>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <vector>

#include "check.hpp"

namespace on_model {

inline poplar::Device device(unsigned tiles, unsigned ipus = 1, const char* chip = "ipu2") {
  poplar::IPUModel model(chip);
  model.tilesPerIPU = tiles;
  model.numIPUs = ipus;
  return model.createDevice();
}

class Model {
 public:
  explicit Model(unsigned tiles, unsigned ipus = 1, unsigned replicas = 1)
      : device_(device(tiles, ipus)), graph(device_, poplar::replication_factor(replicas)) {
    graph.addCodelets("core/codelets/core.cpp");
  }

  // A variable on one tile, that the host writes and reads under its name.
  poplar::Tensor variable(const poplar::Type& type, std::vector<std::size_t> shape, const char* name, unsigned tile) {
    const poplar::Tensor tensor = graph.addVariable(type, shape, name);
    graph.setTileMapping(tensor, tile);
    open(tensor, name);
    return tensor;
  }
  void open(const poplar::Tensor& tensor, const char* name) {
    graph.createHostWrite(name, tensor);
    graph.createHostRead(name, tensor);
  }

  // A vertex of a new compute set, to be executed.
  poplar::program::Execute one(const char* type, std::vector<poplar::ConnectionDesc> fields, unsigned tile,
                               const char* name = "test") {
    const poplar::ComputeSet set = graph.addComputeSet(name);
    graph.setTileMapping(graph.addVertex(set, type, fields), tile);
    return poplar::program::Execute(set);
  }

  poplar::Engine& engine(const poplar::program::Program& program, const poplar::OptionFlags& options = {}) {
    engine_ = std::make_unique<poplar::Engine>(graph, program, options);
    engine_->load(device_);
    return *engine_;
  }
  poplar::Engine& engine() { return *engine_; }
  void run() { engine_->run(0); }
  void run(const poplar::program::Program& program) { engine(program).run(0); }
  ipu_model::Profile profile() const { return ipu_model::profileOf(*engine_); }

  template <typename T>
  void write(const char* name, const std::vector<T>& values) {
    engine_->writeTensor(name, values.data(), values.data() + values.size());
  }
  template <typename T = float>
  std::vector<T> read(const char* name, std::size_t elements) {
    std::vector<T> values(elements);
    engine_->readTensor(name, values.data(), values.data() + values.size());
    return values;
  }

 private:
  poplar::Device device_;
  std::unique_ptr<poplar::Engine> engine_;

 public:
  poplar::Graph graph;
};

template <typename T = float>
std::vector<T> counting(std::size_t count, T first = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(first + static_cast<T>(i));
  return values;
}

// Prints what failed; what a test's main returns.
inline int result(void (*body)()) {
  const std::string error = check::messageOf(body);
  check::that(error.empty(), "no exception", __FILE__, __LINE__, error);
  return check::failures == 0 ? 0 : 1;
}

}  // namespace on_model
