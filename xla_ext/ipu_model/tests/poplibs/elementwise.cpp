// popops::map and its functions against scalar host references, over shapes, types and numbers of tiles.
#include <algorithm>
#include <cmath>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <poputil/exceptions.hpp>

#include "poplar_kernels/elementwise/elementwise_chain_ops.hpp"
#include "poplibs/program.hpp"

using namespace poplibs_test;
namespace e = popops::expr;

namespace {

// NaN equals NaN.
bool near(float a, float b, float tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

void checkNear(const std::vector<float>& got, const std::vector<float>& expected, float tolerance, const char* what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    check::that(near(got[i], expected[i], tolerance), what, __FILE__, __LINE__, check::both(got[i], expected[i]));
  }
}

Tensor inFloats(Run& run, const Tensor& t) { return popops::cast(run.graph, t, poplar::FLOAT, run.prog); }

struct UnaryCase {
  e::UnaryOpType op;
  float (*expected)(float);
  const char* name;
};

void unaryFunctionsMatchTheHost() {
  using enum e::UnaryOpType;
  const std::vector<UnaryCase> cases = {
      {ABSOLUTE, [](float x) { return std::abs(x); }, "abs"},
      {ASIN, [](float x) { return std::asin(x); }, "asin"},
      {CBRT, [](float x) { return std::cbrt(x); }, "cbrt"},
      {CEIL, [](float x) { return std::ceil(x); }, "ceil"},
      {COS, [](float x) { return std::cos(x); }, "cos"},
      {ERF, [](float x) { return std::erf(x); }, "erf"},
      {EXPONENT, [](float x) { return std::exp(x); }, "exp"},
      {EXPONENT_MINUS_ONE, [](float x) { return std::expm1(x); }, "expm1"},
      {FLOOR, [](float x) { return std::floor(x); }, "floor"},
      {GELU_ERF, [](float x) { return 0.5F * x * (1 + std::erf(x / std::sqrt(2.0F))); }, "gelu"},
      {IS_FINITE, [](float x) { return std::isfinite(x) ? 1.0F : 0.0F; }, "isfinite"},
      {IS_INF, [](float x) { return std::isinf(x) ? 1.0F : 0.0F; }, "isinf"},
      {IS_NAN, [](float x) { return std::isnan(x) ? 1.0F : 0.0F; }, "isnan"},
      {INVERSE, [](float x) { return 1 / x; }, "inverse"},
      {LOGARITHM, [](float x) { return std::log(x); }, "log"},
      {LOGARITHM_ONE_PLUS, [](float x) { return std::log1p(x); }, "log1p"},
      {NEARBY_INT, [](float x) { return std::nearbyint(x); }, "nearbyint"},
      {NEGATE, [](float x) { return -x; }, "neg"},
      {RELU, [](float x) { return x <= 0 ? 0 : x; }, "relu"},
      {ROUND, [](float x) { return std::round(x); }, "round"},
      {RSQRT, [](float x) { return 1 / std::sqrt(x); }, "rsqrt"},
      {SIGMOID, [](float x) { return 1 / (1 + std::exp(-x)); }, "sigmoid"},
      {SIGNUM, [](float x) { return x > 0   ? 1.0F
                                    : x < 0 ? -1.0F
                                            : x; }, "signum"},
      {SIN, [](float x) { return std::sin(x); }, "sin"},
      {SQRT, [](float x) { return std::sqrt(x); }, "sqrt"},
      {SQUARE, [](float x) { return x * x; }, "square"},
      {TAN, [](float x) { return std::tan(x); }, "tan"},
      {TANH, [](float x) { return std::tanh(x); }, "tanh"},
      {TRUNC, [](float x) { return std::trunc(x); }, "trunc"},
  };
  for (const poplar::Type& type : {poplar::FLOAT, poplar::HALF}) {
    const bool is_half = type == poplar::HALF;
    Run run(7);
    std::vector<float> values = randomFloats(53, 1);
    values.insert(values.end(), {0.0F, -0.0F, INFINITY, -INFINITY, NAN});
    if (is_half) std::ranges::transform(values, values.begin(), snnjax::chain::roundedToHalf);
    const Tensor x = run.input(type, {values.size()}, values);
    std::vector<std::string> outs;
    for (const UnaryCase& one : cases)
      outs.push_back(run.output(inFloats(run, popops::map(run.graph, one.op, x, run.prog))));
    run.run();
    for (std::size_t c = 0; c < cases.size(); ++c) {
      std::vector<float> expected;
      for (const float value : values) expected.push_back(cases[c].expected(value));
      checkNear(run.read<float>(outs[c], values.size()), expected, is_half ? 2e-3F : 1e-6F, cases[c].name);
    }
  }
}

void binaryFunctionsBroadcast() {
  for (const unsigned tiles : kTileCounts) {
    Run run(tiles);
    const std::vector<float> a = randomFloats(3 * 11, tiles), b = randomFloats(11, tiles + 1),
                             c = randomFloats(3, tiles + 2, 0.5F, 2);
    const Tensor ta = run.input({3, 11}, a), tb = run.input({11}, b), tc = run.input({3, 1}, c);
    const auto sum = run.output(popops::add(run.graph, ta, tb, run.prog));
    const auto quotient = run.output(popops::div(run.graph, tb, tc, run.prog));
    const auto larger = run.output(popops::max(run.graph, ta, 0.25F, run.prog));
    const auto difference = run.output(popops::sub(run.graph, 2.0F, ta, run.prog));
    const auto power = run.output(popops::pow(run.graph, popops::abs(run.graph, ta, run.prog), tc, run.prog));
    run.run();
    std::vector<float> sums, quotients, largers, differences, powers;
    for (std::size_t i = 0; i < 33; ++i) {
      sums.push_back(a[i] + b[i % 11]);
      quotients.push_back(b[i % 11] / c[i / 11]);
      largers.push_back(std::max(a[i], 0.25F));
      differences.push_back(2 - a[i]);
      powers.push_back(std::pow(std::abs(a[i]), c[i / 11]));
    }
    checkNear(run.read<float>(sum, 33), sums, 0, "add");
    checkNear(run.read<float>(quotient, 33), quotients, 0, "div");
    checkNear(run.read<float>(larger, 33), largers, 0, "max");
    checkNear(run.read<float>(difference, 33), differences, 0, "sub");
    checkNear(run.read<float>(power, 33), powers, 1e-6F, "pow");
  }
}

// As XLA on the CPU: quotients by 0 have all bits set, remainders are the dividend.
void integersWrapAndShift() {
  Run run(7);
  const std::vector<int> a = {7, -7, 0x7fffffff, 1, -8, 5, 0, 12}, b = {2, 2, 1, 31, 1, 0, 3, -4};
  const Tensor ta = run.input({8}, a), tb = run.input({8}, b);
  const auto sum = run.output(popops::add(run.graph, ta, tb, run.prog));
  const auto quotient = run.output(popops::div(run.graph, ta, tb, run.prog));
  const auto rest = run.output(popops::rem(run.graph, ta, tb, run.prog));
  const auto left = run.output(popops::shiftLeft(run.graph, ta, tb, run.prog));
  const auto logical = run.output(popops::shiftRight(run.graph, ta, 1, run.prog));
  const auto arithmetic = run.output(popops::shiftRightSignExtend(run.graph, ta, 1, run.prog));
  const auto both = run.output(popops::bitwiseXnor(run.graph, ta, tb, run.prog));
  const auto bits = run.output(popops::popcount(run.graph, ta, run.prog));
  run.run();
  CHECK(run.read<int>(sum, 8) == std::vector<int>({9, -5, -0x7fffffff - 1, 32, -7, 5, 3, 8}));
  CHECK(run.read<int>(quotient, 8) == std::vector<int>({3, -3, 0x7fffffff, 0, -8, -1, 0, -3}));
  CHECK(run.read<int>(rest, 8) == std::vector<int>({1, -1, 0, 1, 0, 5, 0, 0}));
  CHECK(run.read<int>(left, 8) == std::vector<int>({28, -28, -2, -0x7fffffff - 1, -16, 5, 0, 0}));
  CHECK(run.read<int>(logical, 8) == std::vector<int>({3, 0x7ffffffc, 0x3fffffff, 0, 0x7ffffffc, 2, 0, 6}));
  CHECK(run.read<int>(arithmetic, 8) == std::vector<int>({3, -4, 0x3fffffff, 0, -4, 2, 0, 6}));
  CHECK(run.read<int>(both, 8)[0] == ~(7 ^ 2));
  CHECK(run.read<int>(bits, 8)[1] == 30);
}

void comparisonsGiveBooleansThatSelect() {
  for (const unsigned tiles : kTileCounts) {
    Run run(tiles);
    const std::vector<float> a = randomFloats(41, tiles), b = randomFloats(41, tiles + 9);
    const Tensor ta = run.input({41}, a), tb = run.input({41}, b);
    const Tensor less = popops::lt(run.graph, ta, tb, run.prog);
    CHECK(less.elementType() == poplar::BOOL);
    const auto smaller = run.output(popops::select(run.graph, ta, tb, less, run.prog));
    const auto positive =
        run.output(popops::map(run.graph, e::Select(e::Const(-1), e::_2, e::_1 > 0.0F), {ta, tb}, run.prog));
    const auto clamped =
        run.output(popops::map(run.graph, e::Clamp(e::_1, e::Const(-1), e::Const(1.5)), {ta}, run.prog));
    const auto neither = run.output(popops::map(run.graph, !(e::_1 > 0.0F || e::_2 > 0.0F), {ta, tb}, run.prog));
    run.run();
    const auto smallers = run.read<float>(smaller, 41), positives = run.read<float>(positive, 41),
               clampeds = run.read<float>(clamped, 41);
    const auto neithers = run.read<unsigned char>(neither, 41);
    for (std::size_t i = 0; i < 41; ++i) {
      CHECK_EQUAL(smallers[i], std::min(a[i], b[i]));
      CHECK_EQUAL(positives[i], a[i] > 0 ? -1.0F : b[i]);
      CHECK_EQUAL(clampeds[i], std::min(std::max(a[i], -1.0F), 1.5F));
      CHECK_EQUAL(neithers[i] != 0, !(a[i] > 0 || b[i] > 0));
    }
  }
}

void expressionsAreChains() {
  for (const unsigned tiles : kTileCounts) {
    Run run(tiles);
    const std::vector<float> a = randomFloats(60, tiles), b = randomFloats(12, tiles + 3), c = {1.5F};
    const Tensor ta = run.input({5, 12}, a), tb = run.input({12}, b), tc = run.input({}, c);
    const auto chain = e::Tanh(e::_1 * 0.5F + e::_2) - e::_3 * e::Square(e::_1 - 1);
    const auto out = run.output(popops::map(run.graph, chain, {ta, tb, tc}, run.prog));
    const auto untouched = run.output(ta);
    run.run();
    std::vector<float> expected;
    for (std::size_t i = 0; i < 60; ++i) {
      expected.push_back(std::tanh(a[i] * 0.5F + b[i % 12]) - 1.5F * ((a[i] - 1) * (a[i] - 1)));
    }
    checkNear(run.read<float>(out, 60), expected, 1e-6F, "chain");
    CHECK(run.read<float>(untouched, 60) == a);
  }
}

void inPlaceOperationsMayReadWhatTheyWrite() {
  for (const unsigned tiles : kTileCounts) {
    Run run(tiles);
    const std::vector<float> a = randomFloats(6 * 6, tiles), b = randomFloats(36, tiles + 1);
    const Tensor ta = run.input({6, 6}, a), tb = run.input({6, 6}, b);
    popops::mapInPlace(run.graph, e::_1 - e::_2 * e::_1, {ta, tb}, run.prog);
    popops::subInPlace(run.graph, tb, tb.transpose(), run.prog);  // elements of other tiles, which change as well
    popops::mulInPlace(run.graph, ta, 2.0F, run.prog);
    const Tensor tc = run.input({7}, std::vector<float>{1, 2, 3, 4, 5, 6, 7});
    popops::addInPlace(run.graph, tc.slice(1, 7), tc.slice(0, 6), run.prog);  // neighbours before they change
    const auto out_a = run.output(ta), out_b = run.output(tb), out_c = run.output(tc);
    run.run();
    CHECK(run.read<float>(out_c, 7) == std::vector<float>({1, 3, 5, 7, 9, 11, 13}));
    const auto result_a = run.read<float>(out_a, 36), result_b = run.read<float>(out_b, 36);
    for (std::size_t i = 0; i < 36; ++i) {
      CHECK_NEAR(result_a[i], 2 * (a[i] - b[i] * a[i]), 1e-5F);
      CHECK_EQUAL(result_b[i], b[i] - b[i % 6 * 6 + i / 6]);
    }
  }
}

void halvesAndCasts() {
  Run run(7);
  const std::vector<float> a = {1.0F, 2.5F, -3.25F, 1000, 0.1F};
  const Tensor x = run.input(poplar::HALF, {5}, a);
  const Tensor y = popops::map(run.graph, e::_1 * 2.0F + 0.5F, {x}, run.prog);
  CHECK(y.elementType() == poplar::HALF);
  const auto out = run.output(popops::cast(run.graph, y, poplar::FLOAT, run.prog));
  const auto whole = run.output(popops::map(run.graph, e::Cast(e::_1, poplar::INT) * 3, {x}, run.prog));
  run.run();
  const auto got = run.read<float>(out, 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK_NEAR(got[i], a[i] * 2 + 0.5F, 1e-3F * (1 + std::abs(a[i])));
  CHECK(run.read<int>(whole, 5) == std::vector<int>({3, 6, -9, 3000, 0}));
}

// A cast within an expression yields what popops::cast does, from and to every type.
void castsAgreeWithTheirCodelet() {
  const std::vector<poplar::Type> types = {
      poplar::FLOAT,          poplar::HALF,        poplar::INT,           poplar::UNSIGNED_INT, poplar::SHORT,
      poplar::UNSIGNED_SHORT, poplar::SIGNED_CHAR, poplar::UNSIGNED_CHAR, poplar::CHAR,         poplar::BOOL};
  const std::vector<float> values = {0,   1,    -1,    2.5F,   -3.7F, 127,    128, 255,
                                     256, -129, 40000, -40000, 1e10F, -1e10F, NAN, INFINITY};
  Run run(3);
  std::vector<std::pair<std::string, std::string>> outs;
  for (const poplar::Type& from : types) {
    const Tensor x = popops::cast(run.graph, run.input({values.size()}, values), from, run.prog);
    for (const poplar::Type& to : types) {
      const Tensor inside = popops::map(run.graph, e::Cast(e::_1, to), {x}, run.prog);
      CHECK(inside.elementType() == to);
      outs.emplace_back(run.output(inFloats(run, inside)),
                        run.output(inFloats(run, popops::cast(run.graph, x, to, run.prog))));
    }
  }
  run.run();
  for (const auto& [inside, alone] : outs) {
    checkNear(run.read<float>(inside, values.size()), run.read<float>(alone, values.size()), 0, "cast");
  }
}

// Values that a program holds at a time: tensors and constants for all of it, results until they are read.
void longExpressionsAreRefused() {
  Run run(2);
  const Tensor x = run.input({2}, std::vector<float>{1, 2});
  const auto sum = [&](int terms) {
    e::Any all = e::_1;
    for (int i = 1; i < terms; ++i) all = e::Any(e::Add(all, e::Const(static_cast<float>(i))));
    return all;
  };
  const auto out = run.output(popops::map(run.graph, sum(23), {x}, run.prog));
  CHECK_THROWS(popops::map(run.graph, sum(24), {x}, run.prog),
               "popops::map: `expr` must need at most 24 values at a time, got more. Divide it into several maps.");
  run.run();
  CHECK(run.read<float>(out, 2) == std::vector<float>({1 + 253, 2 + 253}));
}

void mistakesAreNamed() {
  Run run(2);
  const Tensor f = run.graph.addVariable(poplar::FLOAT, {4}), h = run.graph.addVariable(poplar::HALF, {4}),
               g = run.graph.addVariable(poplar::FLOAT, {3});
  run.graph.setTileMapping(f, 0);
  run.graph.setTileMapping(h, 0);
  run.graph.setTileMapping(g, 0);
  CHECK_THROWS(popops::add(run.graph, f, h, run.prog), "`operands` must have one type, got float and half");
  const Tensor wide = run.graph.addVariable(poplar::LONGLONG, {4});
  CHECK_THROWS(popops::map(run.graph, e::Cast(e::_1, poplar::INT), {wide}, run.prog),
               "popops::map: `ts` must hold elements of at most 32 bits, got long long. Cast the tensor.");
  CHECK_THROWS(popops::map(run.graph, e::Cast(e::_1, poplar::LONGLONG), {f}, run.prog),
               "popops::map: `type` of a cast must have at most 32 bits, got long long. Cast to a narrower one.");
  CHECK_THROWS(popops::add(run.graph, f, g, run.prog), "`shapes` must agree");
  CHECK_THROWS(popops::bitwiseNot(run.graph, f, run.prog), "`operation` must exist for the operands' type");
  CHECK_THROWS(popops::map(run.graph, e::_1 + e::_3, {f, f}, run.prog), "`expr` must use placeholders 1 to 2");
  CHECK_THROWS(popops::select(run.graph, f, f, f, run.prog), "`predicate` of a select must be of type bool");
  CHECK_THROWS(popops::addInPlace(run.graph, f.broadcast(2, 0), 1.0F, run.prog), "`ts[0]` must be a tensor that can");
  CHECK_THROWS(popops::mapWithOutput(run.graph, e::_1 + e::_2, {f, f}, g, run.prog), "`out` must be float{4}");
}

}  // namespace

int main() {
  unaryFunctionsMatchTheHost();
  binaryFunctionsBroadcast();
  integersWrapAndShift();
  comparisonsGiveBooleansThatSelect();
  expressionsAreChains();
  inPlaceOperationsMayReadWhatTheyWrite();
  halvesAndCasts();
  castsAgreeWithTheirCodelet();
  longExpressionsAreRefused();
  mistakesAreNamed();
  return check::failures;
}
