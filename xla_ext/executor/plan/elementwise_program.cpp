#include "executor/plan/elementwise_program.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <unordered_map>
#include "builders/error.hpp"

namespace snnjax::executor {
namespace {

using chain::Opcode;
using Step = ElementwiseProgram::Step;

struct Form {
  Opcode opcode;
  unsigned reads;  // slots
};

std::string nameOf(std::string_view name, std::string_view suffix) {
  return std::string(name) + (name == "convert" ? "_" : ".") + std::string(suffix);
}

// By the name in a plan; loads, stores and constants excluded.
const std::unordered_map<std::string, Form>& forms() {
  static const auto& kForms = *new std::unordered_map<std::string, Form>([] {  // never destroyed, as kAccesses
    std::unordered_map<std::string, Form> all = {{"select.u32", {Opcode::select, 3}}};
#define SNNJAX_CHAIN_FORM(name, suffix, From, To, work, expression) \
  all[nameOf(#name, #suffix)] = {Opcode::name##_##suffix, 1};
    SNNJAX_CHAIN_UNARY(SNNJAX_CHAIN_FORM)
#undef SNNJAX_CHAIN_FORM
#define SNNJAX_CHAIN_FORM(name, suffix, From, To, work, expression) \
  all[nameOf(#name, #suffix)] = {Opcode::name##_##suffix, 2};
    SNNJAX_CHAIN_BINARY(SNNJAX_CHAIN_FORM)
#undef SNNJAX_CHAIN_FORM
    return all;
  }());
  return kForms;
}

struct Access {
  Opcode load, store;
  std::size_t bytes;
};

// By the type of the elements in memory.
const std::unordered_map<std::string, Access>& accesses() {
  // Never destroyed: threads may outlive everything else.
  static const auto& kAccesses = *new std::unordered_map<std::string, Access>{
      {"bool", {Opcode::load_u8, Opcode::store_u8, 1}},     {"s8", {Opcode::load_s8, Opcode::store_s8, 1}},
      {"u8", {Opcode::load_u8, Opcode::store_u8, 1}},       {"s16", {Opcode::load_s16, Opcode::store_s16, 2}},
      {"u16", {Opcode::load_u16, Opcode::store_u16, 2}},    {"f16", {Opcode::load_f16, Opcode::store_f16, 2}},
      {"bf16", {Opcode::load_bf16, Opcode::store_bf16, 2}}, {"s32", {Opcode::load_word, Opcode::store_word, 4}},
      {"u32", {Opcode::load_word, Opcode::store_word, 4}},  {"f32", {Opcode::load_word, Opcode::store_word, 4}}};
  return kAccesses;
}

std::string typeOf(const std::string& text, std::string_view operation) {
  return text.compare(0, operation.size(), operation) == 0 ? text.substr(operation.size()) : std::string();
}

bool isSlot(std::int64_t slot) { return slot >= 0 && slot < static_cast<std::int64_t>(chain::kMaxSlots); }

// An input or output of a type with such elements.
bool fits(std::size_t number, const std::vector<Dtype>& arrays, const std::string& type) {
  return number < arrays.size() && toString(arrays[number]) == type;
}

}  // namespace

bool isLoad(Opcode opcode) {
  return std::any_of(accesses().begin(), accesses().end(),
                     [=](const auto& each) { return each.second.load == opcode; });
}
bool isStore(Opcode opcode) {
  return std::any_of(accesses().begin(), accesses().end(),
                     [=](const auto& each) { return each.second.store == opcode; });
}

std::optional<Step> ElementwiseProgram::step(const std::string& text, const std::vector<std::int64_t>& slots) {
  constexpr std::int64_t kMostRows = chain::kOwnRow;
  const auto number = [&](std::size_t i) { return static_cast<unsigned>(slots[i]); };
  if (const auto load = accesses().find(typeOf(text, "load.")); load != accesses().end()) {
    if (slots.size() != 2 || !isSlot(slots[0]) || slots[1] < 0 || slots[1] >= kMostRows) return {};
    return Step{load->second.load, number(0), {}, number(1)};
  }
  if (const auto store = accesses().find(typeOf(text, "store.")); store != accesses().end()) {
    if (slots.size() != 2 || !isSlot(slots[1]) || slots[0] < 0 || slots[0] >= kMostRows) return {};
    return Step{store->second.store, 0, {number(1)}, number(0)};
  }
  if (!typeOf(text, "constant.").empty()) {
    if (slots.size() != 2 || !isSlot(slots[0])) return {};
    return Step{Opcode::constant, number(0), {}, static_cast<unsigned>(slots[1])};
  }
  const auto form = forms().find(text);
  if (form == forms().end() || slots.size() != form->second.reads + 1) return {};
  if (!std::all_of(slots.begin(), slots.end(), isSlot)) return {};
  Step step{form->second.opcode, number(0), {}, 0};
  for (std::size_t i = 1; i < slots.size(); ++i) step.from.push_back(number(i));
  return step;
}

std::string ElementwiseProgram::problem(const Instruction& instruction, const std::vector<Dtype>& inputs,
                                        const std::vector<Dtype>& outputs) {
  if (instruction.texts.size() != instruction.ints.size()) return "have slots for each operation";
  std::bitset<chain::kMaxSlots> written;
  std::vector<bool> stored(outputs.size());
  for (std::size_t i = 0; i < instruction.texts.size(); ++i) {
    const std::string& text = instruction.texts[i];
    const std::optional<Step> step = ElementwiseProgram::step(text, instruction.ints[i]);
    if (!step) return "be a program of known operations on up to 24 slots (\"" + text + "\" is not)";
    for (const unsigned slot : step->from) {
      if (!written[slot]) return "write slots before it reads them";
    }
    if (isStore(step->opcode)) {
      if (!fits(step->number, outputs, typeOf(text, "store."))) return "store what its outputs hold";
      if (stored[step->number]) return "store each output once";
      stored[step->number] = true;
      continue;
    }
    if (isLoad(step->opcode) && !fits(step->number, inputs, typeOf(text, "load."))) return "load what its inputs hold";
    written.set(step->to);
  }
  return std::find(stored.begin(), stored.end(), false) == stored.end() ? "" : "store all outputs";
}

ElementwiseProgram::ElementwiseProgram(const Instruction& instruction) {
  for (std::size_t i = 0; i < instruction.texts.size(); ++i) {
    steps_.push_back(step(instruction.texts[i], instruction.ints[i]).value());
  }
  aimStores();
}

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

}  // namespace snnjax::executor
