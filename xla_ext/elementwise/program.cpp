#include "elementwise/program.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace snnjax::elementwise {

using chain::Opcode;
using Step = ElementwiseProgram::Step;

bool isLoad(Opcode opcode) {
  switch (opcode) {
#define SNNJAX_CHAIN_CASE(type, rows, Element) case Opcode::load_##type:
    SNNJAX_CHAIN_NARROW(SNNJAX_CHAIN_CASE)
#undef SNNJAX_CHAIN_CASE
    case Opcode::load_word:
    case Opcode::load_f16:
    case Opcode::load_bf16: return true;
    default: return false;
  }
}

bool isStore(Opcode opcode) {
  switch (opcode) {
#define SNNJAX_CHAIN_CASE(type, rows, Element) case Opcode::store_##type:
    SNNJAX_CHAIN_NARROW(SNNJAX_CHAIN_CASE)
#undef SNNJAX_CHAIN_CASE
    case Opcode::store_word:
    case Opcode::store_f16:
    case Opcode::store_bf16: return true;
    default: return false;
  }
}

ElementwiseProgram::ElementwiseProgram(std::vector<Step> steps) : steps_(std::move(steps)) { aimStores(); }

// Where whole words are stored, the operation that produces them writes directly to the output.
void ElementwiseProgram::aimStores() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].opcode != Opcode::store_word) continue;
    const unsigned slot = steps_[i].from[0], output = steps_[i].number;
    std::size_t writer = i;
    bool clear = true;
    while (clear && writer-- > 0) {
      const Step& before = steps_[writer];
      if (before.opcode == Opcode::aim && before.to == slot) clear = false;
      if (isStore(before.opcode)) {
        // Another store of the slot has been aimed already, or the same output is stored twice.
        if (before.number == output && before.opcode == Opcode::store_word) clear = false;
      } else if (before.to == slot) {
        break;
      }
    }
    const bool aimed_before = clear && writer > 0 && writer < i && steps_[writer - 1].opcode == Opcode::aim;
    if (!clear || aimed_before || isLoad(steps_[writer].opcode) || steps_[writer].opcode == Opcode::constant) continue;
    steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(i));
    steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(writer), Step{Opcode::aim, slot, {}, output});
  }
}

bool ElementwiseProgram::mayOverwrite(std::size_t input, std::size_t output) const {
  std::array<bool, chain::kMaxSlots> holds{};  // slots that are the input's row itself
  bool overwritten = false, aimed = false;
  for (const Step& step : steps_) {
    // An aimed operation reads its operands before it writes.
    for (const unsigned slot : step.from) {
      if (overwritten && holds[slot]) return false;
    }
    if (aimed) overwritten = true;
    aimed = false;
    if (step.opcode == Opcode::aim) {
      aimed = step.number == output;
    } else if (isStore(step.opcode)) {
      overwritten = overwritten || step.number == output;
    } else if (isLoad(step.opcode)) {
      if (step.number == input && overwritten) return false;
      holds[step.to] = step.number == input && step.opcode == Opcode::load_word;
    } else {
      holds[step.to] = false;
    }
  }
  return true;
}

// The words of a step; `operand` is the input that it loads.
std::vector<unsigned> ElementwiseProgram::words(const Step& step, const Operand* operand,
                                                const std::vector<unsigned>& outputs) {
  using Place = Operand::Place;
  if (step.opcode == Opcode::constant) return {chain::wordOfRow(step.opcode, step.to, 0), step.number};
  if (operand != nullptr && operand->place == Place::kConstant) {
    return {chain::wordOfRow(Opcode::constant, step.to, 0), operand->bits};
  }
  if (operand != nullptr) {
    const bool single = operand->place == Place::kSingle, own = operand->place == Place::kOutput;
    const unsigned flags = single ? chain::kSingleRow : own ? chain::kOwnRow : 0;
    return {chain::wordOfRow(step.opcode, step.to, operand->row | flags)};
  }
  if (step.opcode == Opcode::aim) return {chain::wordOfRow(step.opcode, step.to, outputs[step.number])};
  if (isStore(step.opcode)) return {chain::wordOfRow(step.opcode, step.from[0], outputs[step.number])};
  const auto from = [&step](std::size_t i) { return i < step.from.size() ? step.from[i] : 0; };
  return {chain::Instruction{step.opcode, step.to, from(0), from(1), from(2)}.word()};
}

ElementwiseProgram::Code ElementwiseProgram::encoded(const std::vector<Operand>& inputs,
                                                     const std::vector<unsigned>& outputs) const {
  using Place = Operand::Place;
  std::array<unsigned, chain::kMaxSlots> writes{};
  for (const Step& step : steps_) {
    if (!isStore(step.opcode) && step.opcode != Opcode::aim) ++writes[step.to];
  }
  std::vector<unsigned> once, each;
  for (const Step& step : steps_) {
    const Operand* operand = isLoad(step.opcode) ? &inputs[step.number] : nullptr;
    const bool same_for_all =
        step.opcode == Opcode::constant ||
        (operand != nullptr && (operand->place == Place::kConstant || operand->place == Place::kSingle));
    // A value common to all elements fills its slot once, if nothing else is written there.
    std::vector<unsigned>& code = same_for_all && writes[step.to] == 1 ? once : each;
    const std::vector<unsigned> of_step = words(step, operand, outputs);
    code.insert(code.end(), of_step.begin(), of_step.end());
  }
  Code code{once, static_cast<unsigned>(once.size())};
  code.words.insert(code.words.end(), each.begin(), each.end());
  return code;
}

}  // namespace snnjax::elementwise
