// A call of an own op in a plan: its arrays and static values by the names of the op's table (snnjax/_schema.py).
#pragma once

#include "executor/lowering.hpp"
#include "schema/bind.hpp"

namespace snnjax::executor::targets {

// An array of a call, which may be absent.
using Value = std::optional<ValueId>;

// Throws an error about a call.
[[noreturn]] void refuseCall(const Instruction& instruction, const std::string& name, const std::string& expected,
                             const std::string& actual);

// What a check of the table calls to throw.
inline auto refusal(const Instruction& instruction) {
  return [&](const std::string& name, const std::string& expected, const std::string& actual) {
    refuseCall(instruction, name, expected, actual);
  };
}

// Throws unless a number of an enumeration, or of slots, is from 0 on and below a limit.
unsigned knownNumber(const Instruction& instruction, const char* name, std::int64_t number, std::int64_t limit);

// The attributes of a call, by name. Each reader throws unless the text is such numbers.
class Attributes {
 public:
  // Throws unless the call was made with the tables that this library was built with.
  explicit Attributes(const Instruction& instruction);

  // The number of layers that a static value is given for.
  std::size_t count(const char* name) const { return numbers<std::int64_t>(name).size(); }

  // The values of `all` are those of an attribute, one for each; those of an enumeration are below a limit.
  template <typename Record, typename T>
  void read(const char* name, std::vector<Record>& all, T Record::* field, std::int64_t limit = 0) const {
    using Stored = std::conditional_t<std::is_same_v<T, float>, double, std::int64_t>;
    const std::vector<Stored> stored = numbers<Stored>(name);
    if (stored.size() != all.size()) {
      refuseCall(instruction_, name, "hold one number a layer, " + std::to_string(all.size()),
                 std::to_string(stored.size()));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if constexpr (std::is_enum_v<T>) knownNumber(instruction_, name, stored[i], limit);
      all[i].*field = static_cast<T>(stored[i]);
    }
  }

 private:
  bool has(const std::string& name) const;
  template <typename Number>
  std::vector<Number> numbers(const char* name) const;

  const Instruction& instruction_;
};

// The operands or results of a call as its attribute names them.
template <typename Root>
Root bound(const Instruction& instruction, const std::vector<ValueId>& values, const char* names,
           std::size_t layers = 1) {
  const auto refuse = refusal(instruction);
  const auto places = schema::placesOf(Root::kLeaves, attribute(instruction, names), layers, refuse);
  return schema::filled<Root>(places, layers, values.size(), [&](std::size_t i) { return Value(values[i]); }, refuse);
}

// A call of an op without layers.
template <typename From, typename To>
struct Call {
  explicit Call(const Instruction& instruction)
      : attributes(instruction),
        from(bound<From>(instruction, instruction.inputs, "operand_names")),
        to(bound<To>(instruction, instruction.outputs, "result_names")) {}

  Attributes attributes;
  From from;
  To to;
};

}  // namespace snnjax::executor::targets
