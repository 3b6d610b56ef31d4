// Slices and updates at offsets of the running program, loops, fills.
#include <algorithm>
#include <numeric>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Loop.hpp>
#include <popops/Zero.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs_program.hpp"

using namespace poplibs_test;

namespace {

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

void slicesFollowTheirOffsets() {
  for (const unsigned tiles : kTileCounts) {
    Run run(tiles);
    const Tensor t = popops::createSliceableTensor(run.graph, poplar::FLOAT, {5, 6, 7}, {1}, {2}, 0, "t");
    run.fill(t, counted(210));
    const Tensor plain = run.input({5, 6, 7}, counted(210));
    const Tensor offset = run.input({1}, std::vector<unsigned>{5}), two = run.input({2}, std::vector<unsigned>{3, 4});
    const auto slice = run.output(popops::dynamicSlice(run.graph, t, offset, {1}, {2}, run.prog));
    const auto window = run.output(popops::dynamicSlice(run.graph, plain, two, {0, 2}, {2, 3}, run.prog));
    run.run();
    const auto rows = run.read<float>(slice, 5 * 2 * 7), block = run.read<float>(window, 2 * 6 * 3);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t a = i / 14, b = (5 + i / 7 % 2) % 6, c = i % 7;  // wraps around
      CHECK_EQUAL(rows[i], static_cast<float>((a * 6 + b) * 7 + c));
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::size_t a = 3 + i / 18, b = i / 3 % 6, c = 4 + i % 3;
      CHECK_EQUAL(block[i], static_cast<float>((a * 6 + b) * 7 + c));
    }
  }
}

void updatesFollowTheirOffsets() {
  for (const unsigned tiles : kTileCounts) {
    Run run(tiles);
    const Tensor t = popops::createSliceableTensor(run.graph, poplar::FLOAT, {6, 10}, {0}, {1}, 0, "t");
    run.fill(t, counted(60));
    const Tensor u = run.input({6, 10}, counted(60)), s = run.input({2, 3}, std::vector<float>(6, -1));
    const Tensor row = popops::createSliceTensor(run.graph, t, {0}, {1}, 1, "row")[0];
    run.fill(row, std::vector<float>(10, 7));
    popops::dynamicUpdate(run.graph, t, row, run.input({1}, std::vector<unsigned>{4}), {0}, {1}, run.prog);
    popops::dynamicUpdate(run.graph, u, s, run.input({2}, std::vector<unsigned>{1, 8}), {0, 1}, {2, 3}, run.prog);
    const auto out_t = run.output(t), out_u = run.output(u);
    run.run();
    const auto got_t = run.read<float>(out_t, 60), got_u = run.read<float>(out_u, 60);
    for (std::size_t i = 0; i < 60; ++i) {
      const std::size_t r = i / 10, c = i % 10;
      CHECK_EQUAL(got_t[i], r == 4 ? 7.0F : static_cast<float>(i));
      CHECK_EQUAL(got_u[i], (r == 1 || r == 2) && (c >= 8 || c < 1) ? -1.0F : static_cast<float>(i));
    }
  }
}

void loopsCount() {
  Run run(7);
  const Tensor t = run.input({10}, std::vector<unsigned>(10));
  run.prog.add(popops::countedLoop(run.graph, 1, 10, 3, [&](const Tensor& i) {
    poplar::program::Sequence body;
    popops::dynamicUpdate(run.graph, t, i, i, {0}, {1}, body);
    return body;
  }));
  const auto out = run.output(t);
  run.run();
  CHECK(run.read<unsigned>(out, 10) == std::vector<unsigned>({0, 1, 0, 0, 4, 0, 0, 7, 0, 0}));
  CHECK_THROWS(popops::countedLoop(run.graph, 3, 3, 1, [](const Tensor&) { return poplar::program::Sequence(); }),
               "must describe at least one pass");
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

void mistakesAreNamed() {
  Run run(1);
  const Tensor t = run.input({4, 5}, counted(20)), o = run.input({1}, std::vector<unsigned>{0});
  CHECK_THROWS(popops::dynamicSlice(run.graph, t, o, {2}, {1}, run.prog), "`dims, sizes, offset` must have one entry");
}

}  // namespace

int main() {
  slicesFollowTheirOffsets();
  updatesFollowTheirOffsets();
  loopsCount();
  fillsHaveOneValue();
  mistakesAreNamed();
  return check::failures;
}
