// Arithmetic from the libraries instead of vertices of one's own.
#include <cmath>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/codelets.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;
namespace pe = popops::expr;

int main() {
  IPUModel model;
  model.tilesPerIPU = 20;
  Device device = model.createDevice();
  Graph graph(device.getTarget());
  popops::addCodelets(graph);
  poplin::addCodelets(graph);

  Tensor a = graph.addVariable(FLOAT, {2, 2}, "a"), b = graph.addVariable(FLOAT, {2, 2}, "b");
  poputil::mapTensorLinearly(graph, a);
  poputil::mapTensorLinearly(graph, b);
  graph.setInitialValue(a.flatten(), ArrayRef<float>({1, 2, 3, 4}));
  graph.setInitialValue(b.flatten(), ArrayRef<float>({5, 6, 7, 8}));

  Sequence prog;
  Tensor sum = popops::add(graph, a, b, prog, "sum");
  popops::addInPlace(graph, sum, a, prog, "again");
  Tensor product = poplin::matMul(graph, a, b, prog, FLOAT, "product");
  Tensor sigmoid = popops::map(graph, 1 / (1 + pe::Exp(-pe::_1)), {sum}, prog);
  Tensor columns = popops::reduce(graph, product, {0}, popops::ReduceParams(popops::Operation::ADD), prog, "columns");
  graph.createHostRead("sum", sum);
  graph.createHostRead("product", product);
  graph.createHostRead("sigmoid", sigmoid);
  graph.createHostRead("columns", columns);

  Engine engine(graph, prog);
  engine.load(device);
  engine.run();
  const auto read = [&](const char* handle, std::size_t count) {
    std::vector<float> values(count);
    engine.readTensor(handle, values.data(), values.data() + count);
    return values;
  };
  CHECK(read("sum", 4) == std::vector<float>({7, 10, 13, 16}));
  CHECK(read("product", 4) == std::vector<float>({19, 22, 43, 50}));
  CHECK(read("columns", 2) == std::vector<float>({62, 72}));
  CHECK_NEAR(read("sigmoid", 4)[0], 1 / (1 + std::exp(-7.0F)), 1e-6F);
  return check::failures;
}
