// A program for the host's own processor, which maps nothing to tiles, and habits of programs: a graph that is assigned
// later, a sequence made of one program, reading by a pointer alone, lists of codelet files, types by reference,
// vertices without rows.
#include <poplar/CodeletFileType.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Target.hpp>
#include <popops/ElementWise.hpp>
#include <string>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;

int main() {
  const Device device = Device::createCPUDevice();
  Graph graph;
  CHECK(graph.getTarget().getTargetType() == TargetType::CPU);
  graph = Graph(Target::createCPUTarget());
  graph.addCodelets({"programs/codelets/gather_rows.cpp", "programs/codelets/row_sum.cpp"}, "-O1");

  Type& type = FLOAT;
  Tensor values = graph.addVariable(type, {300000}, "values");  // more than a tile of an IPU holds
  Tensor totals = graph.addVariable(type, {3}, "totals");
  graph.setInitialValue(values.slice(0, 3), ArrayRef<float>({1, 2, 3}));
  ComputeSet sums = graph.addComputeSet("sums");
  const std::vector<Tensor> none;
  VertexRef without = graph.addVertex(sums, "RowTotal", {{"extra", values.slice(0, 0)}, {"total", totals[0]}});
  graph.connect(without["rows"], none);
  graph.addVertex(sums, "RowTotal", {{"rows", none}, {"extra", values.slice(0, 2)}, {"total", totals[1]}});
  graph.addVertex(sums, "RowSum", {{"row", values.slice(0, 3)}, {"sum", totals[2]}});

  Sequence steps = Repeat(2, Execute(sums));
  Tensor doubled = popops::add(graph, totals, totals, steps, "doubled");
  graph.createHostRead("doubled", doubled);
  graph.createHostWrite("two", values.slice(0, 2));

  const HostFunctionCallback unused = [](ArrayRef<const void*>, ArrayRef<void*>) {};
  CHECK(static_cast<bool>(unused) && CodeletFileType::Auto != CodeletFileType::Object);
  Engine engine(graph, steps);
  engine.load(device);
  engine.run(0);
  std::vector<float> result(3);
  engine.readTensor("doubled", result.data());
  CHECK(result == std::vector<float>({0, 6, 12}));
  engine.writeTensor("two", std::vector<float>({4, 5}).data());
  engine.run(0);
  engine.readTensor("doubled", result.data());
  CHECK(result == std::vector<float>({0, 18, 24}));

  const Target target = Target::createIPUTarget(2, "ipu2", {{"gatewayMode", "true"}});
  CHECK_EQUAL(target.getNumIPUs(), 2U);
  return check::failures;
}
