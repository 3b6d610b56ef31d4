// What the code of an elementwise program costs a worker.
//
// The code is C++ that chain_source.cpp prints and popc compiles when the graph is built, as PopLibs does with fused
// expressions (popops::map). Its loop takes four elements at a time, all values in registers: two float2, one half4,
// four integers. So rows are read and written once, and independent instructions fill each other's bundles. Here they
// are counted by the rules of issue_slots.hpp: one main and one aux instruction each, brnzdec closes the loop, no
// hardware loops and no dual loads. chain_code.cpp says which instructions there are.
//
// Seven pairs of float registers (of 16 registers two are zero) hold what is live; what does not fit is stored and
// loaded, 2 main a pair, constants only loaded. Eight rows have their pointers in registers, each further one loads it.
// That seven pairs can be used is assumed.
#include "elementwise/chain_cost.hpp"

#include <algorithm>
#include <array>

#include "elementwise/bundles.hpp"
#include "elementwise/chain_code.hpp"

namespace snnjax::elementwise {
namespace {

using chain::Opcode;
using Step = ElementwiseProgram::Step;
using Operand = ElementwiseProgram::Operand;

constexpr unsigned kRegisterPairs = 7, kPointers = 8;

using Times = std::array<unsigned, kMostElements>;  // the bundle from which on each element can be read

Times scheduled(Bundles& bundles, const Stage& stage, unsigned elements, const Times& ready) {
  Times done{};
  for (unsigned first = 0; first < elements; first += stage.at_once) {
    const unsigned last = std::min(first + stage.at_once, elements);
    const unsigned latest = *std::max_element(ready.begin() + first, ready.begin() + last);
    std::fill(done.begin() + first, done.begin() + last, bundles.add(stage.pipe, stage.count, latest));
  }
  return done;
}

// The bundles of the body for some elements, with as many `more` main instructions.
unsigned bundlesOf(const ChainCode& code, unsigned elements, unsigned more) {
  Bundles bundles;
  std::vector<Times> registers(code.registers);
  for (const ChainLine& line : code.lines) {
    Times ready{};
    for (const unsigned number : line.reads) {
      for (unsigned i = 0; i < kMostElements; ++i) ready[i] = std::max(ready[i], registers[number][i]);
    }
    for (const Stage& stage : line.stages) ready = scheduled(bundles, stage, elements, ready);
    if (line.writes) registers[*line.writes] = ready;
  }
  bundles.add(Pipe::kMain, more, 0);
  return bundles.closed();
}

// How many values are needed at the same time, beside those that all elements share.
unsigned liveIn(const std::vector<Step>& steps, const std::vector<Operand>& inputs) {
  std::array<bool, chain::kMaxSlots> needed{}, shared{};
  std::size_t most = 0;
  for (std::size_t i = steps.size(); i-- > 0;) {
    const Step& step = steps[i];
    const bool writes = !isStore(step.opcode) && step.opcode != Opcode::aim && step.opcode != Opcode::nothing;
    if (writes) {
      needed[step.to] = false;
      shared[step.to] = shared[step.to] || isShared(step, inputs);
    }
    for (const unsigned slot : step.from) needed[slot] = true;
    most = std::max(most, static_cast<std::size_t>(std::count(needed.begin(), needed.end(), true)));
  }
  const auto taken = static_cast<std::size_t>(std::count(shared.begin(), shared.end(), true));
  return static_cast<unsigned>(most > taken ? most - taken : std::min(most, std::size_t{1}));
}

// Main instructions that bring back what registers cannot hold: `values` for each of `at_once` pairs of elements, and
// what is `shared`.
unsigned spills(unsigned values, unsigned shared, unsigned at_once) {
  const unsigned needed = values * at_once + shared;
  const unsigned over = needed > kRegisterPairs ? needed - kRegisterPairs : 0;
  const unsigned constants = std::min(over, shared);
  return constants * at_once + 2 * (over - constants);
}

}  // namespace

ChainCost chainCost(const std::vector<Step>& steps, const std::vector<Operand>& inputs,
                    const std::vector<unsigned>& outputs) {
  const unsigned live = liveIn(steps, inputs);
  ChainCost cost;
  const auto slots = [&](unsigned elements) {
    const ChainCode code = chainCode(steps, inputs, outputs, elements);
    const auto rows = static_cast<unsigned>(code.fields.size()), shared = static_cast<unsigned>(code.before.size());
    cost.pointers = 2 * (rows + shared);
    const unsigned pointers = rows > kPointers ? rows - kPointers : 0;
    return bundlesOf(code, elements, spills(live, shared, (elements + 1) / 2) + pointers);
  };
  cost.one = slots(1);
  cost.two = slots(2);
  cost.four = slots(kMostElements);
  // Two after the other where four at once do not fit into registers, without a branch between.
  if (cost.four > 2 * cost.two - 1) {
    cost.four = 2 * cost.two - 1;
    cost.at_once = 2;
  }
  return cost;
}

}  // namespace snnjax::elementwise
