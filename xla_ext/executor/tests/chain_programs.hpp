// Random elementwise programs as the lowering makes them: every slot has a type, and holds what the type can hold.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "elementwise/chain_source.hpp"
#include "executor/plan/elementwise_program.hpp"
#include "kernels/alone.hpp"

namespace chains {

using snnjax::executor::ElementwiseProgram;
using Place = ElementwiseProgram::Operand::Place;

inline const std::vector<std::string> kTypes = {"f32", "f16", "bf16", "s32", "u32", "bool", "s8", "u8", "s16", "u16"};

// Operations on real numbers, on integers, and on the bits of integers.
inline const std::vector<std::string> kRealUnary = {"abs",
                                                    "negate",
                                                    "sign",
                                                    "square",
                                                    "ceil",
                                                    "floor",
                                                    "round_nearest_even",
                                                    "round_nearest_afz",
                                                    "trunc",
                                                    "rsqrt",
                                                    "sqrt",
                                                    "cbrt",
                                                    "exponential",
                                                    "exponential_minus_one",
                                                    "log",
                                                    "log_plus_one",
                                                    "tanh",
                                                    "logistic",
                                                    "sine",
                                                    "cosine",
                                                    "tan",
                                                    "erf"};
inline const std::vector<std::string> kRealBinary = {"add",      "subtract", "multiply", "add",       "subtract",
                                                     "multiply", "maximum",  "minimum",  "remainder", "maximum",
                                                     "minimum",  "divide",   "power",    "atan2"};
inline const std::vector<std::string> kIntegerBinary = {"add",       "subtract", "multiply", "divide",
                                                        "remainder", "maximum",  "minimum",  "power"};
inline const std::vector<std::string> kBits = {"and.u32", "or.u32", "xor.u32", "shift_left.u32",
                                               "shift_right_logical.u32"};
inline const std::vector<std::string> kSigned = {"abs.s32", "negate.s32", "sign.s32", "square.s32", "not.s32"};
inline const std::vector<std::string> kUnsigned = {"negate.u32", "not.u32", "popcnt.u32", "count_leading_zeros.u32"};
inline const std::vector<std::string> kComparisons = {"eq.", "ne.", "lt.", "le.", "gt.", "ge."};

inline bool isReal(const std::string& type) { return type == "f32" || type == "f16" || type == "bf16"; }
inline unsigned widthOf(const std::string& type) {
  if (type == "bool" || type == "s8" || type == "u8") return 1;
  return type.ends_with("16") ? 2 : 4;
}
// The type that operations work in, and the one that rounds or wraps their results.
inline std::string workOf(const std::string& type) { return isReal(type) ? "f32" : type[0] == 's' ? "s32" : "u32"; }

// Bits of an element in memory: edges of the type, and numbers between.
inline unsigned elementOf(const std::string& type, kernels::Draw& draw) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  static const std::vector<float> edges = {0.0f, -0.0f, 1.0f,     -1.0f,    0.5f,  2.5f,   -2.5f,  kInfinity,
                                           kNan, -3.0f, 65504.0f, 65520.0f, 1e-7f, 1e-40f, -1e30f, -kInfinity};
  static const std::vector<unsigned> integers = {0, 1, 2, 3, 7, 31, 32, 127, 128, 0xffff, 0x7fffffff, 0x80000000, ~0u};
  const bool edge = draw.below(2) == 0;
  if (type == "bool") return draw.below(2);
  if (!isReal(type)) {
    const unsigned bits = edge ? integers[draw.below(unsigned(integers.size()))] : draw.below(200) - 100;
    return widthOf(type) == 4 ? bits : bits & ((1u << 8 * widthOf(type)) - 1);
  }
  const float number = edge ? edges[draw.below(unsigned(edges.size()))] : draw.eighths();
  if (type == "f16") return std::bit_cast<unsigned short>(static_cast<half>(number));
  return type == "bf16" ? snnjax::chain::bfloatBits(number) : std::bit_cast<unsigned>(number);
}
// What a slot holds of it.
inline unsigned slotOf(const std::string& type, unsigned bits) {
  if (type == "f16") return std::bit_cast<unsigned>(float(std::bit_cast<half>(static_cast<unsigned short>(bits))));
  if (type == "bf16") return bits << 16;
  if (type == "s8") return static_cast<unsigned>(static_cast<std::int8_t>(bits));
  return type == "s16" ? static_cast<unsigned>(static_cast<std::int16_t>(bits)) : bits;
}

struct Chain {
  snnjax::executor::Instruction instruction;
  std::vector<std::string> in, out;  // types
  std::vector<ElementwiseProgram::Operand> inputs;
  std::vector<unsigned> outputs;             // rows
  std::vector<std::size_t> output_of_input;  // that overwrites it; as many as outputs: none

  ElementwiseProgram program() const { return snnjax::executor::elementwiseProgram(instruction); }
  snnjax::elementwise::ChainSource source() const {
    return snnjax::elementwise::chainSource(program().steps(), inputs, outputs);
  }
};

class RandomChain {
 public:
  explicit RandomChain(std::uint32_t seed) : draw_(seed) {}

  Chain make() {
    const unsigned operations = 1 + draw_.below(10), inputs = 1 + draw_.below(4), outputs = 1 + draw_.below(3);
    for (unsigned i = 0; i < inputs; ++i) load();
    for (unsigned i = 0; i < operations && slots_.size() + 3 <= snnjax::chain::kMaxSlots; ++i) operate();
    for (unsigned i = 0; i < outputs; ++i) store();
    place();
    return chain_;
  }
  // One operation on rows of these types, rounded to what `to` holds.
  Chain only(const std::string& operation, const std::vector<std::string>& from, const std::string& to) {
    std::vector<std::int64_t> slots = {std::int64_t(from.size())};
    for (const std::string& type : from) {
      slots.push_back(std::int64_t(chain_.in.size()));
      step("load." + type, {slots.back(), slots.back()});
      chain_.in.push_back(type);
    }
    step(operation, slots);
    rounded(slots[0], to);
    step("store." + to, {0, slots[0]});
    chain_.out.push_back(to);
    place();
    return chain_;
  }

 private:
  struct Slot {
    unsigned number;
    std::string type;
  };

  void step(const std::string& text, std::vector<std::int64_t> slots) {
    chain_.instruction.texts.push_back(text);
    chain_.instruction.ints.push_back(std::move(slots));
  }
  const std::string& pick(const std::vector<std::string>& all) { return all[draw_.below(unsigned(all.size()))]; }
  unsigned fresh(const std::string& type) {
    slots_.push_back({unsigned(slots_.size()), type});
    return slots_.back().number;
  }
  // Of the last written ones rather than of those before, so that results depend on many operations.
  Slot& any() {
    const auto all = unsigned(slots_.size()), last = std::min(all, 3u);
    return slots_[draw_.below(2) == 0 ? draw_.below(all) : all - 1 - draw_.below(last)];
  }
  // One of this type; a constant if there is none.
  unsigned like(const std::string& type) {
    std::vector<unsigned> found;
    for (const Slot& slot : slots_) {
      if (slot.type == type) found.push_back(slot.number);
    }
    if (!found.empty() && draw_.below(4) != 0) return found[draw_.below(unsigned(found.size()))];
    const unsigned to = fresh(type);
    const std::string work = type == "bool" ? "bool" : workOf(type);
    step("constant." + work, {to, static_cast<std::int32_t>(slotOf(type, elementOf(type, draw_)))});
    return to;
  }
  void load() {
    const std::string type = draw_.below(2) == 0 ? "f32" : pick(kTypes);
    step("load." + type, {fresh(type), std::int64_t(chain_.in.size())});
    chain_.in.push_back(type);
  }
  // Writes a slot of a type, rounded or wrapped to it: a new one, or one that held something else.
  template <class... From>
  void write(const std::string& operation, const std::string& type, From... from) {
    Slot& slot = draw_.below(4) == 0 ? any() : slots_[fresh(type)];
    slot.type = type;
    const unsigned to = slot.number;
    step(operation, {to, from...});
    rounded(to, type);
  }
  void rounded(std::int64_t slot, const std::string& type) {
    if (type == "f16" || type == "bf16") step("round." + type, {slot, slot});
    if (!isReal(type) && type != "bool" && widthOf(type) < 4) step("wrap." + type, {slot, slot});
  }
  void operate() {
    const Slot from = any();
    const std::string type = from.type;
    const unsigned choice = draw_.below(8);
    if (choice == 0) return compare(from);
    if (choice == 1) return write("select.u32", type, like("bool"), from.number, like(type));
    if (choice == 2) return convert(from);
    if (type == "bool") return logical(from);
    if (isReal(type)) return real(from);
    integer(from);
  }
  void compare(const Slot& from) {
    if (isReal(from.type) && draw_.below(5) == 0) return write("is_finite.f32", "bool", from.number);
    const std::string total = isReal(from.type) && draw_.below(4) == 0 ? "_total" : "";
    const std::string name = pick(kComparisons);
    const std::string text = total.empty() ? name : name.substr(0, 2) + "_total.";
    write(text + workOf(from.type), "bool", from.number, like(from.type));
  }
  void convert(const Slot& from) {
    if (from.type == "bool") return write("convert_s32_f32", pick({"f32", "f16", "bf16"}), from.number);
    if (isReal(from.type)) {
      const std::string type = pick({"s32", "u32", "bool", "s8", "f16", "f32"});
      if (isReal(type)) return write("abs.f32", type, from.number);
      return write("convert_f32_" + (type == "bool" ? type : workOf(type)), type, from.number);
    }
    if (workOf(from.type) == "s32" && draw_.below(2) == 0) return write("convert_s32_bool", "bool", from.number);
    write("convert_" + workOf(from.type) + "_f32", pick({"f32", "f16", "bf16"}), from.number);
  }
  void logical(const Slot& from) {
    const unsigned choice = draw_.below(4);
    if (choice == 0) return write("not.bool", "bool", from.number);
    write(std::vector<std::string>{"and.u32", "or.u32", "xor.u32"}[choice - 1], "bool", from.number, like("bool"));
  }
  void real(const Slot& from) {
    if (draw_.below(3) == 0) return write(pick(kRealUnary) + ".f32", from.type, from.number);
    write(pick(kRealBinary) + ".f32", from.type, from.number, like(from.type));
  }
  void integer(const Slot& from) {
    const std::string work = workOf(from.type);
    const unsigned choice = draw_.below(4);
    if (choice == 0) return write(pick(kBits), from.type, from.number, like(from.type));
    if (choice > 1) return write(pick(kIntegerBinary) + "." + work, from.type, from.number, like(from.type));
    write(pick(work == "s32" ? kSigned : kUnsigned), from.type, from.number);
  }
  void store() {
    const Slot from = draw_.below(2) == 0 ? slots_.back() : any();
    step("store." + from.type, {std::int64_t(chain_.out.size()), from.number});
    chain_.out.push_back(from.type);
  }

  // Outputs have rows of their own or overwrite an input; other inputs are rows, single elements or constants.
  void place() {
    const ElementwiseProgram program = chain_.program();
    unsigned rows_out[5] = {}, rows_in[5] = {};
    for (const std::string& type : chain_.out) chain_.outputs.push_back(rows_out[widthOf(type)]++);
    std::vector<bool> taken(chain_.out.size());
    for (std::size_t i = 0; i < chain_.in.size(); ++i) {
      const std::string& type = chain_.in[i];
      ElementwiseProgram::Operand operand;
      std::size_t over = 0;
      while (over < taken.size() && (taken[over] || chain_.out[over] != type || !program.mayOverwrite(i, over))) ++over;
      const unsigned choice = draw_.below(6);
      if (over < taken.size() && choice < 3) {
        taken[over] = true;
        operand = {Place::kOutput, chain_.outputs[over], 0};
      } else if (choice == 5) {
        operand = {Place::kConstant, 0, slotOf(type, elementOf(type, draw_))};
      } else {
        operand = {choice == 4 ? Place::kSingle : Place::kRow, rows_in[widthOf(type)]++, 0};
      }
      chain_.inputs.push_back(operand);
      chain_.output_of_input.push_back(operand.place == Place::kOutput ? over : taken.size());
    }
  }

  kernels::Draw draw_;
  Chain chain_;
  std::vector<Slot> slots_;
};

// Each operation alone, on each type that is computed in its own way.
inline std::vector<Chain> everyOperation() {
  std::vector<Chain> all;
  const auto add = [&](const std::string& operation, const std::vector<std::string>& from, const std::string& to) {
    all.push_back(RandomChain(unsigned(all.size())).only(operation, from, to));
  };
  for (const std::string type : {"f32", "f16"}) {
    for (const std::string& name : kRealUnary) add(name + ".f32", {type}, type);
    for (const std::string& name : kRealBinary) add(name + ".f32", {type, type}, type);
    for (const std::string to : {"s32", "u32", "bool"}) add("convert_f32_" + to, {type}, to);
    add("is_finite.f32", {type}, "bool");
    add("select.u32", {"bool", type, type}, type);
    for (const std::string& name : kComparisons) add(name + "f32", {type, type}, "bool");
  }
  for (const std::string& name : kComparisons) add(name.substr(0, 2) + "_total.f32", {"f32", "f32"}, "bool");
  for (const std::string work : {"s32", "u32"}) {
    for (const std::string& name : kIntegerBinary) add(name + "." + work, {work, work}, work);
    for (const std::string& name : kComparisons) add(name + work, {work, work}, "bool");
    for (const std::string& name : work == "s32" ? kSigned : kUnsigned) add(name, {work}, work);
    for (const std::string& name : kBits) add(name, {work, work}, work);
    add("convert_" + work + "_f32", {work}, "f32");
  }
  add("shift_right_arithmetic.s32", {"s32", "s32"}, "s32");
  for (const std::string type : {"bf16", "s8", "u8", "s16", "u16"}) add("add." + workOf(type), {type, type}, type);
  for (const std::string name : {"and.u32", "or.u32", "xor.u32"}) add(name, {"bool", "bool"}, "bool");
  return all;
}

}  // namespace chains
