// popops::reduce against sums on the host, over shapes, dimensions, mappings and numbers of tiles.
#include <algorithm>
#include <cmath>
#include <limits>
#include <popops/Cast.hpp>
#include <popops/Reduce.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/program.hpp"

using namespace poplibs_test;
using popops::Operation;

namespace {

bool isReduced(const Shape& dims, std::size_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

double combine(Operation op, double a, double b) {
  switch (op) {
    case Operation::MUL: return a * b;
    case Operation::MIN: return std::min(a, b);
    case Operation::MAX: return std::max(a, b);
    case Operation::SQUARE_ADD: return a + b * b;
    default: return a + b;
  }
}

double start(Operation op) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return op == Operation::MUL ? 1 : op == Operation::MIN ? kInfinity : op == Operation::MAX ? -kInfinity : 0;
}

std::vector<double> onHost(const std::vector<float>& values, const Shape& shape, const Shape& dims, Operation op) {
  std::size_t outputs = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) outputs *= isReduced(dims, d) ? 1 : shape[d];
  std::vector<double> result(outputs, start(op));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t rest = i, out = 0, stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const std::size_t index = rest % shape[d];
      rest /= shape[d];
      if (isReduced(dims, d)) continue;
      out += index * stride;
      stride *= shape[d];
    }
    result[out] = combine(op, result[out], static_cast<double>(values[i]));
  }
  return result;
}

struct Case {
  Shape shape, dims;
};

void reductionsMatchTheHost() {
  const std::vector<Case> cases = {
      {{1}, {0}},         {{1000}, {0}},     {{37, 12}, {0}},        {{37, 12}, {1}},
      {{37, 12}, {0, 1}}, {{4, 9, 10}, {1}}, {{4, 9, 10}, {0, 2}},   {{4, 9, 10}, {0, 1}},
      {{3, 1, 5}, {1}},   {{6, 5}, {}},      {{2, 3, 4, 5}, {1, 3}}, {{300, 3}, {0}},
      {{3, 300}, {1}},
  };
  for (const unsigned tiles : {1U, 7U, 64U, 200U}) {
    for (const Operation op : {Operation::ADD, Operation::MAX, Operation::SQUARE_ADD}) {
      Run run(tiles);
      std::vector<std::vector<float>> values;
      std::vector<std::string> outs;
      for (std::size_t c = 0; c < cases.size(); ++c) {
        values.push_back(randomFloats(product(cases[c].shape), static_cast<unsigned>(c) + tiles));
        const Tensor in = run.input(cases[c].shape, values[c], c % 2 == 0 ? 1 : 4);
        outs.push_back(run.output(popops::reduce(run.graph, in, cases[c].dims, op, run.prog)));
      }
      run.run();
      for (std::size_t c = 0; c < cases.size(); ++c) {
        const auto expected = onHost(values[c], cases[c].shape, cases[c].dims, op);
        const auto got = run.read<float>(outs[c], expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          CHECK_NEAR(static_cast<double>(got[i]), expected[i], 2e-4 * (1 + std::abs(expected[i])));
        }
      }
    }
  }
}

void transposedInputsAndManyPartials() {
  Run run(200);
  const std::vector<float> values = randomFloats(400 * 3, 5, 0, 1);
  const Tensor in = run.input({400, 3}, values);
  const auto sums = run.output(popops::reduce(run.graph, in.transpose(), {1}, Operation::ADD, run.prog));
  const auto every = run.output(popops::reduce(run.graph, in.transpose().flatten(), {0}, Operation::MIN, run.prog));
  run.run();
  const auto expected = onHost(values, {400, 3}, {0}, Operation::ADD);
  const auto got = run.read<float>(sums, 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK_NEAR(static_cast<double>(got[i]), expected[i], 1e-3);
  CHECK_EQUAL(run.read<float>(every, 1)[0], *std::min_element(values.begin(), values.end()));
}

// Rows dealt to the tiles one by one, in halves: a tile has five runs of either half of the columns, and one vertex.
void runsOfATileShareAVertex() {
  for (const std::size_t dim : {0U, 1U}) {
    Run run(8);
    const std::vector<float> values = randomFloats(20 * 6, 9);
    const Tensor in = run.input({20, 6}, values);
    for (unsigned row = 0; row < 20; ++row) {
      run.graph.setTileMapping(in[row].slice(0, 3), 2 * (row % 4));
      run.graph.setTileMapping(in[row].slice(3, 6), 2 * (row % 4) + 1);
    }
    std::vector<poplar::ComputeSet> stages;
    const std::size_t before = run.graph.getNumVertices();
    const Tensor sums = popops::reduce(run.graph, in, {dim}, Operation::ADD, stages);
    CHECK_EQUAL(stages.size(), 2U);
    CHECK(run.graph.getNumVertices() - before <= 8 + sums.numElements());
    for (const poplar::ComputeSet& stage : stages) run.prog.add(poplar::program::Execute(stage));
    const auto out = run.output(sums);
    run.run();
    const auto expected = onHost(values, {20, 6}, {dim}, Operation::ADD);
    const auto got = run.read<float>(out, expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK_NEAR(static_cast<double>(got[i]), expected[i], 1e-3);
  }
}

void outputsAreUpdatedAndScaled() {
  Run run(7);
  const std::vector<float> values = randomFloats(60, 3), old = randomFloats(5, 4);
  const Tensor in = run.input({12, 5}, values), scale = run.input({}, std::vector<float>{0.5F});
  const Tensor updated = run.input({1, 5}, old), scaled = run.graph.addVariable(poplar::FLOAT, {5}, "scaled");
  popops::reduceWithOutput(run.graph, in, updated, {0}, {Operation::ADD, true, scale}, run.prog);
  popops::reduceWithOutput(run.graph, in, scaled, {0}, {Operation::ADD, false, scale}, run.prog);
  const auto out_updated = run.output(updated), out_scaled = run.output(scaled);
  run.run();
  const auto expected = onHost(values, {12, 5}, {0}, Operation::ADD);
  const auto got = run.read<float>(out_updated, 5), got_scaled = run.read<float>(out_scaled, 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK_NEAR(static_cast<double>(got[i]), static_cast<double>(old[i]) + 0.5 * expected[i], 1e-4);
    CHECK_NEAR(static_cast<double>(got_scaled[i]), 0.5 * expected[i], 1e-4);
  }
}

// Two reductions share compute sets, also where one of them takes more stages; the first set was there before.
void stagesShareComputeSets() {
  Run run(200);
  const std::vector<float> many = randomFloats(400 * 3, 6), few = randomFloats(8, 7);
  const Tensor a = run.input({400, 3}, many), b = run.input({8}, few);
  std::vector<poplar::ComputeSet> stages = {run.graph.addComputeSet("given")};
  const auto sums = run.output(popops::reduce(run.graph, a, {0}, Operation::ADD, stages));
  const std::size_t count = stages.size();
  const Tensor most = run.graph.addVariable(poplar::FLOAT, {}, "most");
  popops::reduceWithOutput(run.graph, b, most, {0}, Operation::MAX, stages);
  CHECK(count > 1 && stages.size() == count);
  for (const poplar::ComputeSet& stage : stages) run.prog.add(poplar::program::Execute(stage));
  const auto out = run.output(most);
  run.run();
  const auto expected = onHost(many, {400, 3}, {0}, Operation::ADD);
  const auto got = run.read<float>(sums, 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK_NEAR(static_cast<double>(got[i]), expected[i], 1e-3);
  CHECK_EQUAL(run.read<float>(out, 1)[0], *std::max_element(few.begin(), few.end()));
}

void halvesAreSummedAsFloats() {
  Run run(7);
  const Tensor in = run.input(poplar::HALF, {5000}, std::vector<float>(5000, 1.0F));
  const auto wide = run.output(popops::reduce(run.graph, in, poplar::FLOAT, {0}, Operation::ADD, run.prog));
  const Tensor narrow = popops::reduce(run.graph, in.slice(0, 2049), {0}, Operation::ADD, run.prog);
  CHECK(narrow.elementType() == poplar::HALF);
  const auto out = run.output(popops::cast(run.graph, narrow, poplar::FLOAT, run.prog));
  run.run();
  CHECK_EQUAL(run.read<float>(wide, 1)[0], 5000.0F);  // in half the sum would stop at 2048
  CHECK_EQUAL(run.read<float>(out, 1)[0], 2048.0F);   // nearest even of 2049
}

void integersAreSummed() {
  Run run(7);
  const std::vector<int> numbers = randomInts(99, 1, -50, 50);
  const Tensor in = run.input({99}, numbers);
  const auto sum = run.output(popops::reduce(run.graph, in, {0}, Operation::ADD, run.prog));
  const auto none = run.output(popops::reduce(run.graph, in.slice(5, 5), {0}, Operation::MAX, run.prog));
  run.run();
  int expected = 0;
  for (const int number : numbers) expected += number;
  CHECK_EQUAL(run.read<int>(sum, 1)[0], expected);
  CHECK_EQUAL(run.read<int>(none, 1)[0], std::numeric_limits<int>::min());
}

void mistakesAreNamed() {
  Run run(2);
  const Tensor t = run.input({4, 2}, randomFloats(8, 1)), out = run.input({3}, randomFloats(3, 1));
  CHECK_THROWS(popops::reduce(run.graph, t, {2}, Operation::ADD, run.prog), "`dims` must be below the rank (2)");
  CHECK_THROWS(popops::reduceWithOutput(run.graph, t, out, {1}, Operation::ADD, run.prog), "`out` must have the shape");
  CHECK_THROWS(popops::reduce(run.graph, t, {1}, Operation::LOGICAL_OR, run.prog), "`op` must exist for the types");
  CHECK_THROWS(popops::reduce(run.graph, t, {1}, {Operation::ADD, true}, run.prog), "`update` must be false");
  std::vector<poplar::ComputeSet> stages;
  const Tensor sums = run.input({2}, randomFloats(2, 1));
  CHECK_THROWS(popops::reduceWithOutput(run.graph, t, sums, {0}, {Operation::ADD, true}, stages),
               "`css` must get a reduction of some elements without update or scale");
}

}  // namespace

int main() {
  reductionsMatchTheHost();
  transposedInputsAndManyPartials();
  runsOfATileShareAVertex();
  outputsAreUpdatedAndScaled();
  stagesShareComputeSets();
  halvesAreSummedAsFloats();
  integersAreSummed();
  mistakesAreNamed();
  return check::failures;
}
