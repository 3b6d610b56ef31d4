// poplin::matMul of [m, m] times [m, n] on a Bow, float sums, one execution: compute, exchange and sync. Measured by Li
// et al. (arXiv:2303.16999; graphcore-research/sparsity-benchmarks), digitised from a figure, so that points are good
// to
// +-1.5 %. Nothing is fitted to a cell: the vertex' cost is published, the planner takes the least estimate.
#include "calibration/dense_products.hpp"

#include <array>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplin/MatMul.hpp>

#include "ipu_model/profile.hpp"

namespace ipu_model::calibration {
namespace {

struct Point {
  bool halves;
  std::size_t size, columns;  // m and k, n
  double cycles;
};

constexpr auto kPoints = std::to_array<Point>({
    {true, 1024, 256, 11123},      {true, 1024, 32768, 569882},  {true, 2048, 4, 4833},
    {true, 2048, 16, 5601},        {true, 2048, 64, 12059},      {true, 2048, 2048, 158675},
    {true, 2048, 4096, 300709},    {true, 4096, 4, 13622},       {true, 4096, 16, 16217},
    {true, 4096, 256, 90773},      {true, 4096, 1024, 304786},   {true, 4096, 2048, 569882},
    {true, 8192, 4, 46357},        {true, 8192, 256, 284941},    {false, 1024, 8192, 557186},
    {false, 1024, 32768, 2169865}, {false, 2048, 4, 10883},      {false, 2048, 32, 18925},
    {false, 2048, 64, 28959},      {false, 2048, 256, 88626},    {false, 2048, 512, 159250},
    {false, 2048, 2048, 557186},   {false, 4096, 4, 35137},      {false, 4096, 8, 40051},
    {false, 4096, 16, 44445},      {false, 4096, 32, 62762},     {false, 4096, 64, 96039},
    {false, 4096, 256, 301894},    {false, 4096, 2048, 2228746}, {false, 4096, 4096, 4339729},
    {false, 8192, 16, 159726},     {false, 8192, 64, 327143},    {false, 8192, 256, 1144612},
    {false, 8192, 1024, 4702690},
});

double predicted(const Point& point) {
  const poplar::Device device = poplar::IPUModel("bow").createDevice();
  poplar::Graph graph(device);
  const poplar::Type type = point.halves ? poplar::HALF : poplar::FLOAT;
  const std::vector<std::size_t> left{point.size, point.size}, right{point.size, point.columns};
  const poplar::Tensor a = poplin::createMatMulInputLHS(graph, type, left, right, "a");
  const poplar::Tensor b = poplin::createMatMulInputRHS(graph, type, left, right, "b");
  poplar::program::Sequence program;
  poplin::matMul(graph, a, b, program, type, "product");
  poplar::Engine engine(graph, program);
  engine.load(device);
  engine.run();
  const PhaseCycles cycles = profileOf(engine).cycles;
  return static_cast<double>(cycles.compute + cycles.exchange + cycles.sync);
}

std::string nameOf(const Point& point) {
  const std::string size = std::to_string(point.size);
  return size + " x " + size + " x " + std::to_string(point.columns);
}

}  // namespace

Table denseProducts(bool halves, double most_products) {
  Table table{std::string("**Dense products** of ") + (halves ? "halves" : "floats") + " on Bow", "cycles", 0, {}};
  for (const Point& point : kPoints) {
    const auto size = static_cast<double>(point.size);
    if (point.halves != halves || size * size * static_cast<double>(point.columns) > most_products) continue;
    table.rows.push_back(exactly(nameOf(point), predicted(point), point.cycles));
  }
  return table;
}

}  // namespace ipu_model::calibration
