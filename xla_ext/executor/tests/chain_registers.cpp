// The functions that generated code calls take as many operations of vectors as their cost says: each vector is
// replaced by one that counts them.
#include <algorithm>
#include <optional>
#include <string>

#include "check.hpp"
#include "kernels/counting.hpp"

#define float2 counting::Float2
#define half2 counting::Half2
#define half4 counting::Half4
#define int2 counting::Int2
#include "poplar_kernels/elementwise/elementwise_chain_registers.hpp"
#undef float2
#undef half2
#undef half4
#undef int2

#include "elementwise/chain_code.hpp"
#include "executor/plan/elementwise_program.hpp"

namespace {

using namespace snnjax::executor;
using namespace snnjax::elementwise;
namespace chain = snnjax::chain;
using Operand = ElementwiseProgram::Operand;

constexpr unsigned kBound = 0x40000000;  // 2
const std::string kUnary[] = {"abs.f32", "negate.f32", "square.f32", "sign.f32", "is_finite.f32"};

// The aux instructions of `operation` on four elements of a type, the second of them `bits` where given.
unsigned countedBy(const std::string& operation, const std::string& call, const std::string& type,
                   bool is_rounded = false, std::optional<unsigned> bits = {}) {
  Instruction instruction;
  const auto step = [&](const std::string& text, std::vector<std::int64_t> slots) {
    instruction.texts.push_back(text);
    instruction.ints.push_back(std::move(slots));
  };
  step("load." + type, {0, 0});
  step("load." + type, {1, 1});
  const bool is_unary = std::ranges::find(kUnary, operation) != std::end(kUnary);
  step(operation, is_unary ? std::vector<std::int64_t>{2, 0} : std::vector<std::int64_t>{2, 0, 1});
  if (is_rounded) step("round.f16", {2, 2});
  const Operand second = bits ? Operand{Operand::Place::kConstant, 0, *bits} : Operand{Operand::Place::kRow, 1, 0};
  const ChainCode code = chainCode(elementwiseProgram(instruction).steps(), {{}, second}, {}, kMostElements);
  for (const ChainLine& line : code.lines) {
    if (line.text.find(" = " + call + "(") == std::string::npos) continue;
    unsigned sum = 0;
    for (const Stage& stage : line.stages) sum += stage.count * kMostElements / stage.at_once;
    return sum;
  }
  check::that(false, (call + " is called").c_str(), __FILE__, __LINE__);
  return 0;
}

template <class Function, class... Arguments>
unsigned operationsOf(Function&& function, const Arguments&... arguments) {
  counting::operations = 0;
  function(arguments...);
  return counting::operations;
}

constexpr chain::Count<4> kFour;

#define CHECK_UNARY(operation, name, type, registers, ...)                  \
  CHECK_EQUAL(countedBy(operation, #name, type __VA_OPT__(, ) __VA_ARGS__), \
              operationsOf([](const auto& x) { return chain::name(x); }, chain::registers(kFour, kBound)))
#define CHECK_BINARY(operation, name, type, registers, ...)                 \
  CHECK_EQUAL(countedBy(operation, #name, type __VA_OPT__(, ) __VA_ARGS__), \
              operationsOf([](const auto& x) { return chain::name(x, x); }, chain::registers(kFour, kBound)))

void functionsOfFloats() {
  CHECK_UNARY("abs.f32", absolute, "f32", floats);
  CHECK_UNARY("negate.f32", negate, "f32", floats);
  CHECK_UNARY("sign.f32", sign, "f32", floats);
  CHECK_UNARY("is_finite.f32", isFinite, "f32", floats);
  CHECK_BINARY("square.f32", multiply, "f32", floats);
  CHECK_BINARY("add.f32", add, "f32", floats);
  CHECK_BINARY("subtract.f32", subtract, "f32", floats);
  CHECK_BINARY("multiply.f32", multiply, "f32", floats);
  CHECK_BINARY("maximum.f32", maximum, "f32", floats);
  CHECK_BINARY("minimum.f32", minimum, "f32", floats);
  CHECK_BINARY("maximum.f32", atLeast, "f32", floats, false, kBound);
  CHECK_BINARY("minimum.f32", atMost, "f32", floats, false, kBound);
  CHECK_UNARY("maximum.f32", atLeastZero, "f32", floats, false, 0);
  CHECK_UNARY("minimum.f32", atMostZero, "f32", floats, false, 0);
}

void comparisons() {
  CHECK_BINARY("eq.f32", eq, "f32", floats);
  CHECK_BINARY("ne.f32", ne, "f32", floats);
  CHECK_BINARY("lt.f32", lt, "f32", floats);
  CHECK_BINARY("le.f32", le, "f32", floats);
  CHECK_BINARY("gt.f32", gt, "f32", floats);
  CHECK_BINARY("ge.f32", ge, "f32", floats);
}

void functionsOfHalves() {
  CHECK_UNARY("abs.f32", absolute, "f16", halves);
  CHECK_UNARY("negate.f32", negate, "f16", halves);
  CHECK_BINARY("square.f32", multiply, "f16", halves, true);
  CHECK_BINARY("add.f32", add, "f16", halves, true);
  CHECK_BINARY("subtract.f32", subtract, "f16", halves, true);
  CHECK_BINARY("multiply.f32", multiply, "f16", halves, true);
  CHECK_BINARY("maximum.f32", maximum, "f16", halves);
  CHECK_BINARY("minimum.f32", atMost, "f16", halves, false, kBound);
  CHECK_UNARY("maximum.f32", atLeastZero, "f16", halves, false, 0);
}

// What chain_code.cpp says of masks: 1 for each pair, 3 for a select.
void masks() {
  const auto x = chain::masks(kFour, 1);
  const auto f = chain::floats(kFour, kBound);
  CHECK_EQUAL(operationsOf([](const auto& m) { return chain::both(m, m); }, x), 2u);
  CHECK_EQUAL(operationsOf([](const auto& m) { return chain::either(m, m); }, x), 2u);
  CHECK_EQUAL(operationsOf([](const auto& m) { return chain::neither(m); }, x), 2u);
  CHECK_EQUAL(operationsOf([](const auto& m, const auto& v) { return chain::select(m, v, v); }, x, f), 6u);
  CHECK_EQUAL(operationsOf([](const auto& m) { return chain::select(m, m, m); }, x), 6u);
  CHECK_EQUAL(operationsOf([](const auto& m, const auto& v) { return chain::keepWhere(m, v); }, x, f), 2u);
  CHECK_EQUAL(operationsOf([](const auto& m, const auto& v) { return chain::clearWhere(m, v); }, x, f), 2u);
}

}  // namespace

int main() {
  functionsOfFloats();
  comparisons();
  functionsOfHalves();
  masks();
  return check::failures == 0 ? 0 : 1;
}
