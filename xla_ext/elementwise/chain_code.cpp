// Which functions of elementwise_chain_registers.hpp an elementwise program calls, and how many instructions each
// takes.
//
// Values lie in registers as floats, halves, masks or integers, and are brought into another form where an operation
// asks for it. The instructions are those that Graphcore's compiler selects for such C++, as the tests of its public
// sources show (graphcore/llvm-project-fork, llvm/test/CodeGen/Colossus), where they do:
//   - float2: load and store 1 main; sums, products, comparisons (a mask of all bits), and, or, and with a complement 1
//     aux; so a select by a mask is 3 aux, 1 if one side is 0. The chip's maximum ignores a NaN, so ours is made of
//     comparisons: 9, with a constant 4, with 0 2. Roundings take one element at a time, 1 aux each;
//   - half4: load and store 1 main; sums, products, comparisons of halves that are rounded to half anyway 1 aux, the
//     same bits as through floats; to and from float2 1 aux a pair;
//   - integers, one by one: load 1, operation 2, comparison 2 main, more where kIntegerCounts says so. From registers
//     for floats they are moved, 1 main each, and reach them through memory, a store each and one load a pair;
//   - bytes: load 1 main each; four are merged by 3 main and stored as a word. Alone, 16 and 8 bits take kShortStore;
//   - bfloat16, which the tile does not have: halves beside zeros, 2 aux a pair, rounded as integers.
// Functions take what PopLibs estimates (elementwise/cycles.hpp). Assumed, because no source of this project
// gives them: that masks stay in the registers for floats until they are stored or meet integers, what integers take
// beyond one instruction, and conversions to integers, which saturate.
#include "elementwise/chain_code.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>

#include "poplar_kernels/elementwise/elementwise_chain_ops.hpp"
#include "poplar_kernels/issue_slots.hpp"

namespace snnjax::elementwise {
namespace {

using chain::Opcode;
using Step = ElementwiseProgram::Step;
using Operand = ElementwiseProgram::Operand;

constexpr unsigned kBound = 4, kZeroBound = 2, kSelect = 3, kMove = 2;
// A shift, a mask, two sums; of a NaN its magnitude, a comparison, a bit, two to select; one clears the lower half.
constexpr unsigned kRoundBfloat = 10;
// Rounded, converted, and compared with both limits and itself; moved with the masks, and one of four selected.
constexpr unsigned kToIntegerAux = 5, kToIntegerMain = 10;

// How registers hold elements, and the letter of their names.
enum RegisterForm { kFloat, kHalf, kMask, kInteger, kForms };
constexpr char kLetters[] = "fhmi";

struct Vector {
  Opcode opcode;
  const char* call;
  unsigned count;  // aux instructions, for two floats or four halves
  RegisterForm to;
};
constexpr Vector kVectors[] = {{Opcode::abs_f32, "absolute", 1, kFloat},
                               {Opcode::negate_f32, "negate", 1, kFloat},
                               {Opcode::square_f32, "multiply", 1, kFloat},
                               {Opcode::add_f32, "add", 1, kFloat},
                               {Opcode::subtract_f32, "subtract", 1, kFloat},
                               {Opcode::multiply_f32, "multiply", 1, kFloat},
                               {Opcode::maximum_f32, "maximum", 9, kFloat},
                               {Opcode::minimum_f32, "minimum", 9, kFloat},
                               {Opcode::sign_f32, "sign", 8, kFloat},
                               {Opcode::is_finite_f32, "isFinite", 2, kMask},
                               {Opcode::eq_f32, "eq", 1, kMask},
                               {Opcode::ne_f32, "ne", 1, kMask},
                               {Opcode::lt_f32, "lt", 1, kMask},
                               {Opcode::le_f32, "le", 1, kMask},
                               {Opcode::gt_f32, "gt", 1, kMask},
                               {Opcode::ge_f32, "ge", 1, kMask}};

// Main instructions where they are not two: compared, shifted and selected by two; compared and selected; compared
// twice and subtracted; both operands' magnitudes flipped by three, compared, negated.
constexpr std::pair<Opcode, unsigned> kIntegerCounts[] = {{Opcode::shift_left_u32, 4},
                                                          {Opcode::shift_right_logical_u32, 4},
                                                          {Opcode::shift_right_arithmetic_s32, 4},
                                                          {Opcode::maximum_u32, 3},
                                                          {Opcode::minimum_u32, 3},
                                                          {Opcode::sign_s32, 3},
                                                          {Opcode::lt_total_f32, 8},
                                                          {Opcode::le_total_f32, 8},
                                                          {Opcode::gt_total_f32, 8},
                                                          {Opcode::ge_total_f32, 8}};

enum class Number { kFloat, kInteger };
struct Function {
  const char* name;
  Number from, to;
  Work work;
};

template <class T>
constexpr Number numberOf() {
  return std::is_same_v<T, float> ? Number::kFloat : Number::kInteger;
}

Function functionOf(Opcode opcode) {
  switch (opcode) {
#define SNNJAX_CHAIN_CASE(name, suffix, From, To, work, expression) \
  case Opcode::name##_##suffix: return {"functions::" #name "_" #suffix, numberOf<From>(), numberOf<To>(), Work::work};
    SNNJAX_CHAIN_UNARY(SNNJAX_CHAIN_CASE)
    SNNJAX_CHAIN_BINARY(SNNJAX_CHAIN_CASE)
#undef SNNJAX_CHAIN_CASE
    default: return {};
  }
}

bool isOneOf(Opcode opcode, std::initializer_list<Opcode> all) {
  return std::find(all.begin(), all.end(), opcode) != all.end();
}

// A register, or what all elements share, as an argument.
struct Argument {
  std::string text;
  std::optional<unsigned> number;
};

struct Value {
  std::array<std::optional<Argument>, kForms> forms;
  Opcode load = Opcode::nothing;  // what brings it into registers,
  std::string pointer;            // from where
  std::optional<unsigned> constant;
  bool shared = false;                // by all elements: a constant, or a row of one element
  bool half = false, bfloat = false;  // what these types hold
  bool truth = false;                 // 0 or 1

  // Which form the operations that wrote it left it in.
  bool isMask() const { return forms[kMask] && !forms[kInteger]; }
  bool isFloat() const { return forms[kFloat] || forms[kHalf] || shared || half || bfloat; }
  bool isInteger() const {
    const bool narrow = isLoad(load) && load != Opcode::load_word && !half && !bfloat;
    return !shared && !forms[kFloat] && (forms[kInteger] || narrow);
  }
  bool holdsHalves() const {
    const float number = bitsOf<float>(constant.value_or(0));
    return constant ? chain::roundedToHalf(number) == number : half;
  }
};

// How elements are read from memory.
struct MemoryForm {
  const char* load;
  const char* shared;  // the one element of a row
  RegisterForm form;
  unsigned width;  // bytes
  std::vector<Stage> stages;
};

MemoryForm memoryFormOf(Opcode opcode) {
  const Stage whole{Pipe::kMain, 1, kMostElements}, pair{Pipe::kMain, 1, 2}, single{Pipe::kMain, 1, 1};
  const Stage widened{Pipe::kAux, 2, 2};
  switch (opcode) {
    case Opcode::load_f16:
    case Opcode::store_f16: return {"loadHalves", "sharedHalf", kHalf, 2, {whole}};
    case Opcode::load_bf16:
    case Opcode::store_bf16: return {"loadBfloats", "sharedBfloat", kFloat, 2, {pair, widened}};
#define SNNJAX_CHAIN_CASE(type, rows, Element) \
  case Opcode::load_##type:                    \
  case Opcode::store_##type:                   \
    return {"loadIntegers<" #Element ">", "sharedInteger<" #Element ">", kInteger, sizeof(Element), {single}};
      SNNJAX_CHAIN_NARROW(SNNJAX_CHAIN_CASE)
#undef SNNJAX_CHAIN_CASE
    default: return {"loadFloats", "shared", kFloat, 4, {pair}};
  }
}

// Of a field's name, by the bytes of its elements.
std::string suffixOf(unsigned width) {
  if (width == 2) return "_halves";
  return width == 1 ? "_bytes" : "";
}

class Body {
 public:
  Body(const std::vector<Step>& steps, const std::vector<Operand>& inputs, const std::vector<unsigned>& outputs,
       unsigned elements)
      : steps_(steps), inputs_(inputs), outputs_(outputs), elements_(elements) {
    for (std::size_t i = 0; i < steps.size(); ++i) add(i);
  }
  ChainCode take() { return std::move(code_); }

 private:
  void addLine(const std::string& left, const std::string& call, const std::vector<Argument>& arguments,
               std::optional<unsigned> writes, std::vector<Stage> stages) {
    ChainLine line{left + call + "(", {}, writes, std::move(stages)};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      line.text += (i > 0 ? ", " : "") + arguments[i].text;
      if (arguments[i].number) line.reads.push_back(*arguments[i].number);
    }
    line.text += ");";
    code_.lines.push_back(std::move(line));
  }
  Argument computed(RegisterForm form, const std::string& call, const std::vector<Argument>& arguments,
                    std::vector<Stage> stages) {
    const unsigned number = code_.registers++;
    const std::string name = kLetters[form] + std::to_string(number);
    addLine("const auto " + name + " = ", call, arguments, number, std::move(stages));
    return {name, number};
  }
  void store(const std::string& call, const Argument& from, const std::string& pointer, std::vector<Stage> stages) {
    addLine("", call, {from, {pointer + " + i", {}}}, {}, std::move(stages));
  }

  // The pointer to a row.
  std::string pointer(bool output, unsigned width, unsigned row, bool writes) {
    const std::string name = (output ? "out" : "in") + suffixOf(width) + std::to_string(row);
    auto at = std::find_if(code_.fields.begin(), code_.fields.end(), [&](const auto& f) { return f.name == name; });
    if (at == code_.fields.end()) at = code_.fields.insert(at, {name, output, width, row});
    (writes ? at->is_written : at->is_read) = true;
    return "p" + std::to_string(at - code_.fields.begin());
  }

  // The name of what all elements share, which is there before the loop.
  std::string sharedName(const Value& value) {
    std::ostringstream bits;
    if (value.constant) bits << "0x" << std::hex << *value.constant << "u";
    const std::string from =
        value.constant ? bits.str() : memoryFormOf(value.load).shared + ("(" + value.pointer) + ")";
    const auto [at, is_new] = shared_.emplace(from, "k" + std::to_string(shared_.size()));
    const std::string type = value.constant ? "constexpr unsigned " : "const unsigned ";
    if (is_new) code_.before.push_back(type + at->second + " = " + from + ";");
    return at->second;
  }
  Argument constant(float number) {
    Value value;
    value.constant = bitsOf<unsigned>(number);
    value.shared = true;
    return as(value, kFloat);
  }

  Value loaded(const Step& step) {
    Value value;
    if (step.opcode == Opcode::constant) {
      value.constant = step.number;
    } else if (inputs_[step.number].place == Operand::Place::kConstant) {
      value.constant = inputs_[step.number].bits;
    } else {
      value.load = step.opcode;
      const Operand& input = inputs_[step.number];
      const bool own = input.place == Operand::Place::kOutput;
      value.pointer = pointer(own, memoryFormOf(step.opcode).width, input.row, false);
    }
    value.truth = value.constant ? *value.constant <= 1 : step.opcode == Opcode::load_u8;
    value.half = step.opcode == Opcode::load_f16;
    value.bfloat = step.opcode == Opcode::load_bf16;
    value.shared = isShared(step, inputs_);
    // A row that will be overwritten is read now, except words: they are not used after that (mayOverwrite).
    const bool overwritten = isLoad(value.load) && inputs_[step.number].place == Operand::Place::kOutput;
    if (overwritten && value.load != Opcode::load_word) as(value, memoryFormOf(value.load).form);
    return value;
  }

  Argument brought(const Value& value, RegisterForm form) {
    const std::vector<Argument> from = {{"n", {}}, {value.pointer + " + i", {}}};
    if (value.load == Opcode::load_word && form == kInteger) {
      return computed(form, "loadIntegers<unsigned>", from, {{Pipe::kMain, 1, 1}});
    }
    const MemoryForm memory = memoryFormOf(value.load);
    return computed(form, memory.load, from, memory.stages);
  }

  Argument made(Value& value, RegisterForm form) {
    static const char* const kNames[] = {"floats", "halves", "masks", "integers"};
    if (value.shared) return {kNames[form] + ("(n, " + sharedName(value)) + ")", {}};
    const auto has = [&value](RegisterForm other) { return value.forms[other].has_value(); };
    const bool in_memory = !has(kFloat) && !has(kHalf) && !has(kMask) && !has(kInteger);
    if (in_memory) {
      const bool word = value.load == Opcode::load_word;
      const RegisterForm native =
          word && (form == kInteger || form == kMask) ? kInteger : memoryFormOf(value.load).form;
      value.forms[native] = brought(value, native);
      if (native == form) return *value.forms[native];
    }
    if (form == kFloat && has(kHalf)) return computed(form, "floats", {as(value, kHalf)}, {{Pipe::kAux, 1, 2}});
    if (form == kFloat) {
      return computed(form, "floats", {as(value, kInteger)}, {{Pipe::kMain, 1, 1}, {Pipe::kMain, 1, 2}});
    }
    if (form == kHalf) return computed(form, "halves", {as(value, kFloat)}, {{Pipe::kAux, 1, 2}});
    if (form == kMask) {
      return computed(form, "masks", {as(value, kInteger)}, {{Pipe::kMain, 2, 1}, {Pipe::kMain, 1, 2}});
    }
    if (has(kMask)) return computed(form, "integers", {as(value, kMask)}, {{Pipe::kMain, 2, 1}});
    return computed(form, "integers", {as(value, kFloat)}, {{Pipe::kMain, 1, 1}});
  }
  Argument as(Value& value, RegisterForm form) {
    if (!value.forms[form]) {
      const Argument argument = made(value, form);
      if (value.shared) return argument;
      value.forms[form] = argument;
    }
    return *value.forms[form];
  }
  std::vector<Argument> allAs(const std::vector<Value*>& values, RegisterForm form) {
    std::vector<Argument> all;
    for (Value* value : values) all.push_back(as(*value, form));
    return all;
  }

  void add(std::size_t i) {
    const Step& step = steps_[i];
    if (step.opcode == Opcode::nothing) return;
    if (step.opcode == Opcode::aim) {
      aimed_ = step.number;
    } else if (isStore(step.opcode)) {
      store(step.opcode, step.number, slots_[step.from[0]]);
    } else if (step.opcode == Opcode::constant || isLoad(step.opcode)) {
      slots_[step.to] = loaded(step);
    } else {
      slots_[step.to] = result(i);
      if (aimed_) store(Opcode::store_word, *aimed_, slots_[step.to]);
      aimed_.reset();
    }
  }

  static Value of(RegisterForm form, Argument argument) {
    Value value;
    value.forms[form] = std::move(argument);
    value.truth = form == kMask;
    value.half = form == kHalf;
    return value;
  }

  Value result(std::size_t i) {
    const Step& step = steps_[i];
    std::vector<Value*> from;
    for (const unsigned slot : step.from) from.push_back(&slots_[slot]);
    if (step.opcode == Opcode::select) return selected(from);
    if (step.opcode == Opcode::round_f16) return of(kHalf, as(*from[0], kHalf));
    if (step.opcode == Opcode::round_bf16) return roundedToBfloat(*from[0]);
    const Function function = functionOf(step.opcode);
    if (function.from != Number::kFloat) return ofIntegers(step.opcode, function, from);
    const auto is = [&](const Vector& vector) { return vector.opcode == step.opcode; };
    const Vector* const vector = std::find_if(std::begin(kVectors), std::end(kVectors), is);
    if (vector != std::end(kVectors)) return inVectors(*vector, from, inHalves(i, from) ? kHalf : kFloat);
    return ofFloats(step.opcode, function, from);
  }

  // Whether halves yield the same bits: what is exact, and what is rounded to half by all that read it.
  bool inHalves(std::size_t i, const std::vector<Value*>& from) const {
    const Opcode opcode = steps_[i].opcode;
    const bool exact = isOneOf(opcode, {Opcode::abs_f32, Opcode::negate_f32, Opcode::maximum_f32, Opcode::minimum_f32});
    const bool rounds =
        isOneOf(opcode, {Opcode::add_f32, Opcode::subtract_f32, Opcode::multiply_f32, Opcode::square_f32});
    bool varies = false;
    for (const Value* value : from) {
      if (!value->holdsHalves()) return false;
      varies = varies || !value->constant;
    }
    return varies && (exact || (rounds && isRoundedNext(i)));
  }
  bool isRoundedNext(std::size_t i) const {
    bool read = false;
    for (std::size_t next = i + 1; next < steps_.size(); ++next) {
      const Step& step = steps_[next];
      const bool reads = std::find(step.from.begin(), step.from.end(), steps_[i].to) != step.from.end();
      if (reads && step.opcode != Opcode::round_f16) return false;
      read = read || reads;
      const bool writes = !isStore(step.opcode) && step.opcode != Opcode::aim && step.opcode != Opcode::nothing;
      if (writes && step.to == steps_[i].to) break;
    }
    return read && !aimed_;
  }

  Value inVectors(const Vector& vector, const std::vector<Value*>& from, RegisterForm form) {
    const bool largest = vector.opcode == Opcode::maximum_f32,
               bounded = largest || vector.opcode == Opcode::minimum_f32;
    const auto isBound = [](const Value* value) {
      return value->constant && !std::isnan(bitsOf<float>(*value->constant));
    };
    const auto bound = bounded ? std::find_if(from.begin(), from.end(), isBound) : from.end();
    const unsigned at_once = form == kHalf ? kMostElements : 2;
    if (bound != from.end()) {
      Value& other = *(bound == from.begin() ? from[1] : from[0]);
      if ((*bound)->constant == 0u) {
        return of(form, computed(form, largest ? "atLeastZero" : "atMostZero", {as(other, form)},
                                 {{Pipe::kAux, kZeroBound, at_once}}));
      }
      return of(form, computed(form, largest ? "atLeast" : "atMost", {as(other, form), as(**bound, form)},
                               {{Pipe::kAux, kBound, at_once}}));
    }
    std::vector<Argument> arguments = allAs(from, form);
    if (vector.opcode == Opcode::square_f32) arguments.push_back(arguments[0]);
    const RegisterForm to = vector.to == kMask ? kMask : form;
    return of(to, computed(to, vector.call, arguments, {{Pipe::kAux, vector.count, at_once}}));
  }

  Value ofFloats(Opcode opcode, const Function& function, const std::vector<Value*>& from) {
    std::vector<Argument> arguments = allAs(from, kFloat);
    if (opcode == Opcode::convert_f32_bool) {
      arguments.push_back(constant(0.0f));
      return of(kMask, computed(kMask, "ne", arguments, {{Pipe::kAux, 1, 2}}));
    }
    arguments.insert(arguments.begin(), {function.name, {}});
    if (function.to == Number::kInteger) {
      return of(kInteger, computed(kInteger, "each", arguments,
                                   {{Pipe::kAux, kToIntegerAux, 1}, {Pipe::kMain, kToIntegerMain, 1}}));
    }
    const auto count = static_cast<unsigned>(cycles::arithmetic(function.work, Kind::Float));
    const bool call = function.work == Work::Library || function.work == Work::Power;
    const Stage rounding{Pipe::kAux, 1, 1}, work{call ? Pipe::kBoth : Pipe::kAux, count, 2};
    return of(kFloat, computed(kFloat, "each", arguments, {function.work == Work::Simple ? rounding : work}));
  }

  Value ofIntegers(Opcode opcode, const Function& function, const std::vector<Value*>& from) {
    const bool masks = std::any_of(from.begin(), from.end(), [](const Value* value) { return value->isMask(); });
    const bool truths = std::all_of(from.begin(), from.end(), [](const Value* value) { return value->truth; });
    if (function.to == Number::kFloat) return convertedToFloat(function, *from[0]);
    if (masks && truths && isOneOf(opcode, {Opcode::and_u32, Opcode::or_u32, Opcode::not_bool})) {
      const char* const name = opcode == Opcode::and_u32 ? "both" : opcode == Opcode::or_u32 ? "either" : "neither";
      return of(kMask, computed(kMask, name, allAs(from, kMask), {{Pipe::kAux, 1, 2}}));
    }
    const bool call = function.work == Work::Division || function.work == Work::Power;
    std::vector<Argument> arguments = allAs(from, kInteger);
    arguments.insert(arguments.begin(), {function.name, {}});
    Value value = of(kInteger, computed(kInteger, "each", arguments,
                                        {{call ? Pipe::kBoth : Pipe::kMain, integerCount(opcode, function), 1}}));
    const bool logical = isOneOf(opcode, {Opcode::and_u32, Opcode::or_u32, Opcode::xor_u32, Opcode::not_bool});
    const bool compares = function.work == Work::Comparison && opcode != Opcode::sign_s32;
    value.truth = compares || (truths && logical);
    return value;
  }
  Value convertedToFloat(const Function& function, Value& from) {
    const bool mask = from.isMask();
    Value value = of(
        kFloat, mask ? computed(kFloat, "keepWhere", {as(from, kMask), constant(1.0f)}, {{Pipe::kAux, 1, 2}})
                     : computed(kFloat, "eachOfBits", {{function.name, {}}, as(from, kFloat)}, {{Pipe::kAux, 1, 1}}));
    value.half = from.truth;
    return value;
  }
  static unsigned integerCount(Opcode opcode, const Function& function) {
    for (const auto& [other, count] : kIntegerCounts) {
      if (other == opcode) return count;
    }
    if (function.work == Work::Comparison) return kMove;
    return static_cast<unsigned>(cycles::arithmetic(function.work, Kind::Integer));
  }

  Value selected(const std::vector<Value*>& from) {
    Value &condition = *from[0], &yes = *from[1], &no = *from[2];
    const bool masks = yes.isMask() || no.isMask();
    if (condition.truth && yes.truth && no.truth && (masks || condition.isMask())) {
      return of(kMask, computed(kMask, "select", allAs(from, kMask), {{Pipe::kAux, kSelect, 2}}));
    }
    const bool floats = condition.isMask() || yes.isFloat() || no.isFloat();
    if (!condition.truth || masks || yes.isInteger() || no.isInteger() || !floats) {
      return of(kInteger, computed(kInteger, "select", allAs(from, kInteger), {{Pipe::kMain, kMove, 1}}));
    }
    const Argument where = as(condition, kMask);
    Value value = of(kFloat, chosen(where, yes, no));
    value.half = yes.holdsHalves() && no.holdsHalves();
    return value;
  }
  Argument chosen(const Argument& where, Value& yes, Value& no) {
    const std::vector<Stage> one = {{Pipe::kAux, 1, 2}};
    if (no.constant == 0u) return computed(kFloat, "keepWhere", {where, as(yes, kFloat)}, one);
    if (yes.constant == 0u) return computed(kFloat, "clearWhere", {where, as(no, kFloat)}, one);
    return computed(kFloat, "select", {where, as(yes, kFloat), as(no, kFloat)}, {{Pipe::kAux, kSelect, 2}});
  }

  Value roundedToBfloat(Value& from) {
    const std::vector<Stage> stages = {
        {Pipe::kMain, 1, 1}, {Pipe::kMain, kRoundBfloat, 1}, {Pipe::kMain, 1, 1}, {Pipe::kMain, 1, 2}};
    Value value = of(kFloat, computed(kFloat, "each", {{"functions::round_bf16", {}}, as(from, kFloat)}, stages));
    value.bfloat = true;
    return value;
  }

  void store(Opcode opcode, unsigned output, Value& value) {
    const std::string to = pointer(true, memoryFormOf(opcode).width, outputs_[output], true);
    // A lone one is merged into a word of memory.
    const auto whole = [this](unsigned at_once) {
      const bool lone = elements_ < at_once;
      return Stage{Pipe::kMain, lone ? static_cast<unsigned>(cycles::kShortStore) : 1, lone ? 1 : at_once};
    };
    switch (opcode) {
      case Opcode::store_word: return storeWord(value, to);
      case Opcode::store_f16:
        return store("storeHalves", as(value, kHalf), to,
                     {elements_ == 1 ? whole(2) : Stage{Pipe::kMain, 1, kMostElements}});
      case Opcode::store_bf16: {
        const Argument rounded = value.bfloat ? as(value, kFloat) : *roundedToBfloat(value).forms[kFloat];
        return store("storeBfloats", rounded, to, {{Pipe::kAux, 1, 2}, whole(2)});
      }
      case Opcode::store_s16:
      case Opcode::store_u16: {
        const Stage merged{Pipe::kMain, 1, 2};
        const std::vector<Stage> stages = elements_ == 1 ? std::vector{whole(2)} : std::vector{merged, whole(2)};
        return store("storeShorts", as(value, kInteger), to, stages);
      }
      default: return storeBytes(value, to, whole(kMostElements));
    }
  }
  void storeWord(Value& value, const std::string& to) {
    if (value.isInteger() || value.isMask()) {
      return store("storeIntegers", as(value, kInteger), to, {{Pipe::kMain, 1, 1}});
    }
    store("storeFloats", as(value, kFloat), to, {{Pipe::kMain, 1, 2}});
  }
  // Three merge four. Of masks, which are moved before, all bits but one are cleared in the merged word.
  void storeBytes(Value& value, const std::string& to, Stage stored) {
    std::vector<Stage> stages;
    if (value.isMask()) {
      stages = {{Pipe::kMain, 1, 1}, {Pipe::kMain, 1, elements_ == kMostElements ? kMostElements : 1}};
    }
    if (elements_ == kMostElements) stages.push_back({Pipe::kMain, 3, kMostElements});
    stages.push_back(stored);
    store("storeBytes", as(value, value.isMask() ? kMask : kInteger), to, std::move(stages));
  }

  const std::vector<Step>& steps_;
  const std::vector<Operand>& inputs_;
  const std::vector<unsigned>& outputs_;
  unsigned elements_;
  ChainCode code_;
  std::map<std::string, std::string> shared_;
  std::array<Value, chain::kMaxSlots> slots_;
  std::optional<unsigned> aimed_;
};

}  // namespace

bool isShared(const Step& step, const std::vector<Operand>& inputs) {
  if (step.opcode == Opcode::constant) return true;
  if (!isLoad(step.opcode)) return false;
  const Operand::Place place = inputs[step.number].place;
  return place == Operand::Place::kConstant || place == Operand::Place::kSingle;
}

ChainCode chainCode(const std::vector<Step>& steps, const std::vector<Operand>& inputs,
                    const std::vector<unsigned>& outputs, unsigned elements) {
  return Body(steps, inputs, outputs, elements).take();
}

}  // namespace snnjax::elementwise
