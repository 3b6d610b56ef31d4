// A program whose codelet stands in the same file, as some public programs have it: popc defines __POPC__. The vertex
// reads and writes one tensor in place, its fields are used like pointers, and the stream's callback is replaced
// between two runs.
#ifdef __POPC__

#include <poplar/Vertex.hpp>

using namespace poplar;

class Halve : public Vertex {
 public:
  Input<Vector<float>> from;
  Output<Vector<float>> to;
  Vector<Input<Vector<int>>> steps;

  bool compute() {
    if (from->size() != to->size() || steps->size() != 1) return false;
    for (unsigned i = 0; i < from->size(); ++i) to[i] = from[i] / 2 + static_cast<float>(steps[0]->size());
    return true;
  }
};

#else

#include <algorithm>
#include <memory>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <poplar/StreamCallback.hpp>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr unsigned kElements = 8;

class Fill final : public StreamCallback {
 public:
  Fill(float value, unsigned& fetched) : value_(value), fetched_(fetched) {}
  Result prefetch(void*) noexcept override { return Result::NotAvailable; }
  void fetch(void* data) noexcept override {
    std::fill_n(static_cast<float*>(data), kElements, value_);
    ++fetched_;
  }
  void complete() noexcept override {}

 private:
  float value_;
  unsigned& fetched_;
};

Repeat build(Graph& graph) {
  const Tensor numbers = graph.addVariable(FLOAT, {kElements}, "numbers");
  const Tensor steps = graph.addConstant<int>(INT, {1, 3}, 0);
  for (const Tensor& tensor : {numbers, steps}) graph.setTileMapping(tensor, 0);
  graph.addCodelets(__FILE__);
  const ComputeSet halves = graph.addComputeSet("halves");
  const VertexRef vertex = graph.addVertex(halves, "Halve", {{"from", numbers}, {"to", numbers}, {"steps", steps}});
  graph.setTileMapping(vertex, 0);
  const DataStream in = graph.addHostToDeviceFIFO("in", FLOAT, kElements);
  const DataStream out = graph.addDeviceToHostFIFO("out", FLOAT, kElements);
  return Repeat(5, Sequence(Copy(in, numbers), Execute(halves), Copy(numbers, out)));
}

}  // namespace

int main() {
  const Device device = IPUModel().createDevice();
  Graph graph(device);
  Engine engine(graph, build(graph), {{"exchange.enablePrefetch", "true"}});
  engine.load(device);
  std::vector<float> result(kElements);
  engine.connectStream("out", result.data(), result.data() + result.size());
  for (const float value : {1.0F, 3.0F}) {
    unsigned fetched = 0;
    engine.connectStreamToCallback("in", std::make_unique<Fill>(value, fetched));
    engine.run(0);
    CHECK_EQUAL(fetched, 5U);
    CHECK_EQUAL(std::count(result.begin(), result.end(), value / 2 + 3), kElements);
  }
  return check::failures;
}

#endif
