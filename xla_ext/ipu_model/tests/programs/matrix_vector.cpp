// A matrix-vector product: streams in, one vertex for each row, six of them on a tile, a stream out; and its profile.
#include <cmath>
#include <cstdlib>
#include <ipu_model/profile.hpp>
#include <poplar/CycleCount.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <random>
#include <sstream>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr unsigned kRows = 200, kColumns = 64;

Program buildMultiply(Graph& graph, const Tensor& matrix, const Tensor& vector, const Tensor& out) {
  ComputeSet multiply = graph.addComputeSet("multiply");
  const unsigned tiles = graph.getTarget().getNumTiles();
  for (unsigned row = 0; row < kRows; ++row) {
    VertexRef vertex =
        graph.addVertex(multiply, "DotProduct", {{"row", matrix[row]}, {"vector", vector}, {"result", out[row]}});
    graph.setTileMapping(vertex, row * tiles / kRows);
    graph.setPerfEstimate(vertex, 20 + kColumns * 4);
  }
  return Execute(multiply);
}

}  // namespace

int main() {
  IPUModel model;
  model.tilesPerIPU = 32;
  Device device = model.createDevice();
  Graph graph(device);
  graph.addCodelets("programs/codelets/dot_product.cpp");

  Tensor matrix = graph.addVariable(FLOAT, {kRows, kColumns}, "matrix");
  Tensor vector = graph.addVariable(FLOAT, {kColumns}, "vector");
  Tensor out = graph.addVariable(FLOAT, {kRows}, "out");
  for (unsigned row = 0; row < kRows; ++row) {
    graph.setTileMapping(matrix[row], row * 32 / kRows);
    graph.setTileMapping(out[row], row * 32 / kRows);
  }
  graph.setTileMapping(vector, 0);

  auto matrix_stream = graph.addHostToDeviceFIFO("matrix", FLOAT, matrix.numElements());
  auto vector_stream = graph.addHostToDeviceFIFO("vector", FLOAT, vector.numElements());
  auto out_stream = graph.addDeviceToHostFIFO("out", FLOAT, out.numElements());
  Sequence multiply;
  multiply.add(buildMultiply(graph, matrix, vector, out));
  Tensor count = cycleCount(graph, multiply, 0, SyncType::INTERNAL);
  graph.createHostRead("cycles", count);
  Sequence prog(Copy(matrix_stream, matrix), Copy(vector_stream, vector), multiply, Copy(out, out_stream));

  Engine engine(graph, prog, OptionFlags{{"debug.instrument", "true"}});
  engine.load(device);
  std::mt19937 bits(1);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> a(kRows * kColumns), x(kColumns), y(kRows);
  for (float& value : a) value = draw(bits);
  for (float& value : x) value = draw(bits);
  engine.connectStream("matrix", a.data());
  engine.connectStream("vector", x.data());
  engine.connectStream("out", y.data());
  engine.run(0);

  for (unsigned row = 0; row < kRows; ++row) {
    float sum = 0;
    for (unsigned i = 0; i < kColumns; ++i) sum += a[row * kColumns + i] * x[i];
    CHECK_NEAR(y[row], sum, 1e-5F);
  }
  std::uint64_t cycles = 0;
  engine.readTensor("cycles", &cycles, &cycles + 1);
  const ipu_model::Profile profile = ipu_model::profileOf(engine);
  // Seven vertices on the fullest tile: two rounds of six workers, at six cycles an instruction.
  CHECK(profile.cycles.compute >= 2 * 6 * (20 + kColumns * 4));
  CHECK(profile.cycles.exchange > kColumns && profile.cycles.host > 0);
  CHECK(cycles >= 2 * 6 * (20 + kColumns * 4) && cycles <= profile.cycles.total());
  std::ostringstream summary;
  engine.printProfileSummary(summary, {{"showExecutionSteps", "true"}});
  CHECK(summary.str().find("DotProduct") != std::string::npos);
  return check::failures;
}
