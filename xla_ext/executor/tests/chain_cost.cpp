// What elementwise programs cost as code of their own, in bundles that can be counted by hand.
#include "elementwise/chain_cost.hpp"

#include "check.hpp"
#include "elementwise/bundles.hpp"
#include "executor/plan/elementwise_program.hpp"
#include "executor/plan/plan.hpp"

namespace {

using namespace snnjax::executor;
using namespace snnjax::elementwise;
using Place = ElementwiseProgram::Operand::Place;

struct Line {
  std::string text;
  std::vector<std::int64_t> slots;
};

ElementwiseProgram programOf(const std::vector<Line>& lines) {
  Instruction instruction;
  for (const Line& line : lines) {
    instruction.texts.push_back(line.text);
    instruction.ints.push_back(line.slots);
  }
  return elementwiseProgram(instruction);
}

ChainCost costOf(const std::vector<Line>& lines, const std::vector<Place>& places) {
  std::vector<ElementwiseProgram::Operand> inputs;
  for (const Place place : places) inputs.push_back({place, static_cast<unsigned>(inputs.size()), 0x40000000});
  return chainCost(programOf(lines).steps(), inputs, {0});
}

constexpr Place kRow = Place::kRow;

void instructionsShareBundles() {
  Bundles bundles;
  CHECK_EQUAL(bundles.closed(), 1u);
  const unsigned loaded = bundles.add(Pipe::kMain, 2, 0), beside = bundles.add(Pipe::kAux, 1, 0),
                 next = bundles.add(Pipe::kAux, 2, 0), closed = bundles.closed(),
                 called = bundles.add(Pipe::kBoth, 1, 0);
  CHECK_EQUAL(loaded, 2u);
  CHECK_EQUAL(beside, 1u);
  CHECK_EQUAL(next, 3u);
  CHECK_EQUAL(closed, 3u);  // the branch beside the last aux instruction
  CHECK_EQUAL(called, 4u);
  CHECK_EQUAL(bundles.closed(), 5u);
}

// ld64 ld64 ld64 ld64 st64 st64 brnzdec, the sums beside them; of two elements ld64 ld64 f32v2add st64 brnzdec.
void sumsOfFloatsWaitForMemoryAlone() {
  const ChainCost cost =
      costOf({{"load.f32", {0, 0}}, {"load.f32", {1, 1}}, {"add.f32", {2, 0, 1}}, {"store.f32", {0, 2}}}, {kRow, kRow});
  CHECK_EQUAL(cost.four, 7u);
  CHECK_EQUAL(cost.two, 5u);
  CHECK_EQUAL(cost.one, 5u);
}

// The cookbook's loop: ld64, f32v2add, st64step and brnzdec for two floats; here two of them side by side.
void aSharedOperandIsNotLoadedAgain() {
  const std::vector<Line> lines = {
      {"load.f32", {0, 0}}, {"load.f32", {1, 1}}, {"add.f32", {2, 0, 1}}, {"store.f32", {0, 2}}};
  for (const Place place : {Place::kConstant, Place::kSingle}) {
    const ChainCost cost = costOf(lines, {kRow, place});
    CHECK_EQUAL(cost.two, 4u);
    CHECK_EQUAL(cost.four, 5u);
  }
}

void productsHideBehindLoads() {
  const ChainCost cost = costOf({{"load.f32", {0, 0}},
                                 {"load.f32", {1, 1}},
                                 {"multiply.f32", {2, 0, 1}},
                                 {"load.f32", {0, 2}},
                                 {"add.f32", {1, 2, 0}},
                                 {"store.f32", {0, 1}}},
                                {kRow, kRow, kRow});
  CHECK_EQUAL(cost.four, 9u);
}

// ld64 ld64 f16v4add st64 brnzdec; rounding is part of the sum. Without it, the sum is one of floats.
void halvesAreAddedFourAtATime() {
  const std::vector<Line> rounded = {
      {"load.f16", {0, 0}}, {"load.f16", {1, 1}}, {"add.f32", {2, 0, 1}}, {"round.f16", {2, 2}}, {"store.f16", {0, 2}}};
  CHECK_EQUAL(costOf(rounded, {kRow, kRow}).four, 5u);
  const std::vector<Line> wide = {
      {"load.f16", {0, 0}}, {"load.f16", {1, 1}}, {"add.f32", {2, 0, 1}}, {"store.f32", {0, 2}}};
  CHECK(costOf(wide, {kRow, kRow}).four > 7u);
}

// What PopLibs estimates for four floats: four loads, four moves, three merges, and, store, branch.
void comparisonsAreMergedToWords() {
  const ChainCost cost =
      costOf({{"load.f32", {0, 0}}, {"load.f32", {1, 1}}, {"gt.f32", {2, 0, 1}}, {"store.bool", {0, 2}}}, {kRow, kRow});
  CHECK_EQUAL(cost.four, 14u);
}

// Aux instructions cannot be hidden: 6 for each pair, and the store and the branch after the last.
void functionsTakeWhatPopLibsEstimates() {
  const ChainCost cost = costOf({{"load.f32", {0, 0}}, {"exponential.f32", {1, 0}}, {"store.f32", {0, 1}}}, {kRow});
  CHECK_EQUAL(cost.two, 1 + 6 + 1 + 1u);
  CHECK_EQUAL(cost.four, 1 + 12 + 1 + 1u);
}

// Integers go one by one, and reach float registers through memory.
void integersAreScalar() {
  const ChainCost sum =
      costOf({{"load.s32", {0, 0}}, {"load.s32", {1, 1}}, {"add.s32", {2, 0, 1}}, {"store.s32", {0, 2}}}, {kRow, kRow});
  CHECK_EQUAL(sum.four, 4 * (2 + 2 + 1) + 1u);
  const ChainCost select = costOf({{"load.bool", {0, 0}},
                                   {"load.f32", {1, 1}},
                                   {"load.f32", {2, 2}},
                                   {"select.u32", {3, 0, 1, 2}},
                                   {"store.f32", {0, 3}}},
                                  {kRow, kRow, kRow});
  CHECK(select.four > 4 * 5u);
}

// A chain whose values do not fit into registers costs the main instructions that bring them back.
void registersAreLimited() {
  const auto sumOf = [](int count) {
    std::vector<Line> lines;
    for (int i = 0; i < count; ++i) lines.push_back({"load.f32", {i, i}});
    for (int i = 1; i < count; ++i) lines.push_back({"multiply.f32", {0, 0, i}});
    lines.push_back({"store.f32", {0, 0}});
    return costOf(lines, std::vector<Place>(static_cast<std::size_t>(count), kRow));
  };
  CHECK_EQUAL(sumOf(7).two, 7 + 1 + 1 + 1u);
  // 3 of 10 values are stored and loaded, and 3 of 11 pointers loaded.
  CHECK_EQUAL(sumOf(10).two, 10 + 1 + 1 + 3 * 2 + 3u);
}

}  // namespace

int main() {
  instructionsShareBundles();
  sumsOfFloatsWaitForMemoryAlone();
  aSharedOperandIsNotLoadedAgain();
  productsHideBehindLoads();
  halvesAreAddedFourAtATime();
  comparisonsAreMergedToWords();
  functionsTakeWhatPopLibsEstimates();
  integersAreScalar();
  registersAreLimited();
  return check::failures == 0 ? 0 : 1;
}
