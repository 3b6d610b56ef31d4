// Plans on the device: what they compute, what stays on the tiles, what comes to the host.
#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "plans.hpp"

namespace {

using namespace plans;

constexpr Dtype kFloat = Dtype::kFloat32, kInt = Dtype::kInt32;

std::vector<float> counting(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

std::vector<ValueId> valuesLike(Builder& builder, const std::vector<ValueId>& values) {
  std::vector<ValueId> made;
  for (const ValueId v : values)
    made.push_back(builder.value(builder.plan.types[v].dtype, builder.plan.types[v].shape));
  return made;
}

// (a, b, count) -> (b, a + b, count + 1), eight times: the places of carried values are exchanged.
Builder fibonacci(bool counted) {
  Builder builder;
  const auto number = [&](std::int32_t value) { return builder.constant<std::int32_t>(kInt, {}, {value}); };
  const ValueId a = builder.parameter(kInt, {9}), b = builder.parameter(kInt, {9});
  const ValueId zero = number(0), one = number(1), eight = number(8);
  const std::vector<ValueId> initial = {a, b, zero}, outputs = valuesLike(builder, initial);
  Block condition, body;
  body.parameters = valuesLike(builder, initial);
  const ValueId sum = builder.binary(body, "add", body.parameters[0], body.parameters[1]);
  body.results = {body.parameters[1], sum, builder.binary(body, "add", body.parameters[2], one)};
  condition.parameters = valuesLike(builder, initial);
  condition.results = {builder.add(condition, "elementwise", {condition.parameters[2], eight}, {Dtype::kBool, {}},
                                   {{0, 0}, {1, 1}, {2, 0, 1}, {0, 2}},
                                   {"load.s32", "load.s32", "lt.s32", "store.bool"})};
  const Instruction loop = counted ? Builder::instruction("repeat", initial, outputs, {{8}}, {}, {body})
                                   : Builder::instruction("while", initial, outputs, {}, {}, {condition, body});
  builder.plan.main.instructions = {loop};
  builder.plan.main.results = {outputs[0], outputs[1], outputs[2], a};
  return builder;
}

void loopsExchangeTheirValues() {
  for (const bool counted : {true, false}) {
    const auto system = plans::system();
    const auto executable = fibonacci(counted).build(system);
    for (int round = 0; round < 2; ++round) {
      const auto results =
          executable->run({{array(system, kInt, {9}, std::vector<std::int32_t>(9, 0)),
                            array(system, kInt, {9}, std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9})}},
                          {});
      const auto first = valuesOf<std::int32_t>(*results[0][0]), second = valuesOf<std::int32_t>(*results[0][1]);
      for (int i = 0; i < 9; ++i) {  // Fibonacci's numbers 8 and 9 are 21 and 34
        CHECK_EQUAL(first[static_cast<std::size_t>(i)], 21 * (i + 1));
        CHECK_EQUAL(second[static_cast<std::size_t>(i)], 34 * (i + 1));
      }
      CHECK_EQUAL(valuesOf<std::int32_t>(*results[0][2])[0], 8);
      CHECK_EQUAL(valuesOf<std::int32_t>(*results[0][3])[4], 0);
    }
  }
}

// Indices out of range reach nothing: gathers and slices clamp them, scatters drop them. Run under AddressSanitizer
// too.
constexpr std::int64_t kRows = 11, kWidth = 5;

const std::vector<int> kHostile = {
    0, 3, 10, 11, -1, 1 << 30, std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), 7, 3};

std::size_t movedIn(int index, std::int64_t window) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(index, 0, kRows - window));
}

void gathersAndScattersAtHostileIndices(std::size_t tiles) {
  Builder builder;
  Block& main = builder.plan.main;
  const std::size_t count = kHostile.size();
  const ValueId table = builder.parameter(kFloat, {kRows, kWidth}), ids = builder.parameter(kInt, {count, 1});
  const ValueId rows = builder.parameter(kFloat, {count, kWidth});
  const Builder::Ints rows_of_table = {{1}, {0}, {}, {}, {0}, {1}, {0}},
                      of_gather = {{1}, {0}, {}, {}, {0}, {1}, {1, kWidth}, {0}},
                      of_windows = {{1, 2}, {}, {}, {}, {0}, {1}, {2, kWidth}, {0}};
  const ValueId gathered = builder.add(main, "gather", {table, ids}, {kFloat, {count, kWidth}}, of_gather);
  const ValueId windows = builder.add(main, "gather", {table, ids}, {kFloat, {count, 2, kWidth}}, of_windows);
  const ValueId added =
      builder.add(main, "scatter", {table, ids, rows}, {kFloat, {kRows, kWidth}}, rows_of_table, {"add"});
  const ValueId last =
      builder.add(main, "scatter", {table, ids, rows}, {kFloat, {kRows, kWidth}}, rows_of_table, {"set"});
  main.results = {gathered, windows, added, last};
  const auto system = plans::system(tiles);
  const std::vector<float> before = counting(kRows * kWidth, 1), updates = counting(count * kWidth, 1);
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

void slicesAtHostileIndices(std::size_t tiles) {
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
  const std::vector<float> before = counting(kRows * kWidth, 1), values = {-1, -2, -3, -4, -5, -6, -7, -8};
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

void indicesFromOutsideReachNothing() {
  for (const std::size_t tiles : {1U, 4U, 30U}) {
    gathersAndScattersAtHostileIndices(tiles);
    slicesAtHostileIndices(tiles);
  }
}

// Parameters and state stay on the tiles from step to step.
void donatedArraysStay() {
  Builder builder;
  Block& main = builder.plan.main;
  const ValueId weights = builder.parameter(kFloat, {100}), step = builder.parameter(kFloat, {100});
  main.results = {builder.binary(main, "add", weights, step)};
  builder.plan.aliases = {{0, 0}};
  builder.plan.donated = {0};
  const auto system = plans::system();
  const auto executable = builder.build(system);
  const auto change = array(system, kFloat, {100}, std::vector<float>(100, 1));
  auto state = array(system, kFloat, {100}, counting(100));
  const auto start = state;
  for (int i = 0; i < 3; ++i) {
    if (i == 1) executable->resetProfile();
    state = executable->run({{state, change}}, {true, false})[0][0];
  }
  CHECK_EQUAL(numberIn(executable->profile(), "host"), 0.0);  // neither came nor went
  CHECK_EQUAL(valuesOf(*state)[10], 13.0f);
  CHECK(numberIn(executable->profile(), "host") > 0);
  CHECK_THROWS(start->bytes(), "donated");
  CHECK_THROWS(executable->run({{start, change}}, {}), "donated");
  // One that is not donated after all is saved before it is overwritten.
  const auto next = executable->run({{state, change}}, {false, false})[0][0];
  CHECK_EQUAL(valuesOf(*state)[10], 13.0f);
  CHECK_EQUAL(valuesOf(*next)[10], 14.0f);
}

// A result that shares its memory with no parameter may lie where a donated one was, which the next run fills.
void unreadResultsOutliveTheNextArguments() {
  Builder builder;
  Block& main = builder.plan.main;
  const ValueId x = builder.parameter(kFloat, {100}), y = builder.parameter(kFloat, {100});
  const ValueId sum = builder.binary(main, "add", x, x);
  main.results = {builder.binary(main, "multiply", y, sum)};
  builder.plan.donated = {0, 1};
  const auto system = plans::system();
  const auto executable = builder.build(system);
  const auto squares = [&](float number) {
    const auto argument = [&] { return array(system, kFloat, {100}, std::vector<float>(100, number)); };
    return executable->run({{argument(), argument()}}, {true, true})[0][0];
  };
  const auto first = squares(2), second = squares(3);
  CHECK_EQUAL(valuesOf(*first)[10], 8.0f);
  CHECK_EQUAL(valuesOf(*second)[10], 18.0f);
}

// A state of some leaves, donated, and a result beside it.
Builder trainingStep(std::size_t leaves, std::size_t size) {
  Builder builder;
  Block& main = builder.plan.main;
  for (std::size_t i = 0; i < leaves; ++i) {
    const ValueId leaf = builder.parameter(kFloat, {size});
    main.results.push_back(builder.binary(main, "add", leaf, leaf));
    builder.plan.aliases.push_back({i, i});
    builder.plan.donated.push_back(i);
  }
  main.results.push_back(builder.binary(main, "multiply", main.results[0], main.results[0]));
  return builder;
}

// What is counted does not depend on whether an unread result is still held when the next run overwrites it.
void unreadResultsCountNothing() {
  std::vector<double> counted;
  for (const bool held : {false, true}) {
    const auto system = plans::system();
    const auto executable = trainingStep(2, 10).build(system);
    std::vector<std::shared_ptr<Array>> state = {array(system, kFloat, {10}, counting(10)),
                                                 array(system, kFloat, {10}, counting(10))};
    std::vector<std::shared_ptr<Array>> losses;
    for (int step = 0; step < 5; ++step) {
      if (step == 1) executable->resetProfile();
      const auto results = executable->run({state}, {true, true})[0];
      state = {results[0], results[1]};
      if (held || step == 4) losses.push_back(results[2]);
    }
    CHECK_EQUAL(numberIn(executable->profile(), "host"), 0.0);
    CHECK_EQUAL(valuesOf(*losses.back())[1], 1024.0f);  // (2^5)^2
    counted.push_back(numberIn(executable->profile(), "host"));
    if (!held) continue;
    CHECK_EQUAL(valuesOf(*losses.front())[1], 4.0f);  // overwritten since, and read only now
    CHECK_EQUAL(numberIn(executable->profile(), "host"), 2 * counted.front());
    CHECK_EQUAL(valuesOf(*losses.front())[1], 4.0f);  // it is there already
    CHECK_EQUAL(numberIn(executable->profile(), "host"), 2 * counted.front());
  }
  CHECK(counted[0] > 0);
  CHECK_EQUAL(counted[0], counted[1]);
}

// Leaves that another program takes leave in one request, unless that brings far more bytes than are wanted.
void stateLeavesInOneRequest() {
  const auto hostCycles = [](std::size_t leaves, std::size_t taken, std::size_t size) {
    const auto system = plans::system(1472);
    const auto step = trainingStep(leaves, size).build(system);
    Builder builder;
    for (std::size_t i = 0; i < taken; ++i) {
      const ValueId leaf = builder.parameter(kFloat, {size});
      builder.plan.main.results.push_back(builder.binary(builder.plan.main, "add", leaf, leaf));
    }
    const auto evaluation = builder.build(system);
    const std::vector state(leaves, array(system, kFloat, {size}, counting(size)));
    const auto results = step->run({state}, std::vector<bool>(leaves, false))[0];
    step->resetProfile();
    evaluation->run({{results.begin(), results.begin() + static_cast<std::ptrdiff_t>(taken)}}, {});
    return numberIn(step->profile(), "host");
  };
  const double one = hostCycles(2, 1, 20);
  CHECK(one > 0);
  CHECK(hostCycles(8, 7, 20) < 1.01 * one);
  CHECK(hostCycles(3, 2, 1'000'000) < hostCycles(3, 3, 1'000'000));  // the third takes longer than a request
}

// Another program on the same IPU, and the end of a program, leave arrays readable.
void arraysOutliveTheirPlace() {
  const auto system = plans::system();
  const auto make = [&](const std::string& operation) {
    Builder builder;
    const ValueId x = builder.parameter(kFloat, {20});
    builder.plan.main.results = {builder.binary(builder.plan.main, operation, x, x)};
    return builder.build(system);
  };
  auto twice = make("add"), squared = make("multiply");
  const auto a = twice->run({{array(system, kFloat, {20}, counting(20))}}, {})[0][0];
  const auto b = squared->run({{a}}, {})[0][0];
  const auto c = squared->run({{b}}, {})[0][0];  // its own result, as an argument
  twice.reset();
  squared.reset();
  CHECK_EQUAL(valuesOf(*a)[3], 6.0f);
  CHECK_EQUAL(valuesOf(*b)[3], 36.0f);
  CHECK_EQUAL(valuesOf(*c)[3], 1296.0f);
}

void callbacksSeeArrays() {
  Builder builder;
  Block& main = builder.plan.main;
  const ValueId x = builder.parameter(kFloat, {4});
  const ValueId y = builder.value(kFloat, {2});
  main.instructions.push_back(Builder::instruction("callback", {x}, {y}, {{17}}));
  main.results = {x, y};
  const auto system = plans::system();
  float seen = 0;
  system->setHostCallback([&](std::int64_t number, auto arrays) {
    seen = static_cast<float>(number) + valuesOf(*arrays[0])[2];
    const float results[] = {seen, seen + 1};
    return std::string(reinterpret_cast<const char*>(results), sizeof results);
  });
  const auto program = builder.build(system);
  const auto results = program->run({{array(system, kFloat, {4}, counting(4))}}, {})[0];
  CHECK_EQUAL(seen, 19.0f);
  CHECK_EQUAL(valuesOf(*results[1])[1], 20.0f);
  system->setHostCallback([](std::int64_t, auto) { return std::string(); });
  CHECK_THROWS(program->run({{array(system, kFloat, {4}, counting(4))}}, {}), "must have 8 bytes, got 0");
}

// Each partition has its own arrays; results of one program go on in another.
void partitionsRunSideBySide() {
  Builder builder(2);
  const ValueId x = builder.parameter(kFloat, {10});
  builder.plan.main.results = {builder.binary(builder.plan.main, "add", x, x)};
  const auto system = plans::system(4, 2);
  const auto executable = builder.build(system);
  auto results = executable->run(
      {{array(system, kFloat, {10}, counting(10))}, {array(system, kFloat, {10}, counting(10, 100))}}, {});
  results = executable->run(results, {});
  CHECK_EQUAL(valuesOf(*results[0][0])[3], 12.0f);
  CHECK_EQUAL(valuesOf(*results[1][0])[3], 412.0f);
}

// Programs of one system take turns, those of two run at once and share the host's threads.
void threadsRunAtOnce() {
  const std::shared_ptr<System> systems[] = {plans::system(128), plans::system(128)};
  std::atomic<int> right = 0;
  const auto work = [&](std::size_t number) {
    Builder builder;
    const ValueId x = builder.parameter(kFloat, {20000});
    builder.plan.main.results = {builder.binary(builder.plan.main, number % 2 == 0 ? "add" : "multiply", x, x)};
    const auto executable = builder.build(systems[number / 2]);
    for (int round = 0; round < 20; ++round) {
      const auto argument = array(systems[number / 2], kFloat, {20000}, counting(20000));
      const std::vector<float> values = valuesOf(*executable->run({{argument}}, {})[0][0]);
      right += values[19999] == (number % 2 == 0 ? 2 * 19999.0f : 19999.0f * 19999.0f) ? 1 : 0;
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < 4; ++number) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(right.load(), 80);
}

// Memory of values that are used no more is used again.
void memoryIsUsedAgain() {
  const auto memoryOf = [](int length) {
    Builder builder;
    Block& main = builder.plan.main;
    const ValueId x = builder.parameter(kFloat, {4000});
    ValueId last = x;
    for (int i = 0; i < length; ++i) {
      // Two are needed at the same time, never more.
      const ValueId reversed = builder.add(main, "reverse", {last}, {kFloat, {4000}}, {{0}});
      last = builder.binary(main, "add", last, reversed);
    }
    main.results = {last};
    return numberIn(builder.build(plans::system())->profile(), "variables");
  };
  const double few = memoryOf(3), many = memoryOf(12);
  CHECK(few > 0);
  CHECK(many - few < 4000);  // bytes of a tile: programs, but no array
}

// Also by values of other shapes.
void memoryServesOtherShapes() {
  const auto memoryOf = [](std::size_t length) {
    Builder builder;
    Block& main = builder.plan.main;
    ValueId last = builder.parameter(kFloat, {8000});
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t size = 7500 - 500 * i;
      const auto part = [&](std::size_t first) {
        const auto begin = static_cast<std::int64_t>(first), end = static_cast<std::int64_t>(first + size);
        return builder.add(main, "slice", {last}, {kFloat, {size}}, {{begin}, {end}, {1}});
      };
      last = builder.binary(main, "add", part(0), part(500));
    }
    main.results = {last};
    return numberIn(builder.build(plans::system())->profile(), "variables");
  };
  const double few = memoryOf(2), many = memoryOf(10);
  CHECK(few > 0);
  CHECK(many - few < 4000);  // bytes of a tile, where one array has 5,000 to 15,000
}

// Partial sums of products that are made one after the other lie in the same memory, whatever their sizes.
void productsShareTheirScratch() {
  const auto memoryOf = [](std::size_t products) {
    Builder builder;
    Block& main = builder.plan.main;
    ValueId last = builder.parameter(kFloat, {40, 4000});
    for (std::size_t i = 0; i < products; ++i) {
      const std::size_t columns = 10 * (i + 1);
      const ValueId weights = builder.add(main, "slice", {last}, {kFloat, {columns, 4000}},
                                          {{0, 0}, {static_cast<std::int64_t>(columns), 4000}, {1, 1}});
      const ValueId out = builder.add(main, "dot", {last, weights}, {kFloat, {40, columns}}, {{}, {}, {1}, {1}});
      main.results.push_back(out);
    }
    return numberIn(builder.build(plans::system(64))->profile(), "variables");
  };
  const double one = memoryOf(1), four = memoryOf(4);
  CHECK(one > 0);
  CHECK(four <= 15360);  // bytes of the fullest tile: of one product 13,056, of four with sums of their own 18,816
}

void tooMuchMemoryIsAnError() {
  Builder builder;
  const ValueId x = builder.parameter(kFloat, {1000, 1000});
  builder.plan.main.results = {builder.binary(builder.plan.main, "add", x, x)};
  try {
    builder.build(plans::system());
    CHECK(false);
  } catch (const std::exception& error) {
    CHECK(snnjax::errorOf(error).code() == ErrorCode::kResourceExhausted);
    CHECK(std::string(error.what()).find("tile") != std::string::npos);
  }
}

// Nor does the host first allocate all of it: here hundreds of gigabytes.
void farTooMuchIsRefusedAtOnce() {
  constexpr std::size_t kElements = std::size_t{1} << 38;
  for (const bool counts : {false, true}) {
    Builder builder;
    Block& main = builder.plan.main;
    const ValueId x =
        counts ? builder.add(main, "iota", {}, {kInt, {kElements}}, {{0}}) : builder.parameter(kInt, {kElements});
    main.results = {builder.binary(main, "add", x, x)};
    const std::string name = counts ? "iota (test.py:1)" : "parameter 0";
    CHECK_THROWS(builder.build(plans::system()),
                 "compile: `program` must fit in 638976 bytes on each tile, got more than 274877906944 with " + name +
                     ". Use smaller arrays, or more tiles or IPUs.");
  }
}

void optionsChooseTheChip() {
  Builder builder;
  const ValueId x = builder.parameter(kFloat, {1000});
  builder.plan.main.results = {builder.binary(builder.plan.main, "add", x, x)};
  builder.plan.options = {{"version", "bow"}, {"tiles", "7"}};
  const std::string profile = builder.build(plans::system())->profile();
  CHECK(profile.find("bow") != std::string::npos || profile.find("Bow") != std::string::npos);
  CHECK_EQUAL(numberIn(profile, "tiles_per_ipu"), 7.0);
  const std::string leave = ". Leave it out for the device's own.";
  const auto refused = [&](const std::string& name, const std::string& value, const std::string& expected) {
    builder.plan.options = {{name, value}};
    CHECK_THROWS(builder.build(plans::system()),
                 "compile: `ipu_" + name + "` must " + expected + ", got \"" + value + "\"" + leave);
  };
  for (const char* text : {"many", "0", "-1", "7x", "", "1.5"}) refused("tiles", text, "be an integer of at least 1");
  refused("tiles", "1473", "be an integer from 1 to 1472");
  for (const char* text : {"0", "65", "two"}) refused("ipus", text, "be an integer from 1 to 64");
  for (const char* text : {"ipu21", "mk3", ""}) refused("version", text, "be mk1, mk2, bow or c600");
  for (const char* text : {"maybe", "True", "1", ""}) refused("half_partials", text, "be true or false");
  builder.plan.options = {{"tile", "7"}};
  CHECK_THROWS(builder.build(plans::system()),
               "compile: `compiler_options` must be among ipu_version, ipu_tiles, ipu_ipus and ipu_half_partials, got "
               "ipu_tile. Leave it out.");
}

}  // namespace

int main() {
  const std::pair<const char*, void (*)()> tests[] = {
      {"loops", loopsExchangeTheirValues},
      {"indices", indicesFromOutsideReachNothing},
      {"donation", donatedArraysStay},
      {"results where donated arguments were", unreadResultsOutliveTheNextArguments},
      {"unread results", unreadResultsCountNothing},
      {"state", stateLeavesInOneRequest},
      {"residency", arraysOutliveTheirPlace},
      {"callbacks", callbacksSeeArrays},
      {"partitions", partitionsRunSideBySide},
      {"threads", threadsRunAtOnce},
      {"memory", memoryIsUsedAgain},
      {"other shapes", memoryServesOtherShapes},
      {"scratch", productsShareTheirScratch},
      {"out of memory", tooMuchMemoryIsAnError},
      {"far too much", farTooMuchIsRefusedAtOnce},
      {"options", optionsChooseTheChip},
  };
  for (const auto& [name, test] : tests) {
    const std::string error = check::messageOf(test);
    check::that(error.empty(), name, __FILE__, __LINE__, error);
  }
  return check::failures == 0 ? 0 : 1;
}
