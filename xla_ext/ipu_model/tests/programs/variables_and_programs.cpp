// Variables, constants, copies, control flow and the host's three ways in and out: handles, streams, callbacks.
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;

int main() {
  IPUModel model;
  Device device = model.createDevice();
  Target target = device.getTarget();
  CHECK_EQUAL(target.getNumTiles(), 1472U);  // an IPU of the second generation
  Graph graph(target);

  // A variable of four numbers, each on a tile of its own, and a matrix whose rows are.
  Tensor four = graph.addVariable(FLOAT, {4}, "four");
  for (unsigned i = 0; i < 4; ++i) graph.setTileMapping(four[i], i);
  Tensor constant = graph.addConstant<float>(FLOAT, {4}, {1.0, 1.5, 2.0, 2.5});
  graph.setTileMapping(constant, 0);
  Tensor matrix = graph.addVariable(FLOAT, {4, 4}, "matrix");
  for (unsigned i = 0; i < 4; ++i) graph.setTileMapping(matrix[i], i);

  Sequence prog;
  prog.add(Copy(constant, four));
  prog.add(PrintTensor("four", four));

  // From the host through a handle, into parts of the matrix, and back.
  graph.createHostWrite("matrix-write", matrix);
  graph.createHostRead("matrix-read", matrix);
  prog.add(Copy(four.slice(0, 3), matrix.slice({1, 1}, {2, 4}).flatten()));
  prog.add(Copy(matrix.transpose()[0], matrix[3]));

  // A stream of ten numbers, read twice; and one back to the host.
  DataStream in = graph.addHostToDeviceFIFO("in", INT, 5), out = graph.addDeviceToHostFIFO("out", INT, 5);
  Tensor numbers = graph.addVariable(INT, {5}, "numbers"), twice = graph.addVariable(INT, {5}, "twice");
  graph.setTileMapping(numbers, 7);
  graph.setTileMapping(twice, 9);
  prog.add(Repeat(2, Sequence(Copy(in, numbers), Copy(numbers, twice), Copy(twice.reverse(0), out))));

  // A branch that the host decides.
  Tensor choice = graph.addVariable(BOOL, {}, "choice");
  graph.setTileMapping(choice, 0);
  graph.createHostWrite("choice", choice);
  Tensor zero = graph.addConstant(FLOAT, {4}, 0.0f), one = graph.addConstant(FLOAT, {4}, 1.0f);
  graph.setTileMapping(zero, 0);
  graph.setTileMapping(one, 0);
  prog.add(If(choice, Copy(one, matrix[0]), Copy(zero, matrix[0])));

  Engine engine(graph, prog);
  std::ostringstream printed;
  engine.setPrintTensorStream(printed);
  engine.load(device);

  std::vector<float> values(16, 3);
  engine.writeTensor("matrix-write", values.data(), values.data() + values.size());
  const bool yes = true;
  engine.writeTensor("choice", &yes, &yes + 1);
  std::vector<int> input = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, output(10);
  engine.connectStream("in", input.data(), input.data() + input.size());
  engine.connectStream("out", output.data(), output.data() + output.size());
  engine.run(0);
  engine.readTensor("matrix-read", values.data(), values.data() + values.size());

  CHECK(values == std::vector<float>({1, 1, 1, 1, 3, 1, 1.5, 2, 3, 3, 3, 3, 3, 3, 3, 3}));
  CHECK(output == std::vector<int>({4, 3, 2, 1, 0, 9, 8, 7, 6, 5}));
  CHECK(printed.str().find("four") != std::string::npos);
  CHECK(printed.str().find("2.5") != std::string::npos);

  // Programs that ask for hardware get a model as well.
  auto devices = DeviceManager::createDeviceManager().getDevices(TargetType::IPU, 1);
  CHECK(!devices.empty() && devices.front().attach());
  return check::failures;
}
