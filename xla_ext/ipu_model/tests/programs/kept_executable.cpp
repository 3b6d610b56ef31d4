// An executable that is compiled once, kept in a file, and run by an engine that never sees its graph: with codelets of
// its own and of the libraries, streams, control flow, printing, host functions and handles.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <popops/ElementWise.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

Device device() {
  IPUModel model;
  model.tilesPerIPU = 4;
  return model.createDevice();
}

std::string compiled() {
  Graph graph(device().getTarget());
  graph.addCodelets("programs/codelets/row_sum.cpp");
  const Tensor row = graph.addVariable(FLOAT, {4}, "row"), sum = graph.addVariable(FLOAT, {}, "sum");
  const Tensor again = graph.addVariable(BOOL, {}, "again");
  graph.setTileMapping(row, 1);
  graph.setTileMapping(sum, 2);
  graph.setTileMapping(again, 0);
  graph.setInitialValue(again, true);
  const ComputeSet sums = graph.addComputeSet("sums");
  graph.setTileMapping(graph.addVertex(sums, "RowSum", {{"row", row}, {"sum", sum}}), 3);
  Sequence steps(Copy(graph.addHostToDeviceFIFO("in", FLOAT, 4), row), Execute(sums));
  popops::addInPlace(graph, sum, sum, steps);
  steps.add(PrintTensor("twice", sum));
  const HostFunction note = graph.addHostFunction("note", {FLOAT}, {1}, {BOOL}, {1});
  steps.add(Call(note, {sum}, {again}));
  graph.createHostRead("sum", sum);
  std::ostringstream json;
  graph.serialize(json, SerializationFormat::JSON);
  CHECK(json.str().find(
            "{\"variables\":[{\"name\":\"row\",\"type\":\"float\",\"elements\":4,\"mapping\":[{\"tile\":1,") == 0);
  CHECK(json.str().find("\"type\":\"RowSum\",\"compute_set\":0,\"tile\":3,\"edges\":[{\"field\":\"row\"") !=
        std::string::npos);
  CHECK_THROWS(graph.serialize(json, SerializationFormat::Binary), "`format` must be JSON");
  std::ostringstream file;
  compileGraph(graph, {RepeatWhileTrue(Sequence(), again, steps)}).serialize(file);
  return file.str();
}

}  // namespace

int main() {
  const std::string text = compiled();
  std::istringstream file(text);
  Engine engine(Executable::deserialize(file));
  engine.load(device());
  std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8}, seen;
  engine.connectStream("in", rows.data(), rows.data() + rows.size());
  engine.connectHostFunction("note", 0, [&seen](ArrayRef<const void*> inputs, ArrayRef<void*> outputs) {
    seen.push_back(*static_cast<const float*>(inputs[0]));
    *static_cast<bool*>(outputs[0]) = seen.size() < 2;
  });
  std::ostringstream printed, summary;
  engine.setPrintTensorStream(printed);
  engine.run(0);
  float sum = 0;
  engine.readTensor("sum", &sum);
  CHECK(seen == std::vector<float>({20, 52}) && sum == 52);
  CHECK_EQUAL(printed.str(), "twice: 20.000000\ntwice: 52.000000\n");
  engine.printProfileSummary(summary);
  CHECK(summary.str().find("  Number of compute sets:            2\n") != std::string::npos);
  CHECK(summary.str().find("RowSum") != std::string::npos);

  std::vector<std::string> damaged = {"another file", text.substr(0, text.size() / 2)};
  for (std::size_t place = 0; place < text.size(); place += 1 + text.size() / 50) {
    damaged.push_back(text);
    damaged.back()[place] ^= 0x40;  // the sizes at the beginning become huge
  }
  for (const std::string& each : damaged) {
    std::istringstream part(each);
    CHECK_THROWS(Executable::deserialize(part), "deserialize: `in` must");
  }
  return check::failures;
}
