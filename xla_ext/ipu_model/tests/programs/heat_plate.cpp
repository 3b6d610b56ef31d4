// A stencil: heat flowing through a plate whose rows are spread over the tiles; two buffers in turn, halos exchanged.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr unsigned kTiles = 10, kHeight = 37, kWidth = 24, kPairs = 15;
constexpr float kAlpha = 0.2F;

unsigned firstRow(unsigned tile) { return tile * kHeight / kTiles; }

Execute step(Graph& graph, const Tensor& from, const Tensor& to) {
  ComputeSet cs = graph.addComputeSet("step");
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    const unsigned first = firstRow(tile), last = firstRow(tile + 1);
    VertexRef vertex = graph.addVertex(cs, "HeatStep");
    graph.connect(vertex["in"], from.slice(first, last).flatten());
    graph.connect(vertex["above"], from.slice(first > 0 ? first - 1 : 0, first).flatten());
    graph.connect(vertex["below"], from.slice(last, last < kHeight ? last + 1 : last).flatten());
    graph.connect(vertex["out"], to.slice(first, last).flatten());
    graph.setInitialValue(vertex["rows"], last - first);
    graph.setInitialValue(vertex["columns"], kWidth);
    graph.setInitialValue(vertex["alpha"], kAlpha);
    graph.setTileMapping(vertex, tile);
  }
  return Execute(cs);
}

void hostStep(std::vector<float>& plate) {
  const std::vector<float> old = plate;
  for (unsigned y = 1; y + 1 < kHeight; ++y) {
    for (unsigned x = 1; x + 1 < kWidth; ++x) {
      const unsigned i = y * kWidth + x;
      plate[i] = old[i] + kAlpha * (old[i - kWidth] + old[i + kWidth] + old[i - 1] + old[i + 1] - 4 * old[i]);
    }
  }
}

}  // namespace

int main() {
  IPUModel model;
  model.tilesPerIPU = kTiles;
  Device device = model.createDevice();
  Graph graph(device.getTarget());
  graph.addCodelets("programs/codelets/heat.cpp");
  Tensor a = graph.addVariable(FLOAT, {kHeight, kWidth}, "a"), b = graph.addVariable(FLOAT, {kHeight, kWidth}, "b");
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    graph.setTileMapping(a.slice(firstRow(tile), firstRow(tile + 1)), tile);
    graph.setTileMapping(b.slice(firstRow(tile), firstRow(tile + 1)), tile);
  }
  graph.createHostWrite("plate", a);
  graph.createHostRead("plate", a);
  const Repeat steps(kPairs, Sequence(step(graph, a, b), step(graph, b, a)));
  Engine engine(graph, steps);
  engine.load(device);

  std::vector<float> plate(kHeight * kWidth), got(kHeight * kWidth);
  for (unsigned x = 0; x < kWidth; ++x) plate[x] = 100;
  engine.writeTensor("plate", plate.data(), plate.data() + plate.size());
  engine.run();
  engine.readTensor("plate", got.data(), got.data() + got.size());
  for (unsigned i = 0; i < 2 * kPairs; ++i) hostStep(plate);
  for (std::size_t i = 0; i < plate.size(); ++i) CHECK_NEAR(got[i], plate[i], 1e-3F);
  return check::failures;
}
