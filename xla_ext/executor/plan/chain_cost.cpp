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
#include "executor/plan/chain_cost.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "executor/plan/bundles.hpp"
#include "executor/plan/chain_code.hpp"

namespace snnjax::executor {
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

// What needs registers at the same time: pairs of elements, and values that all elements share.
struct Live {
  unsigned values = 0, shared = 0;
};

Live liveIn(const std::vector<Step>& steps, const std::vector<Operand>& inputs) {
  std::set<std::pair<bool, unsigned>> shared;
  std::array<bool, chain::kMaxSlots> needed{}, is_shared{};
  std::vector<bool> of_step(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    of_step[i] = isShared(steps[i], inputs);
    if (of_step[i]) shared.emplace(isLoad(steps[i].opcode), steps[i].number);
  }
  unsigned most = 0;
  for (std::size_t i = steps.size(); i-- > 0;) {
    const Step& step = steps[i];
    const bool writes = !isStore(step.opcode) && step.opcode != Opcode::aim && step.opcode != Opcode::nothing;
    if (writes && of_step[i]) is_shared[step.to] = true;
    if (writes) needed[step.to] = false;
    for (const unsigned slot : step.from) needed[slot] = true;
    const auto live = static_cast<unsigned>(std::count(needed.begin(), needed.end(), true));
    most = std::max(most, live);
  }
  const auto taken = static_cast<unsigned>(std::count(is_shared.begin(), is_shared.end(), true));
  return {most > taken ? most - taken : std::min(most, 1u), static_cast<unsigned>(shared.size())};
}

// Main instructions that bring back what registers cannot hold; `at_once` pairs of elements are under way.
unsigned spills(const Live& live, unsigned at_once) {
  const unsigned needed = live.values * at_once + live.shared;
  const unsigned over = needed > kRegisterPairs ? needed - kRegisterPairs : 0;
  const unsigned constants = std::min(over, live.shared);
  return constants * at_once + 2 * (over - constants);
}

}  // namespace

ChainCost chainCost(const std::vector<Step>& steps, const std::vector<Operand>& inputs,
                    const std::vector<unsigned>& outputs) {
  const Live live = liveIn(steps, inputs);
  const auto slots = [&](unsigned elements) {
    const ChainCode code = chainCode(steps, inputs, outputs, elements);
    const auto rows = static_cast<unsigned>(code.fields.size());
    const unsigned pointers = rows > kPointers ? rows - kPointers : 0;
    return bundlesOf(code, elements, spills(live, (elements + 1) / 2) + pointers);
  };
  const auto rows = static_cast<unsigned>(chainCode(steps, inputs, outputs, kMostElements).fields.size());
  ChainCost cost;
  cost.pointers = 2 * (rows + live.shared);
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

}  // namespace snnjax::executor
