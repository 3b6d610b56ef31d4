// Vertices of one's own, compiled when the program runs.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poputil/VertexTemplates.hpp>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;

int main() {
  IPUModel model;
  model.tilesPerIPU = 8;
  Device device = model.createDevice();
  Graph graph(device.getTarget());
  graph.addCodelets("programs/codelets/row_sum.cpp");

  Tensor matrix = graph.addVariable(FLOAT, {4, 3}, "matrix"), sums = graph.addVariable(FLOAT, {4}, "sums");
  graph.setInitialValue(matrix.flatten(), ArrayRef<float>({7, 1, 3, 2, -1, 4, 0, 5, 5, 1, 1, 1}));
  ComputeSet add = graph.addComputeSet("add");
  for (unsigned i = 0; i < 4; ++i) {
    VertexRef vertex = graph.addVertex(add, "RowSum");
    graph.connect(vertex["row"], matrix[i]);
    graph.connect(vertex["sum"], sums[i]);
    graph.setTileMapping(vertex, i);
    graph.setTileMapping(matrix[i], i);
    graph.setTileMapping(sums[i], i);
    graph.setPerfEstimate(vertex, 20);
  }

  // A vertex with several rows, and a template: columns weighted by the sums.
  Tensor total = graph.addVariable(FLOAT, {3}, "total");
  graph.setInitialValue(total, ArrayRef<float>({0.5f, 0, 0}));
  graph.setTileMapping(total, 5);
  ComputeSet weigh = graph.addComputeSet("weigh");
  VertexRef vertex = graph.addVertex(weigh, poputil::templateVertex("WeightedSum", FLOAT),
                                     {{"weights", sums}, {"total", total}, {"repeats", 2}});
  graph.setFieldSize(vertex["rows"], 4);
  for (unsigned i = 0; i < 4; ++i) graph.connect(vertex["rows"][i], matrix[i]);
  graph.setTileMapping(vertex, 5);
  graph.createHostRead("sums", sums);
  graph.createHostRead("total", total);

  Engine engine(graph, Sequence(Execute(add), Execute(weigh)));
  engine.load(device);
  engine.run();
  std::vector<float> got(4), weighted(3);
  engine.readTensor("sums", got.data(), got.data() + 4);
  engine.readTensor("total", weighted.data(), weighted.data() + 3);
  CHECK(got == std::vector<float>({11, 5, 10, 3}));
  CHECK(weighted == std::vector<float>({2 * (77 + 10 + 0 + 3) + 0.5F, 2 * (11 - 5 + 50 + 3), 2 * (33 + 20 + 50 + 3)}));
  return check::failures;
}
