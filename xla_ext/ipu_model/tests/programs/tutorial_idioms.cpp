// What programs after the vendor's tutorials write, taken together: a device that may be hardware or not, utilities of
// the libraries, constants, streams by handle, a compiled executable, and the summary at the end.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <poplar/CycleCount.hpp>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/codelets.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <popops/codelets.hpp>
#include <poprand/RandomGen.hpp>
#include <poprand/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

// The first device that can be attached to, as the tutorials look for one.
Device getDevice(unsigned numIpus) {
  auto manager = DeviceManager::createDeviceManager();
  auto devices = manager.getDevices(TargetType::IPU, numIpus);
  auto it = std::find_if(devices.begin(), devices.end(), [](Device& device) { return device.attach(); });
  if (it == devices.end()) throw poplar_error("no device");
  return std::move(*it);
}

std::vector<Program> buildPrograms(Graph& graph) {
  Tensor m = graph.addVariable(FLOAT, {90, 12}, "m");
  Tensor v = graph.addVariable(FLOAT, {12, 1}, "v");
  poputil::mapTensorLinearly(graph, m);
  poputil::mapTensorLinearly(graph, v);
  auto inM = graph.addHostToDeviceFIFO("inputMatrix", FLOAT, m.numElements());
  auto inV = graph.addHostToDeviceFIFO("inputVector", FLOAT, v.numElements());

  Sequence load{Copy(inM, m), Copy(inV, v)};
  Sequence multiply;
  Tensor product = poplin::matMul(graph, m, v, multiply, "product");
  Tensor bias = graph.addConstant<float>(FLOAT, product.shape(), 0.5f, "bias");
  graph.setTileMapping(bias, graph.getTileMapping(product));
  popops::addInPlace(graph, product, bias, multiply, "addBias");
  Tensor total = popops::reduce(graph, product.flatten(), FLOAT, {0}, {popops::Operation::ADD}, multiply, "total");
  Tensor halves = popops::cast(graph, product, HALF, multiply, "halves");
  popops::zero(graph, halves, multiply, "zero");
  multiply.add(PrintTensor("total", total));
  multiply.add(WriteUndef(halves));
  auto out = graph.addDeviceToHostFIFO("out", FLOAT, product.numElements());
  return {load, multiply, Copy(product, out), Sequence(Sync(SyncType::INTERNAL), Sequence())};
}

}  // namespace

int main() {
  Device device = getDevice(1);
  const Target& target = device.getTarget();
  Graph graph(target);
  poplin::addCodelets(graph);
  popops::addCodelets(graph);
  poprand::addCodelets(graph);
  auto programs = buildPrograms(graph);
  auto executable = compileGraph(graph, programs, OptionFlags{{"target.workerStackSizeInBytes", "0x1000"}});
  Engine engine(std::move(executable), {{"debug.instrument", "true"}, {"autoReport.all", "false"}});
  std::ostringstream printed;
  engine.setPrintTensorStream(printed);
  engine.load(device);

  std::vector<float> matrix(90 * 12, 1.0f), vector(12, 2.0f), result(90);
  engine.connectStream("inputMatrix", matrix.data(), matrix.data() + matrix.size());
  engine.connectStream("inputVector", vector.data(), vector.data() + vector.size());
  engine.connectStream("out", result.data(), result.data() + result.size());
  for (unsigned program = 0; program < 4; ++program) engine.run(program);
  for (const float value : result) CHECK_EQUAL(value, 24.5f);
  CHECK_EQUAL(printed.str(), "total: 2205.0000\n");
  std::ostringstream summary;
  engine.printProfileSummary(summary, OptionFlags{{"showExecutionSteps", "true"}, {"showOptimizations", "true"}});
  CHECK(summary.str().find("IPU Model (not measured on hardware)") == 0);
  return check::failures;
}
