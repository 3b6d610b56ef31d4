// One program on the model for the tests of the libraries: inputs from host arrays, results back into host arrays.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <poputil/TileMapping.hpp>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

namespace poplibs_test {

using poplar::Tensor;
using Shape = std::vector<std::size_t>;

inline std::size_t product(const Shape& shape) {
  std::size_t elements = 1;
  for (const std::size_t size : shape) elements *= size;
  return elements;
}

inline poplar::Device modelDevice(unsigned tiles, unsigned ipus = 1) {
  poplar::IPUModel model;
  model.tilesPerIPU = tiles;
  model.numIPUs = ipus;
  return model.createDevice();
}

class Run {
 public:
  explicit Run(unsigned tiles, unsigned ipus = 1) : device_(modelDevice(tiles, ipus)), graph(device_) {}

 private:
  poplar::Device device_;

 public:
  poplar::Graph graph;
  poplar::program::Sequence prog;

  // A variable that holds these values when the program starts, spread over all tiles (or all on one).
  template <typename T>
  Tensor input(const Shape& shape, const std::vector<T>& values, unsigned grain = 1) {
    return input(poplar::equivalent_device_type<T>().value, shape, values, grain);
  }
  template <typename T>
  Tensor input(const poplar::Type& type, const Shape& shape, const std::vector<T>& values, unsigned grain = 1) {
    const Tensor t = graph.addVariable(type, shape, "input");
    poputil::mapTensorLinearly(graph, t, 1, grain);
    fill(t, values);
    return t;
  }
  template <typename T>
  void fill(const Tensor& t, const std::vector<T>& values) {
    // vector<bool> has no array to point at.
    std::vector<std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>> array(values.begin(), values.end());
    graph.setInitialValue(t.flatten(), poplar::ArrayRef<typename decltype(array)::value_type>(array));
  }

  // Asks for a tensor's values after the run.
  std::string output(const Tensor& t) {
    const std::string name = "out" + std::to_string(outputs_++);
    graph.createHostRead(name, t);
    return name;
  }

  void run(unsigned times = 1) {
    engine_ = std::make_unique<poplar::Engine>(graph, prog);
    engine_->load(device_);
    for (unsigned i = 0; i < times; ++i) engine_->run(0);
  }
  poplar::Engine& engine() { return *engine_; }

  template <typename T>
  std::vector<T> read(const std::string& name, std::size_t elements) {
    std::vector<T> values(elements);
    engine_->readTensor(name, values.data(), values.data() + elements);
    return values;
  }

 private:
  std::unique_ptr<poplar::Engine> engine_;
  unsigned outputs_ = 0;
};

inline std::vector<float> randomFloats(std::size_t count, unsigned seed, float low = -4, float high = 4) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = draw(bits);
  return values;
}

inline std::vector<int> randomInts(std::size_t count, unsigned seed, int low, int high) {
  std::mt19937 bits(seed);
  std::uniform_int_distribution<int> draw(low, high);
  std::vector<int> values(count);
  for (int& value : values) value = draw(bits);
  return values;
}

// The numbers of tiles that tests draw from: one, an odd one, many.
inline const std::vector<unsigned> kTileCounts = {1, 7, 64};

}  // namespace poplibs_test
