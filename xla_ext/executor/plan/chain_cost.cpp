// What an elementwise program costs a worker as C++ code of its own.
//
// The codelet interprets a program; what counts is C++ generated for it and compiled by popc when the graph is built,
// as PopLibs does with fused expressions (popops::map). Its loop takes four elements at a time, all values in
// registers: two float2, one half4, four integers. So rows are read and written once, and independent instructions fill
// each other's bundles. The bundles are counted here by the rules of issue_slots.hpp: one main and one aux instruction
// each, brnzdec closes the loop, no hardware loops and no dual loads. Per instruction:
//   - float2: load and store 1 main; sums, products, maxima, roundings, comparisons (all bits of a lane set or clear),
//     and, or 1 aux; select by such a mask 3 aux (and, andc, or), 1 if one side is 0; functions as PopLibs estimates
//     them (elementwise_cycles.hpp);
//   - half4: load and store 1 main; sums, products, maxima of halves that are rounded to half anyway 1 aux, the same
//     bits as through floats; to and from float2 1 aux a pair;
//   - integers, one by one: load 1, operation 2, comparison 2 main; two registers of the one kind reach the other only
//     through memory (a store each, one load) or by atom, 1 main each;
//   - bytes: load 1 main each; four are merged, 1 main each, and stored as a word. Alone, 16 and 8 bits take
//     kShortStore. A comparison of 4 floats stored as Booleans comes to 15, in PopLibs to 14.
//   - bfloat16, which the tile does not have: widened 1 aux a pair, rounded as integers, 8 main each.
// Seven pairs of float registers (of 16 registers two are zero) hold what is live; what does not fit is stored and
// loaded, 2 main a pair, constants only loaded. Eight rows have their pointers in registers, each further one loads it.
// No source of this project gives masks, atom, moves between the two kinds of registers, conversions of halves and the
// seven pairs: they are assumed.
#include "executor/plan/chain_cost.hpp"

#include <cstdint>
#include <optional>
#include <set>

#include "../../../poplar_kernels/elementwise_chain_ops.hpp"
#include "../../../poplar_kernels/issue_slots.hpp"
#include "executor/plan/bundles.hpp"

namespace snnjax::executor {
namespace {

using chain::Opcode;
using Step = ElementwiseProgram::Step;
using Operand = ElementwiseProgram::Operand;

constexpr unsigned kFour = 4;  // elements, at most
constexpr unsigned kRegisterPairs = 7, kPointers = 8;
constexpr unsigned kOneSelect = 1, kSelect = 3, kMove = 2;
constexpr unsigned kRoundBfloat = 8;  // two shifts, a mask, two sums; two for a NaN, one to clear
constexpr unsigned kOrder = 6;        // of total orders: both operands' magnitudes are flipped, then compared

// How registers hold the elements.
enum Form { kFloat, kHalf, kMask, kInteger, kForms };
using Times = std::array<unsigned, kFour>;  // the bundle from which on each element can be read

struct Arithmetic {
  enum class Type { kFloat, kSigned, kUnsigned } from, to;
  Work work;
};

template <class T>
constexpr Arithmetic::Type typeOf() {
  if constexpr (std::is_same_v<T, float>) return Arithmetic::Type::kFloat;
  return std::is_signed_v<T> ? Arithmetic::Type::kSigned : Arithmetic::Type::kUnsigned;
}

std::optional<Arithmetic> arithmeticOf(Opcode opcode) {
  switch (opcode) {
#define SNNJAX_CHAIN_CASE(name, suffix, From, To, work, expression) \
  case Opcode::name##_##suffix: return Arithmetic{typeOf<From>(), typeOf<To>(), Work::work};
    SNNJAX_CHAIN_UNARY(SNNJAX_CHAIN_CASE)
    SNNJAX_CHAIN_BINARY(SNNJAX_CHAIN_CASE)
#undef SNNJAX_CHAIN_CASE
    default: return {};
  }
}

bool isOneOf(Opcode opcode, std::initializer_list<Opcode> all) {
  return std::find(all.begin(), all.end(), opcode) != all.end();
}

// Every element alike: a constant, or a row of one element.
bool isShared(const Step& step, const std::vector<Operand>& inputs) {
  if (step.opcode == Opcode::constant) return true;
  if (!isLoad(step.opcode)) return false;
  const Operand::Place place = inputs[step.number].place;
  return place == Operand::Place::kConstant || place == Operand::Place::kSingle;
}

// A value in registers, or still in its row.
struct Value {
  std::array<std::optional<Times>, kForms> forms;
  Opcode load = Opcode::nothing;  // what brings it into registers
  std::optional<unsigned> constant;
  bool rounded = false;  // bfloat16 already
};

// The body of the loop for some elements.
class Body {
 public:
  Body(const std::vector<Step>& steps, const std::vector<Operand>& inputs, unsigned elements)
      : steps_(steps), inputs_(inputs), elements_(elements) {
    for (std::size_t i = 0; i < steps.size(); ++i) add(i);
  }

  // With as many more main instructions.
  unsigned slots(unsigned more) {
    bundles_.add(Pipe::kMain, more, 0);
    return bundles_.closed();
  }

 private:
  // `count` instructions for each `at_once` elements.
  Times each(Pipe pipe, unsigned count, unsigned at_once, const Times& ready) {
    Times done{};
    for (unsigned first = 0; first < elements_; first += at_once) {
      const unsigned last = std::min(first + at_once, elements_);
      const unsigned latest = *std::max_element(ready.begin() + first, ready.begin() + last);
      std::fill(done.begin() + first, done.begin() + last, bundles_.add(pipe, count, latest));
    }
    return done;
  }
  Times throughMemory(const Times& integers) { return each(Pipe::kMain, 1, 2, each(Pipe::kMain, 1, 1, integers)); }

  static Times latest(const Times& a, const Times& b) {
    Times later{};
    for (unsigned i = 0; i < kFour; ++i) later[i] = std::max(a[i], b[i]);
    return later;
  }

  Times made(Value& value, Form form) {
    const auto has = [&value](Form other) { return value.forms[other].has_value(); };
    const bool half = value.load == Opcode::load_f16, word = value.load == Opcode::load_word;
    switch (form) {
      case kHalf: return half ? each(Pipe::kMain, 1, kFour, {}) : each(Pipe::kAux, 1, 2, as(value, kFloat));
      case kMask: return throughMemory(each(Pipe::kMain, 1, 1, as(value, kInteger)));
      case kInteger:
        if (has(kFloat)) return each(Pipe::kMain, 1, 1, *value.forms[kFloat]);
        if (has(kMask)) return each(Pipe::kMain, 2, 1, *value.forms[kMask]);
        return each(Pipe::kMain, 1, 1, half ? as(value, kFloat) : Times{});
      default: break;
    }
    if (has(kMask)) return *value.forms[kMask];
    if (has(kHalf) || half) return each(Pipe::kAux, 1, 2, as(value, kHalf));
    if (has(kInteger)) return throughMemory(*value.forms[kInteger]);
    const Times loaded = each(Pipe::kMain, 1, 2, {});
    if (word) return loaded;
    return value.load == Opcode::load_bf16 ? each(Pipe::kAux, 1, 2, loaded) : throughMemory(loaded);
  }
  Times as(Value& value, Form form) {
    if (!value.forms[form]) value.forms[form] = made(value, form);
    return *value.forms[form];
  }
  Times allAs(const std::vector<Value*>& values, Form form) {
    Times ready{};
    for (Value* value : values) ready = latest(ready, as(*value, form));
    return ready;
  }

  static Value shared(const Step& step, const std::vector<Operand>& inputs) {
    Value value;
    value.load = step.opcode == Opcode::constant ? Opcode::nothing : step.opcode;
    if (step.opcode == Opcode::constant) value.constant = step.number;
    if (isLoad(step.opcode) && inputs[step.number].place == Operand::Place::kConstant) {
      value.constant = inputs[step.number].bits;
    }
    for (const Form form : {kFloat, kMask, kInteger}) value.forms[form] = Times{};
    const float number = chain::bitsOf<float>(value.constant.value_or(0));
    const bool is_half = value.constant ? chain::roundedToHalf(number) == number : step.opcode == Opcode::load_f16;
    if (is_half) value.forms[kHalf] = Times{};
    return value;
  }

  void add(std::size_t i) {
    const Step& step = steps_[i];
    if (step.opcode == Opcode::nothing) return;
    if (step.opcode == Opcode::aim) {
      aimed_ = true;
    } else if (isStore(step.opcode)) {
      store(step.opcode, slots_[step.from[0]]);
    } else if (isShared(step, inputs_)) {
      slots_[step.to] = shared(step, inputs_);
    } else if (isLoad(step.opcode)) {
      slots_[step.to] = {};
      slots_[step.to].load = step.opcode;
    } else {
      slots_[step.to] = result(i);
      if (aimed_) store(Opcode::store_word, slots_[step.to]);
      aimed_ = false;
    }
  }

  Value result(std::size_t i) {
    const Step& step = steps_[i];
    std::vector<Value*> from;
    for (const unsigned slot : step.from) from.push_back(&slots_[slot]);
    if (step.opcode == Opcode::select) return selected(from);
    if (step.opcode == Opcode::round_f16) return of(kHalf, as(*from[0], kHalf));
    if (step.opcode == Opcode::round_bf16) return roundedToBfloat(*from[0]);
    const Arithmetic arithmetic = arithmeticOf(step.opcode).value();
    if (arithmetic.from != Arithmetic::Type::kFloat) return ofIntegers(step.opcode, arithmetic, from);
    if (inHalves(i, from)) return of(kHalf, each(Pipe::kAux, 1, kFour, allAs(from, kHalf)));
    return ofFloats(step.opcode, arithmetic, allAs(from, kFloat));
  }

  static Value of(Form form, const Times& times) {
    Value value;
    value.forms[form] = times;
    return value;
  }

  // Whether halves yield the same bits: what is exact, and what is rounded to half by all that read it.
  bool inHalves(std::size_t i, const std::vector<Value*>& from) const {
    const Opcode opcode = steps_[i].opcode;
    const bool exact = isOneOf(opcode, {Opcode::abs_f32, Opcode::negate_f32, Opcode::maximum_f32, Opcode::minimum_f32});
    const bool rounds =
        isOneOf(opcode, {Opcode::add_f32, Opcode::subtract_f32, Opcode::multiply_f32, Opcode::square_f32});
    bool all_halves = false;
    for (const Value* value : from) {
      const bool half = value->forms[kHalf].has_value() || value->load == Opcode::load_f16;
      if (!half) return false;
      all_halves = all_halves || !value->constant;
    }
    return all_halves && (exact || (rounds && isRoundedNext(i)));
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
    return read;
  }

  Value ofFloats(Opcode opcode, const Arithmetic& arithmetic, const Times& ready) {
    const auto count = static_cast<unsigned>(cycles::arithmetic(arithmetic.work, Kind::Float));
    if (isOneOf(opcode, {Opcode::convert_f32_s32, Opcode::convert_f32_u32})) {
      return of(kInteger, each(Pipe::kMain, 1, 1, each(Pipe::kAux, 1, 1, ready)));
    }
    if (opcode == Opcode::is_finite_f32) return of(kMask, each(Pipe::kAux, 2, 2, ready));  // magnitude, comparison
    if (arithmetic.to != Arithmetic::Type::kFloat) return of(kMask, each(Pipe::kAux, 1, 2, ready));
    const bool call = arithmetic.work == Work::Library || arithmetic.work == Work::Power;
    return of(kFloat, each(call ? Pipe::kBoth : Pipe::kAux, count, 2, ready));
  }

  Value ofIntegers(Opcode opcode, const Arithmetic& arithmetic, const std::vector<Value*>& from) {
    const bool masks = std::any_of(from.begin(), from.end(), [](const Value* each) {
      return each->forms[kMask] && !each->forms[kInteger] && !each->constant;
    });
    if (isOneOf(opcode, {Opcode::convert_s32_f32, Opcode::convert_u32_f32})) {
      if (masks) return of(kFloat, each(Pipe::kAux, 1, 2, as(*from[0], kMask)));  // and with 1
      return of(kFloat, each(Pipe::kAux, 1, 1, as(*from[0], kFloat)));
    }
    const bool bitwise = isOneOf(opcode, {Opcode::and_u32, Opcode::or_u32, Opcode::not_bool});
    if (masks && bitwise) return of(kMask, each(Pipe::kAux, 1, 2, allAs(from, kMask)));
    const bool total = isOneOf(opcode, {Opcode::eq_total_f32, Opcode::ne_total_f32, Opcode::lt_total_f32,
                                        Opcode::le_total_f32, Opcode::gt_total_f32, Opcode::ge_total_f32});
    const bool call = arithmetic.work == Work::Division || arithmetic.work == Work::Power;
    const auto slots = static_cast<unsigned>(cycles::arithmetic(arithmetic.work, Kind::Integer));
    const unsigned count = total ? kOrder : arithmetic.work == Work::Comparison ? kMove : slots;
    return of(kInteger, each(call ? Pipe::kBoth : Pipe::kMain, count, 1, allAs(from, kInteger)));
  }

  Value selected(const std::vector<Value*>& from) {
    Value &condition = *from[0], &yes = *from[1], &no = *from[2];
    const auto isInteger = [](const Value& value) {
      const bool narrow = value.load != Opcode::nothing && value.load != Opcode::load_word &&
                          value.load != Opcode::load_f16 && value.load != Opcode::load_bf16;
      return (value.forms[kInteger] || narrow) && !value.forms[kFloat];
    };
    const bool mask = condition.forms[kMask] && !condition.forms[kInteger];
    const bool integers =
        isInteger(yes) || isInteger(no) ||
        (!mask && !yes.forms[kFloat] && !no.forms[kFloat] && yes.load != Opcode::load_f16 && !yes.forms[kHalf]);
    if (integers) return of(kInteger, each(Pipe::kMain, kMove, 1, allAs(from, kInteger)));
    const Times ready = latest(as(condition, kMask), latest(as(yes, kFloat), as(no, kFloat)));
    const unsigned count = yes.constant == 0u || no.constant == 0u ? kOneSelect : kSelect;
    return of(kFloat, each(Pipe::kAux, count, 2, ready));
  }

  Value roundedToBfloat(Value& from) {
    Value value = of(kFloat, throughMemory(each(Pipe::kMain, kRoundBfloat, 1, as(from, kInteger))));
    value.rounded = true;
    return value;
  }

  void store(Opcode opcode, Value& value) {
    switch (opcode) {
      case Opcode::store_word: return storeWord(value);
      case Opcode::store_f16: return storeShort(as(value, kHalf), kFour);
      case Opcode::store_bf16: {
        const bool exact = value.rounded || value.load == Opcode::load_bf16;
        const Times rounded = exact ? as(value, kFloat) : *roundedToBfloat(value).forms[kFloat];
        return storeShort(each(Pipe::kAux, 1, 2, rounded), 2);
      }
      case Opcode::store_s16:
      case Opcode::store_u16: return storeShort(each(Pipe::kMain, 1, 2, as(value, kInteger)), 2);
      default: return storeBytes(value);
    }
  }
  void storeWord(Value& value) {
    const bool integers = value.forms[kInteger] && !value.forms[kFloat];
    if (integers || value.forms[kMask]) {
      each(Pipe::kMain, 1, 1, as(value, kInteger));
    } else {
      each(Pipe::kMain, 1, 2, as(value, kFloat));
    }
  }
  void storeShort(const Times& ready, unsigned at_once) {
    each(Pipe::kMain, elements_ == 1 ? static_cast<unsigned>(cycles::kShortStore) : 1, at_once, ready);
  }
  // The bits of a mask are cleared but one in the merged word.
  void storeBytes(Value& value) {
    const bool mask = value.forms[kMask] && !value.forms[kInteger];
    const Times ready = mask ? each(Pipe::kMain, 1, 1, *value.forms[kMask]) : as(value, kInteger);
    if (elements_ < kFour) {
      each(Pipe::kMain, static_cast<unsigned>(cycles::kShortStore) + (mask ? 1 : 0), 1, ready);
    } else {
      each(Pipe::kMain, mask ? 2 : 1, kFour, each(Pipe::kMain, 1, 1, ready));
    }
  }

  const std::vector<Step>& steps_;
  const std::vector<Operand>& inputs_;
  unsigned elements_;
  Bundles bundles_;
  std::array<Value, chain::kMaxSlots> slots_;
  bool aimed_ = false;
};

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

unsigned rowsOf(const std::vector<Step>& steps, const std::vector<Operand>& inputs) {
  std::set<std::pair<bool, unsigned>> rows;
  for (const Step& step : steps) {
    if (isLoad(step.opcode) && inputs[step.number].place == Operand::Place::kRow) rows.emplace(true, step.number);
    if (isStore(step.opcode) || step.opcode == Opcode::aim) rows.emplace(false, step.number);
  }
  return static_cast<unsigned>(rows.size());
}

}  // namespace

ChainCost chainCost(const std::vector<Step>& steps, const std::vector<Operand>& inputs) {
  const Live live = liveIn(steps, inputs);
  const unsigned rows = rowsOf(steps, inputs), loaded = rows > kPointers ? rows - kPointers : 0;
  const auto slots = [&](unsigned elements) {
    const unsigned pairs = (elements + 1) / 2;
    return Body(steps, inputs, elements).slots(spills(live, pairs) + loaded);
  };
  ChainCost cost;
  cost.pointers = 2 * (rows + live.shared);
  cost.two = slots(2);
  cost.one = std::min(slots(1), cost.two);
  cost.four = std::min(slots(kFour), 2 * cost.two - 1);
  return cost;
}

}  // namespace snnjax::executor
