// Slices and updates at offsets of the running program, loops, fills, encodings, padding.
#include <algorithm>
#include <numeric>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <popops/Fill.hpp>
#include <popops/Loop.hpp>
#include <popops/Pad.hpp>
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

void manyRowsAtOnce() {
  for (const unsigned tiles : kTileCounts) {
    Run run(tiles);
    const Tensor t = popops::createSliceableTensor(run.graph, poplar::FLOAT, {9, 12}, {0}, {1}, 0, "t");
    run.fill(t, counted(108));
    const std::vector<unsigned> ids = {3, 8, 3, 0, 40};
    const Tensor offsets = run.input({5, 1}, ids), scale = run.input({}, std::vector<float>{2});
    const auto rows = run.output(popops::multiSlice(run.graph, t, offsets, {0}, {1}, run.prog, {}, {}));
    const Tensor s = run.input({5, 1, 12}, std::vector<float>(60, 1));
    popops::multiUpdateAdd(run.graph, t, s, offsets, scale, {0}, {1}, run.prog, {}, {});
    const Tensor v = run.input({9, 12}, counted(108));
    popops::multiUpdate(run.graph, v, s, offsets, {0}, {1}, run.prog, {}, {});
    const auto added = run.output(t), set = run.output(v);
    run.run();
    const auto got = run.read<float>(rows, 60), sums = run.read<float>(added, 108), values = run.read<float>(set, 108);
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::size_t j = 0; j < 12; ++j) CHECK_EQUAL(got[k * 12 + j], static_cast<float>(ids[k] * 12 + j));
    }
    for (std::size_t i = 0; i < 108; ++i) {
      const auto times = static_cast<float>(std::count(ids.begin(), ids.end(), i / 12));
      CHECK_EQUAL(sums[i], static_cast<float>(i) + 2 * times);
      CHECK_EQUAL(values[i], times > 0 ? 1.0F : static_cast<float>(i));
    }
  }
}

void loopsCount() {
  Run run(7);
  const Tensor t = run.input({10}, std::vector<unsigned>(10)), limit = run.input({}, std::vector<int>{4});
  const Tensor sum = run.input({}, std::vector<int>{0}), count = run.input({}, std::vector<int>{0});
  run.prog.add(popops::countedLoop(run.graph, 1, 10, 3, [&](const Tensor& i) {
    poplar::program::Sequence body;
    popops::dynamicUpdate(run.graph, t, i, i, {0}, {1}, body);
    return body;
  }));
  poplar::program::Sequence body;
  popops::addInPlace(run.graph, sum, count, body);
  run.prog.add(popops::countedForLoop(run.graph, count, -2, limit, 2, body));
  const auto out = run.output(t), out_sum = run.output(sum);
  run.run();
  CHECK(run.read<unsigned>(out, 10) == std::vector<unsigned>({0, 1, 0, 0, 4, 0, 0, 7, 0, 0}));
  CHECK_EQUAL(run.read<int>(out_sum, 1)[0], -2 + 0 + 2);
  CHECK_THROWS(popops::countedLoop(run.graph, 3, 3, 1, [](const Tensor&) { return poplar::program::Sequence(); }),
               "must describe at least one pass");
}

void fillsAndEncodings() {
  Run run(7);
  const Tensor t = run.input({4, 5}, counted(20)), h = run.input(poplar::HALF, {6}, counted(6));
  popops::zero(run.graph, t.slice(1, 3, 1), run.prog);
  popops::fill(run.graph, h.slice(2, 4), run.prog, 1.5F);
  const Tensor ids = run.input({3}, std::vector<unsigned>{4, 0, 9}), hot = run.input({3, 5}, counted(15));
  popops::encodeOneHot(run.graph, ids, hot, run.prog);
  const Tensor numbers = run.input({30}, std::vector<int>(30));
  popops::iota(run.graph, numbers, -3, run.prog);
  const auto zeros = run.output(t), ones = run.output(hot), range = run.output(numbers);
  run.run();
  const auto got = run.read<float>(zeros, 20), encoded = run.read<float>(ones, 15);
  for (std::size_t i = 0; i < 20; ++i) CHECK_EQUAL(got[i], i % 5 == 1 || i % 5 == 2 ? 0.0F : static_cast<float>(i));
  for (std::size_t i = 0; i < 15; ++i) CHECK_EQUAL(encoded[i], i == 4 || i == 5 ? 1.0F : 0.0F);
  const auto integers = run.read<int>(range, 30);
  for (int i = 0; i < 30; ++i) CHECK_EQUAL(integers[static_cast<std::size_t>(i)], i - 3);
}

void bordersArePadded() {
  Run run(7);
  const Tensor t = run.input({2, 3}, counted(6));
  const auto zeros = run.output(popops::pad(run.graph, t, {1, -1}, {0, 2}, 9.0F));
  const auto mirror = run.output(popops::pad(t, {0, 2}, {0, 2}, popops::padding::Type::REFLECT));
  const auto edge = run.output(popops::pad(t, {0, 1}, {0, 1}, popops::padding::Type::EDGE));
  run.run();
  CHECK(run.read<float>(zeros, 12) == std::vector<float>({9, 9, 9, 9, 1, 2, 9, 9, 4, 5, 9, 9}));
  CHECK(run.read<float>(mirror, 14) == std::vector<float>({2, 1, 0, 1, 2, 1, 0, 5, 4, 3, 4, 5, 4, 3}));
  CHECK(run.read<float>(edge, 10) == std::vector<float>({0, 0, 1, 2, 2, 3, 3, 4, 5, 5}));
}

void mistakesAreNamed() {
  Run run(1);
  const Tensor t = run.input({4, 5}, counted(20)), o = run.input({1}, std::vector<unsigned>{0});
  CHECK_THROWS(popops::dynamicSlice(run.graph, t, o, {2}, {1}, run.prog), "`dims, sizes, offset` must have one entry");
  CHECK_THROWS(popops::multiSlice(run.graph, t, o, {0}, {2}, run.prog, {}, {}), "must be one dimension and 1");
  CHECK_THROWS(popops::pad(run.graph, t, {1}, {1}), "`padding` must have one entry per dimension");
}

}  // namespace

int main() {
  slicesFollowTheirOffsets();
  updatesFollowTheirOffsets();
  manyRowsAtOnce();
  loopsCount();
  fillsAndEncodings();
  bordersArePadded();
  mistakesAreNamed();
  return check::failures;
}
