// Sorting, top k, and random tensors.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <popops/Sort.hpp>
#include <popops/TopK.hpp>
#include <poprand/RandomGen.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs_program.hpp"

using namespace poplibs_test;
using popops::SortOrder;
using popops::TopKParams;

namespace {

void rowsAndColumnsAreSorted() {
  for (const unsigned tiles : kTileCounts) {
    Run run(tiles);
    const std::vector<float> values = randomFloats(9 * 14, tiles);
    const std::vector<int> payload = randomInts(9 * 14, tiles, 0, 1000);
    const Tensor t = run.input({9, 14}, values), p = run.input({9, 14}, payload);
    const auto rows = run.output(popops::sort(run.graph, t, 1, run.prog));
    const auto along = run.output(popops::sortKeyValue(run.graph, t, p, 1, run.prog));
    popops::sortInPlace(run.graph, t, 0, run.prog);
    const auto columns = run.output(t);
    run.run();
    const auto got = run.read<float>(rows, 126), got_columns = run.read<float>(columns, 126);
    const auto got_along = run.read<int>(along, 126);
    for (std::size_t r = 0; r < 9; ++r) {
      std::vector<std::size_t> order(14);
      std::iota(order.begin(), order.end(), r * 14);
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] < values[b]; });
      for (std::size_t c = 0; c < 14; ++c) {
        CHECK_EQUAL(got[r * 14 + c], values[order[c]]);
        CHECK_EQUAL(got_along[r * 14 + c], payload[order[c]]);
        if (r > 0) CHECK(got_columns[r * 14 + c] >= got_columns[(r - 1) * 14 + c]);
      }
    }
  }
}

void theLargestComeFirst() {
  Run run(7);
  const std::vector<float> values = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  const Tensor t = run.input({2, 5}, values);
  const auto largest = run.output(popops::topK(run.graph, run.prog, t, TopKParams(2, true, SortOrder::DESCENDING)));
  const auto smallest = run.output(popops::topK(run.graph, run.prog, t, TopKParams(3, false, SortOrder::DESCENDING)));
  const auto [k, i] = popops::topKWithPermutation(run.graph, run.prog, t, TopKParams(3, true, SortOrder::ASCENDING));
  const auto keys = run.output(k), indices = run.output(i);
  run.run();
  CHECK(run.read<float>(largest, 4) == std::vector<float>({5, 4, 9, 6}));
  CHECK(run.read<float>(smallest, 6) == std::vector<float>({3, 1, 1, 5, 3, 2}));
  CHECK(run.read<float>(keys, 6) == std::vector<float>({3, 4, 5, 5, 6, 9}));
  CHECK(run.read<unsigned>(indices, 6) == std::vector<unsigned>({0, 2, 4, 3, 2, 0}));
  CHECK_THROWS(popops::topK(run.graph, run.prog, t, TopKParams(6, true, SortOrder::NONE)), "`k` must be at most");
}

struct Moments {
  double mean, deviation;
};

Moments moments(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const auto n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n))};
}

constexpr std::size_t kDraws = 4000;

void distributionsHaveTheirMoments() {
  Run run(7);
  const Tensor like = run.input({kDraws}, std::vector<float>(kDraws));
  const auto uniform = run.output(poprand::uniform(run.graph, nullptr, 0, like, poplar::FLOAT, -1, 3, run.prog));
  const auto normal = run.output(poprand::normal(run.graph, nullptr, 0, like, poplar::FLOAT, 2, 0.5, run.prog));
  const auto cut = run.output(poprand::truncatedNormal(run.graph, nullptr, 0, like, poplar::FLOAT, 0, 1, 1, run.prog));
  const auto coins = run.output(poprand::bernoulli(run.graph, nullptr, 0, like, poplar::FLOAT, 0.25, run.prog));
  const auto dice = run.output(poprand::uniform(run.graph, nullptr, 0, like, poplar::INT, 1, 6, run.prog));
  run.run();
  const auto in_uniform = run.read<float>(uniform, kDraws), in_cut = run.read<float>(cut, kDraws);
  CHECK(*std::min_element(in_uniform.begin(), in_uniform.end()) >= -1);
  CHECK(*std::max_element(in_uniform.begin(), in_uniform.end()) < 3);
  CHECK_NEAR(moments(in_uniform).mean, 1.0, 0.1);
  CHECK_NEAR(moments(in_uniform).deviation, 4 / std::sqrt(12.0), 0.1);
  CHECK_NEAR(moments(run.read<float>(normal, kDraws)).mean, 2.0, 0.05);
  CHECK_NEAR(moments(run.read<float>(normal, kDraws)).deviation, 0.5, 0.05);
  for (const float value : in_cut) CHECK(std::abs(value) <= 1.0001F);
  CHECK_NEAR(moments(run.read<float>(coins, kDraws)).mean, 0.25, 0.05);
  const auto faces = run.read<int>(dice, kDraws);
  CHECK(*std::min_element(faces.begin(), faces.end()) == 1 && *std::max_element(faces.begin(), faces.end()) == 6);
}

std::vector<float> drawn(unsigned tiles, unsigned modifier, std::size_t times = 1) {
  Run run(tiles);
  const Tensor like = run.input({100}, std::vector<float>(100));
  const Tensor seed = run.input({2}, std::vector<unsigned>{42, 7});
  const auto out = run.output(poprand::uniform(run.graph, &seed, modifier, like, poplar::FLOAT, 0, 1, run.prog));
  run.run(static_cast<unsigned>(times));
  return run.read<float>(out, 100);
}

void aSeedFixesTheNumbersOnAnyTiles() {
  CHECK(drawn(1, 3) == drawn(64, 3));
  CHECK(drawn(1, 3) == drawn(1, 3, 2));
  CHECK(drawn(1, 3) != drawn(1, 4));
}

void drawsWithoutSeedGoOn() {
  Run run(2);
  const Tensor like = run.input({50}, std::vector<float>(50)), seed = run.input({2}, std::vector<unsigned>{1, 2});
  poprand::setSeed(run.graph, seed, 0, run.prog);
  const auto first = run.output(poprand::uniform(run.graph, nullptr, 0, like, poplar::FLOAT, 0, 1, run.prog));
  const auto second = run.output(poprand::uniform(run.graph, nullptr, 0, like, poplar::FLOAT, 0, 1, run.prog));
  poprand::setSeed(run.graph, seed, 0, run.prog);
  const auto again = run.output(poprand::uniform(run.graph, nullptr, 0, like, poplar::FLOAT, 0, 1, run.prog));
  run.run();
  CHECK(run.read<float>(first, 50) != run.read<float>(second, 50));
  CHECK(run.read<float>(first, 50) == run.read<float>(again, 50));
  CHECK_THROWS(poprand::normal(run.graph, nullptr, 0, like, poplar::INT, 0, 1, run.prog), "`out_type` must be float");
  CHECK_THROWS(poprand::setSeed(run.graph, like, 0, run.prog), "`seed` must be unsigned int{2}");
}

}  // namespace

int main() {
  rowsAndColumnsAreSorted();
  theLargestComeFirst();
  distributionsHaveTheirMoments();
  aSeedFixesTheNumbersOnAnyTiles();
  drawsWithoutSeedGoOn();
  return check::failures;
}
