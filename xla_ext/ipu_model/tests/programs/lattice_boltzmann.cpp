// A small fluid: D2Q9 lattice Boltzmann on a periodic grid, cells spread over tiles and workers, the total mass by a
// reduction; it must stay, and so must the sum of momenta.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <popops/Reduce.hpp>
#include <popops/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr unsigned kWidth = 12, kHeight = 10, kCells = kWidth * kHeight, kSpeeds = 9, kSteps = 20;
constexpr int kX[kSpeeds] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, kY[kSpeeds] = {0, 0, 1, 0, -1, 1, 1, -1, -1};

// The grid as the particles of one speed see it that arrive: moved against the speed, around the edges.
Tensor comingFrom(const Tensor& grid, unsigned speed) {
  const auto turn = [](const Tensor& t, int by, unsigned dim) {
    const auto size = static_cast<int>(t.dim(dim));
    const auto cut = static_cast<std::size_t>(((size - by) % size));
    return concat(t.slice(cut, t.dim(dim), dim), t.slice(0, cut, dim), dim);
  };
  return turn(turn(grid, kY[speed], 0), kX[speed], 1).flatten();
}

}  // namespace

int main() {
  IPUModel model;
  model.tilesPerIPU = 5;
  Device device = model.createDevice();
  Graph graph(device.getTarget());
  popops::addCodelets(graph);
  graph.addCodelets("programs/codelets/lattice_boltzmann.cpp");

  Tensor cells = graph.addVariable(FLOAT, {kHeight, kWidth, kSpeeds}, "cells");
  Tensor next = graph.addVariable(FLOAT, {kHeight, kWidth, kSpeeds}, "next");
  poputil::mapTensorLinearly(graph, cells, kSpeeds, kSpeeds);
  graph.setTileMapping(next, graph.getTileMapping(cells));
  std::vector<Tensor> arriving;
  for (unsigned speed = 0; speed < kSpeeds; ++speed) {
    arriving.push_back(comingFrom(cells.slice(speed, speed + 1, 2).squeeze({2}), speed));
  }

  ComputeSet stream = graph.addComputeSet("stream"), collide = graph.addComputeSet("collide");
  std::vector<Tensor> masses;
  const auto mapping = graph.getTileMapping(cells);
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    for (const auto& share : poputil::splitRegionsBetweenWorkers(graph.getTarget(), mapping[tile], kSpeeds)) {
      const std::size_t first = share.front().begin() / kSpeeds, last = share.back().end() / kSpeeds;
      VertexRef moves = graph.addVertex(stream, "Stream");
      graph.setFieldSize(moves["from"], kSpeeds);
      for (unsigned speed = 0; speed < kSpeeds; ++speed) {
        graph.connect(moves["from"][speed], arriving[speed].slice(first, last));
      }
      graph.connect(moves["cells"], next.flatten().slice(first * kSpeeds, last * kSpeeds));
      graph.setTileMapping(moves, tile);
      Tensor mass = graph.addVariable(FLOAT, {1}, "mass");
      graph.setTileMapping(mass, tile);
      VertexRef relaxes = graph.addVertex(collide, "Collide");
      graph.connect(relaxes["cells"], next.flatten().slice(first * kSpeeds, last * kSpeeds));
      graph.connect(relaxes["mass"], mass[0]);
      graph.setInitialValue(relaxes["omega"], 1.2F);
      graph.setTileMapping(relaxes, tile);
      masses.push_back(mass);
    }
  }
  Sequence prog;
  prog.add(Repeat(kSteps, Sequence(Execute(stream), Execute(collide), Copy(next, cells))));
  Tensor total = popops::reduce(graph, concat(masses), FLOAT, {0}, popops::Operation::ADD, prog, "total");
  graph.createHostWrite("cells", cells);
  graph.createHostRead("cells", cells);
  graph.createHostRead("total", total);
  Engine engine(graph, prog);
  engine.load(device);

  std::vector<float> before(kCells * kSpeeds), after(kCells * kSpeeds);
  for (unsigned i = 0; i < before.size(); ++i) before[i] = 0.1F + 0.01F * static_cast<float>(i * 7 % 13);
  engine.writeTensor("cells", before.data(), before.data() + before.size());
  engine.run();
  engine.readTensor("cells", after.data(), after.data() + after.size());
  float mass = 0;
  engine.readTensor("total", &mass, &mass + 1);
  double sums[3] = {0, 0, 0}, sums_after[3] = {0, 0, 0};
  for (unsigned i = 0; i < before.size(); ++i) {
    const double moments[3] = {1, static_cast<double>(kX[i % kSpeeds]), static_cast<double>(kY[i % kSpeeds])};
    for (unsigned m = 0; m < 3; ++m) {
      sums[m] += moments[m] * static_cast<double>(before[i]);
      sums_after[m] += moments[m] * static_cast<double>(after[i]);
    }
  }
  CHECK(before != after);
  CHECK_NEAR(static_cast<double>(mass), sums[0], 1e-3 * sums[0]);
  for (unsigned m = 0; m < 3; ++m) CHECK_NEAR(sums_after[m], sums[m], 1e-3 * sums[0]);
  return check::failures;
}
