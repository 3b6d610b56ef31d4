// Uniform random tensors.
#include <algorithm>
#include <cmath>
#include <poprand/RandomGen.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/program.hpp"

using namespace poplibs_test;

namespace {

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
  const auto dice = run.output(poprand::uniform(run.graph, nullptr, 0, like, poplar::INT, 1, 6, run.prog));
  run.run();
  const auto in_uniform = run.read<float>(uniform, kDraws);
  CHECK(*std::min_element(in_uniform.begin(), in_uniform.end()) >= -1);
  CHECK(*std::max_element(in_uniform.begin(), in_uniform.end()) < 3);
  CHECK_NEAR(moments(in_uniform).mean, 1.0, 0.1);
  CHECK_NEAR(moments(in_uniform).deviation, 4 / std::sqrt(12.0), 0.1);
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
  const Tensor like = run.input({50}, std::vector<float>(50));
  const auto draw = [&](const Tensor* seed, const poplar::Type& type) {
    return run.output(poprand::uniform(run.graph, seed, 0, like, type, 0, 1, run.prog));
  };
  const auto first = draw(nullptr, poplar::FLOAT), second = draw(nullptr, poplar::FLOAT);
  run.run();
  CHECK(run.read<float>(first, 50) != run.read<float>(second, 50));
  CHECK_THROWS(draw(nullptr, poplar::BOOL), "poprand::uniform: `out_type` must be float, half or int, got bool");
  CHECK_THROWS(draw(&like, poplar::FLOAT), "`seed` must be unsigned int{2}");
}

}  // namespace

int main() {
  distributionsHaveTheirMoments();
  aSeedFixesTheNumbersOnAnyTiles();
  drawsWithoutSeedGoOn();
  return check::failures;
}
