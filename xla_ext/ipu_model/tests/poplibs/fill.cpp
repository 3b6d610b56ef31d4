// Fills.
#include <numeric>
#include <popops/Cast.hpp>
#include <popops/Fill.hpp>
#include <popops/Zero.hpp>

#include "poplibs/program.hpp"

using namespace poplibs_test;

namespace {

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

void fillsHaveOneValue() {
  Run run(7);
  const Tensor t = run.input({4, 5}, counted(20)), h = run.input(poplar::HALF, {6}, counted(6));
  popops::zero(run.graph, t.slice(1, 3, 1), run.prog);
  popops::fill(run.graph, h.slice(2, 4), run.prog, 1.5F);
  const auto zeros = run.output(t), halves = run.output(popops::cast(run.graph, h, poplar::FLOAT, run.prog));
  run.run();
  const auto got = run.read<float>(zeros, 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK_EQUAL(got[i], i % 5 == 1 || i % 5 == 2 ? 0.0F : static_cast<float>(i));
  CHECK(run.read<float>(halves, 6) == std::vector<float>({0, 1, 1.5F, 1.5F, 4, 5}));
}

}  // namespace

int main() {
  fillsHaveOneValue();
  return check::failures;
}
