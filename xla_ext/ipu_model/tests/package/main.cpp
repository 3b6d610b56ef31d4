// Squares of 1 to 4, and their sum: 30.
#include <iostream>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <popops/Reduce.hpp>
#include <popops/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <vector>

int main() {
  poplar::Device device = poplar::DeviceManager::createDeviceManager().acquireAvailableDevice(1);
  poplar::Graph graph(device.getTarget());
  popops::addCodelets(graph);
  graph.addCodelets("squares.gp");
  poplar::Tensor values = graph.addVariable(poplar::FLOAT, {4}, "values");
  graph.setTileMapping(values, 0);
  graph.createHostWrite("values", values);
  poplar::ComputeSet squares = graph.addComputeSet("squares");
  graph.setTileMapping(graph.addVertex(squares, "Square", {{"values", values}}), 0);
  poplar::program::Sequence program = poplar::program::Execute(squares);
  poplar::Tensor sum = popops::reduce(graph, values, {0}, popops::Operation::ADD, program);
  graph.createHostRead("sum", sum);

  poplar::Engine engine(graph, program);
  engine.load(device);
  const std::vector<float> input = {1, 2, 3, 4};
  engine.writeTensor("values", input.data(), input.data() + input.size());
  engine.run(0);
  float result = 0;
  engine.readTensor("sum", &result, &result + 1);
  std::cout << result << '\n';
  return result == 30 ? 0 : 1;
}
