// Indices from outside reach nothing: gathers and slices move them in, scatters drop them, whatever they are. Run under
// AddressSanitizer too.
#include <algorithm>
#include <limits>

#include "plans.hpp"

namespace {

using namespace plans;

constexpr Dtype kFloat = Dtype::kFloat32, kInt = Dtype::kInt32;
constexpr std::int64_t kRows = 11, kWidth = 5;

const std::vector<int> kHostile = {
    0, 3, 10, 11, -1, 1 << 30, std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), 7, 3};

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

std::size_t movedIn(int index, std::int64_t window) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(index, 0, kRows - window));
}

void gathersAndScatters(std::size_t tiles) {
  Builder builder;
  Block& main = builder.plan.main;
  const std::size_t count = kHostile.size();
  const ValueId table = builder.parameter(kFloat, {kRows, kWidth}), ids = builder.parameter(kInt, {count, 1});
  const ValueId rows = builder.parameter(kFloat, {count, kWidth});
  const Builder::Ints rows_of_table = {{1}, {0}, {}, {}, {0}, {1}};
  Builder::Ints of_gather = rows_of_table, of_windows = {{1, 2}, {}, {}, {}, {0}, {1}, {2, kWidth}};
  of_gather.push_back({1, kWidth});
  const ValueId gathered = builder.add(main, "gather", {table, ids}, {kFloat, {count, kWidth}}, of_gather);
  const ValueId windows = builder.add(main, "gather", {table, ids}, {kFloat, {count, 2, kWidth}}, of_windows);
  const ValueId added =
      builder.add(main, "scatter", {table, ids, rows}, {kFloat, {kRows, kWidth}}, rows_of_table, {"add"});
  const ValueId last =
      builder.add(main, "scatter", {table, ids, rows}, {kFloat, {kRows, kWidth}}, rows_of_table, {"set"});
  main.results = {gathered, windows, added, last};
  const auto system = plans::system(tiles);
  const std::vector<float> before = counting(kRows * kWidth), updates = counting(count * kWidth);
  const auto results = builder.build(system)->run(
      {{array(system, kFloat, {kRows, kWidth}, before), array(system, kInt, {count, 1}, kHostile),
        array(system, kFloat, {count, kWidth}, updates)}},
      {});
  const auto valuesAt = [&](std::size_t i) { return valuesOf(*results[0][i]); };
  std::vector<float> sums = before, sets = before;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < kWidth; ++j) {
      CHECK_EQUAL(valuesAt(0)[i * kWidth + j], before[movedIn(kHostile[i], 1) * kWidth + j]);
      for (std::size_t row = 0; row < 2; ++row) {
        CHECK_EQUAL(valuesAt(1)[(i * 2 + row) * kWidth + j], before[(movedIn(kHostile[i], 2) + row) * kWidth + j]);
      }
      if (kHostile[i] < 0 || kHostile[i] >= kRows) continue;
      const std::size_t element = static_cast<std::size_t>(kHostile[i]) * kWidth + j;
      sums[element] += updates[i * kWidth + j];
      sets[element] = updates[i * kWidth + j];
    }
  }
  CHECK(valuesAt(2) == sums);
  CHECK(valuesAt(3) == sets);
}

void windows(std::size_t tiles) {
  Builder builder;
  Block& main = builder.plan.main;
  const ValueId table = builder.parameter(kFloat, {kRows, kWidth}), row = builder.parameter(kInt, {});
  const ValueId column = builder.parameter(kInt, {}), part = builder.parameter(kFloat, {4, 2});
  const ValueId slice = builder.add(main, "dynamic_slice", {table, row, column}, {kFloat, {4, 2}}, {{4, 2}});
  const ValueId updated =
      builder.add(main, "dynamic_update_slice", {table, part, row, column}, {kFloat, {kRows, kWidth}});
  main.results = {slice, updated};
  const auto system = plans::system(tiles);
  const auto executable = builder.build(system);
  const std::vector<float> before = counting(kRows * kWidth), values = {-1, -2, -3, -4, -5, -6, -7, -8};
  for (const int start : kHostile) {
    const auto results =
        executable->run({{array(system, kFloat, {kRows, kWidth}, before), array<int>(system, kInt, {}, {start}),
                          array<int>(system, kInt, {}, {start}), array(system, kFloat, {4, 2}, values)}},
                        {});
    const std::size_t first = movedIn(start, 4), left = std::min<std::size_t>(movedIn(start, 1), kWidth - 2);
    std::vector<float> expected = before;
    for (std::size_t i = 0; i < values.size(); ++i) {
      float& element = expected[(first + i / 2) * kWidth + left + i % 2];
      CHECK_EQUAL(valuesOf(*results[0][0])[i], element);
      element = values[i];
    }
    CHECK(valuesOf(*results[0][1]) == expected);
  }
}

}  // namespace

int main() {
  const std::string error = check::messageOf([] {
    for (const std::size_t tiles : {1U, 4U, 30U}) {
      gathersAndScatters(tiles);
      windows(tiles);
    }
  });
  if (!error.empty()) check::that(false, error.c_str(), __FILE__, __LINE__);
  return check::failures;
}
