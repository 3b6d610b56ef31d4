// poputil: partitions, mappings, broadcasting, names of vertices.
#include <numeric>
#include <poputil/Broadcast.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/program.hpp"

using namespace poplibs_test;

namespace {

std::vector<std::size_t> elementsOf(const std::vector<poputil::Regions>& parts) {
  std::vector<std::size_t> elements;
  for (const auto& part : parts) {
    for (const auto& region : part) {
      for (std::size_t i = region.begin(); i < region.end(); ++i) elements.push_back(i);
    }
  }
  return elements;
}

void splitsKeepEveryElementOnce() {
  const poputil::Regions regions{{3, 10}, {20, 21}, {30, 95}};
  const auto all = elementsOf({regions});
  for (const unsigned grain : {1U, 2U, 8U}) {
    for (const unsigned most : {1U, 3U, 6U, 200U}) {
      const auto parts = poputil::splitRegions(regions, grain, most);
      CHECK(parts.size() <= most);
      CHECK(elementsOf(parts) == all);
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        CHECK_EQUAL(poputil::intervalSequenceNumElements({parts[i]}) % grain, 0U);
      }
    }
  }
  CHECK_EQUAL(poputil::splitRegions(regions, 1, 6, 40).size(), 1U);  // 73 elements: two parts would be too small
  CHECK_EQUAL(poputil::splitRegions(regions, 1, 6, 30).size(), 2U);
  CHECK_EQUAL(poputil::splitRegions(regions, 1, 2, 0, 10).size(), 8U);  // at most 10 elements in each
  for (const auto& part : poputil::splitRegions(regions, 1, 2, 0, UINT_MAX, 5)) {
    for (const auto& region : part) CHECK(region.size() <= 5);
  }
}

void sequencesAreSplitBetweenWorkers() {
  Run run(1);
  const poputil::RegionSequences sequences{{{0, 4}, {8, 12}}, {{20, 40}}};
  const auto parts = poputil::splitRegionsBetweenWorkers(run.graph.getTarget(), sequences, 2);
  CHECK_EQUAL(parts.size(), 6U);
  std::size_t total = 0;
  for (const auto& part : parts) total += poputil::intervalSequenceNumElements(part);
  CHECK_EQUAL(total, 28U);
}

void linearMappingsAreEven() {
  Run run(7);
  const Tensor t = run.graph.addVariable(poplar::FLOAT, {100}, "t");
  poputil::mapTensorLinearly(run.graph, t, 1, 1);
  const auto mapping = run.graph.getTileMapping(t);
  std::size_t begin = 0;
  for (const auto& tile : mapping) {
    CHECK_EQUAL(tile.size(), 1U);
    CHECK_EQUAL(tile[0].begin(), begin);
    CHECK(tile[0].size() == 14 || tile[0].size() == 15);
    begin = tile[0].end();
  }
  CHECK_EQUAL(begin, 100U);
  CHECK_EQUAL(poputil::getTileImbalance(run.graph, t), 0U);
  run.graph.setTileMapping(t, 3);
  CHECK_EQUAL(poputil::getTileImbalance(run.graph, t), 85U);
  poputil::mapTensorLinearly(run.graph, t);  // 32 floats are 128 bytes: three tiles
  CHECK_EQUAL(run.graph.getTileMapping(t)[2].size(), 1U);
  CHECK(run.graph.getTileMapping(t)[3].empty());
}

void offsetsContinueWhereTheLastTensorEnded() {
  Run run(7);
  const Tensor a = run.graph.addVariable(poplar::INT, {5}, "a"), b = run.graph.addVariable(poplar::INT, {4}, "b");
  const unsigned next = poputil::mapTensorLinearlyWithOffset(run.graph, a, 1, 1, 0);
  CHECK_EQUAL(next, 5U);
  CHECK_EQUAL(poputil::mapTensorLinearlyWithOffset(run.graph, b, 1, 1, next), 2U);
  CHECK(run.graph.getTileMapping(b)[5] == poputil::Regions({{0, 1}}));
  CHECK(run.graph.getTileMapping(b)[1] == poputil::Regions({{3, 4}}));
  poputil::mapTensorLinearlyWithOffset(run.graph, b, 1, 1, 0, false);
  CHECK(run.graph.getTileMapping(b)[6] == poputil::Regions({{0, 1}}));
}

void copiesGoToTheSameTileOfAnotherIpu() {
  Run run(4, 2);
  std::vector<float> values(8);
  std::iota(values.begin(), values.end(), 0.0F);
  const Tensor t = run.graph.addVariable(poplar::FLOAT, {8}, "t");
  run.graph.setTileMapping(t.slice(0, 5), 1);
  run.graph.setTileMapping(t.slice(5, 8), 2);
  run.fill(t, values);
  const Tensor copy = poputil::copyToIpu(run.graph, t, run.prog, 1);
  CHECK(run.graph.getTileMapping(copy)[5] == poputil::Regions({{0, 5}}));
  CHECK(run.graph.getTileMapping(copy)[6] == poputil::Regions({{5, 8}}));
  const auto out = run.output(copy);
  run.run();
  CHECK(run.read<float>(out, 8) == values);
  CHECK_THROWS(poputil::cloneToIpu(run.graph, t, 2), "cloneToIpu: `destination` must be below");
}

void shapesAreBroadcast() {
  Run run(1);
  Tensor a = run.graph.addVariable(poplar::FLOAT, {3, 1}), b = run.graph.addVariable(poplar::FLOAT, {2, 1, 4});
  CHECK(poputil::canBroadcastToMatch(a, b));
  poputil::broadcastToMatch(a, b);
  CHECK(a.shape() == Shape({2, 3, 4}) && b.shape() == Shape({2, 3, 4}));
  Tensor c = run.graph.addVariable(poplar::FLOAT, {5});
  CHECK(!poputil::canBroadcastToMatch(a, c));
  CHECK_THROWS(poputil::broadcastToMatch(a, c), "`shapes` must agree or be 1");
  CHECK_THROWS(poputil::broadcastToMatch(a, Shape{3}), "`shapes` must agree");
}

void namesOfVerticesHoldTheirArguments() {
  CHECK_EQUAL(poputil::templateVertex("Plain"), "Plain");
  CHECK_EQUAL(poputil::templateVertex("ns::Sum", poplar::FLOAT, true, 3U), "ns::Sum<float,true,3>");
  CHECK_EQUAL(poputil::templateVertex("A", std::string("B"), "C", poplar::HALF), "A<B,C,half>");
}

void indicesAreFlattened() {
  CHECK_EQUAL(poputil::flattenIndex({3, 4, 5}, {1, 2, 3}), 33U);
  CHECK(poputil::unflattenIndex({3, 4, 5}, 33) == Shape({1, 2, 3}));
  CHECK_THROWS(poputil::unflattenIndex({3}, 3), "`index` must lie inside the shape");
  CHECK_THROWS(poputil::flattenIndex({3}, {1, 2}), "`indices` must have one entry per dimension");
}

}  // namespace

int main() {
  splitsKeepEveryElementOnce();
  sequencesAreSplitBetweenWorkers();
  linearMappingsAreEven();
  offsetsContinueWhereTheLastTensorEnded();
  copiesGoToTheSameTileOfAnotherIpu();
  shapesAreBroadcast();
  namesOfVerticesHoldTheirArguments();
  indicesAreFlattened();
  return check::failures;
}
