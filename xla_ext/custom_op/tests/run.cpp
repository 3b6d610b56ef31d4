// A miniature framework: `run_custom_op library.so folder ...` loads the custom operation, builds it with its gradients
// into a graph for a device of the DeviceManager, and runs it on the arrays of each folder. Written against Poplar's
// public headers alone.
//
// A folder holds `attributes`, `gradient_attributes`, and `arrays`, a line for each array: "input" or "gradient" (of an
// output), its type, its dimensions; and its elements, row-major, in `input0`, `gradient0`, ... Written are `output0`
// and `input_gradient0`, ..., by the position of the input.
#include <dlfcn.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poputil/TileMapping.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Tensors = std::vector<poplar::Tensor>;
using Metadata = void(std::vector<std::int64_t>&, std::vector<std::int64_t>&, std::map<std::int64_t, std::int64_t>&,
                      bool&, bool&, bool&, std::uint32_t);
using Build = poplar::program::Program(poplar::Graph&, const Tensors&, Tensors&, const std::string&,
                                       const std::string&);
using BuildGradient = poplar::program::Program(poplar::Graph&, std::int64_t, const Tensors&, const Tensors&,
                                               const Tensors&, Tensors&, const std::string&, const std::string&);

constexpr std::int32_t kApiLevel = 5;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

class Library {
 public:
  explicit Library(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    require(handle_ != nullptr, handle_ == nullptr ? dlerror() : "");
    require(*static_cast<const std::int32_t*>(find("custom_op_api_level")) == kApiLevel, "another API level");
    check(function<Metadata>("Build_metadata"));
    check(function<Metadata>("Build_grad_metadata"));
  }

  template <typename Signature>
  Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(find(name));
  }

 private:
  void* find(const char* name) const {
    void* found = dlsym(handle_, name);
    require(found != nullptr, std::string("no ") + name);
    return found;
  }

  static void check(Metadata* metadata) {
    std::vector<std::int64_t> allocating = {7}, identical = {7};
    std::map<std::int64_t, std::int64_t> aliasing = {{7, 7}};
    bool elementwise = true, stateless = false, hashable = false;
    metadata(allocating, identical, aliasing, elementwise, stateless, hashable, 3);
    require(allocating.empty() && identical.empty() && aliasing.empty(), "metadata: positions of inputs or outputs");
    require(!elementwise && stateless && hashable, "metadata: flags");
  }

  void* handle_;
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

// As numpy calls them.
poplar::Type typeNamed(const std::string& name) {
  if (name == "float32") return poplar::FLOAT;
  if (name == "float16") return poplar::HALF;
  if (name == "int32") return poplar::INT;
  throw std::runtime_error("no type " + name);
}

// A folder's arrays in a graph, and its results.
class Run {
 public:
  Run(const poplar::Device& device, const Library& library, std::filesystem::path folder)
      : device_(device), graph_(device.getTarget()), folder_(std::move(folder)) {
    std::istringstream lines(contents(folder_ / "arrays"));
    for (std::string line; std::getline(lines, line);) addArray(line);
    const auto text = [this](const char* name) { return contents(folder_ / name); };
    Tensors outputs, input_gradients;
    program_.add(library.function<Build>("Build")(graph_, arrays_["input"], outputs, text("attributes"), "forward"));
    program_.add(library.function<BuildGradient>("Build_grad")(graph_, 0, arrays_["gradient"], arrays_["input"],
                                                               outputs, input_gradients, text("gradient_attributes"),
                                                               "backward"));
    require(input_gradients.size() == arrays_["input"].size(), "not a gradient for each input");
    read("output", outputs);
    read("input_gradient", input_gradients);
  }

  void run() {
    poplar::Engine engine(graph_, program_);
    engine.load(device_);
    for (const auto& [name, tensors] : arrays_) {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        std::string bytes = contents(folder_ / (name + std::to_string(i)));
        engine.writeTensor(name + std::to_string(i), bytes.data(), bytes.data() + bytes.size());
      }
    }
    engine.run();
    for (const auto& [name, size] : results_) {
      std::string bytes(size, '\0');
      engine.readTensor(name, bytes.data(), bytes.data() + size);
      std::ofstream(folder_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(size));
    }
  }

 private:
  void addArray(const std::string& line) {
    std::istringstream words(line);
    std::string kind, type;
    words >> kind >> type;
    const std::vector<std::size_t> shape{std::istream_iterator<std::size_t>(words), {}};
    Tensors& tensors = arrays_[kind];
    const std::string name = kind + std::to_string(tensors.size());
    tensors.push_back(graph_.addVariable(typeNamed(type), shape, name));
    poputil::mapTensorLinearly(graph_, tensors.back());
    graph_.createHostWrite(name, tensors.back());
  }

  void read(const std::string& kind, const Tensors& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].valid()) continue;
      const std::string name = kind + std::to_string(i);
      graph_.createHostRead(name, tensors[i]);
      results_[name] = tensors[i].numElements() * device_.getTarget().getTypeSize(tensors[i].elementType());
    }
  }

  const poplar::Device& device_;
  poplar::Graph graph_;
  std::filesystem::path folder_;
  poplar::program::Sequence program_;
  std::map<std::string, Tensors> arrays_;
  std::map<std::string, std::size_t> results_;  // bytes
};

}  // namespace

int main(int argc, char** argv) try {
  require(argc > 2, "run_custom_op library.so folder ...");
  const Library library(argv[1]);
  const poplar::Device device = poplar::DeviceManager::createDeviceManager().acquireAvailableDevice(1);
  require(device.getTarget().getNumTiles() > 0, "no device");
  for (int i = 2; i < argc; ++i) Run(device, library, argv[i]).run();
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
