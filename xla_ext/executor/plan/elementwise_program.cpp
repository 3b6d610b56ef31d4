#include "executor/plan/elementwise_program.hpp"

#include <algorithm>
#include <bitset>
#include <optional>
#include <unordered_map>

namespace snnjax::executor {
namespace {

using chain::Opcode;
using elementwise::isStore, elementwise::isLoad;
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

std::optional<Step> stepOf(const std::string& text, const std::vector<std::int64_t>& slots) {
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

}  // namespace

std::string elementwiseProblem(const Instruction& instruction, const std::vector<Dtype>& inputs,
                               const std::vector<Dtype>& outputs) {
  if (instruction.texts.size() != instruction.ints.size()) return "have slots for each operation";
  std::bitset<chain::kMaxSlots> written;
  std::vector<bool> stored(outputs.size());
  for (std::size_t i = 0; i < instruction.texts.size(); ++i) {
    const std::string& text = instruction.texts[i];
    const std::optional<Step> step = stepOf(text, instruction.ints[i]);
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

ElementwiseProgram elementwiseProgram(const Instruction& instruction) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < instruction.texts.size(); ++i) {
    steps.push_back(stepOf(instruction.texts[i], instruction.ints[i]).value());
  }
  return ElementwiseProgram(std::move(steps));
}

}  // namespace snnjax::executor
