// The codelets of elementwise.cpp alone, every operation and type, against the same functions in double on the host.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

// Shares of six workers, whole vectors and not; nothing; fewer elements than workers.
const std::vector<unsigned> kCounts = {0, 1, 3, 8, 53};

template <typename T>
double relativeTolerance() {
  return sizeof(T) == 2 ? 0x1p-10 : 1e-6;
}

// As close as T can hold it: half an ulp, and a little for float functions of halves and floats.
template <typename T>
void checkNear(T x, double expected, const std::string& what) {
  const double got = static_cast<double>(x);
  const double limit = static_cast<double>(std::numeric_limits<T>::max());
  const double error = std::abs(got - expected);
  const bool overflows = std::abs(expected) > limit && std::isinf(got);
  const double tolerance = relativeTolerance<T>() * std::max(std::abs(expected), 1e-2);
  const bool both_nan = std::isnan(expected) && std::isnan(got);
  if (got != expected && !both_nan && !overflows && !(error <= tolerance))
    check::that(false, what.c_str(), __FILE__, __LINE__);
}

using Function = std::function<double(double)>;
using Pair = std::function<double(double, double)>;

const std::map<std::string, Function> kFunctions = {
    {"Absolute", [](double x) { return std::fabs(x); }},
    {"Negate", [](double x) { return -x; }},
    {"Square", [](double x) { return x * x; }},
    {"Signum", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : x; }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Trunc", [](double x) { return std::trunc(x); }},
    {"Round", [](double x) { return std::round(x); }},
    {"NearbyInt", [](double x) { return std::nearbyint(x); }},
    {"Inverse", [](double x) { return 1.0 / x; }},
    {"SquareRoot", [](double x) { return std::sqrt(x); }},
    {"ReciprocalRoot", [](double x) { return 1.0 / std::sqrt(x); }},
    {"Exponent", [](double x) { return std::exp(x); }},
    {"ExponentMinusOne", [](double x) { return std::expm1(x); }},
    {"Logarithm", [](double x) { return std::log(x); }},
    {"LogarithmOnePlus", [](double x) { return std::log1p(x); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Sigmoid", [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
    {"Sine", [](double x) { return std::sin(x); }},
    {"Cosine", [](double x) { return std::cos(x); }},
    {"Tan", [](double x) { return std::tan(x); }},
    {"ArcSine", [](double x) { return std::asin(x); }},
    {"CubicRoot", [](double x) { return std::cbrt(x); }},
    {"ErrorFunction", [](double x) { return std::erf(x); }},
};

const std::map<std::string, Function> kTests = {
    {"IsFinite", [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }},
    {"IsInf", [](double x) { return std::isinf(x) ? 1.0 : 0.0; }},
    {"IsNan", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
};

const std::map<std::string, Pair> kPairs = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Subtract", [](double a, double b) { return a - b; }},
    {"Multiply", [](double a, double b) { return a * b; }},
    {"Divide", [](double a, double b) { return a / b; }},
    {"Remainder", [](double a, double b) { return std::fmod(a, b); }},
    {"Maximum", [](double a, double b) { return a != a || b != b ? NAN : std::max(a, b); }},
    {"Minimum", [](double a, double b) { return a != a || b != b ? NAN : std::min(a, b); }},
    {"Power", [](double a, double b) { return std::pow(a, b); }},
};

const std::map<std::string, Pair> kComparisons = {
    {"Equal", [](double a, double b) { return a == b; }},  {"NotEqual", [](double a, double b) { return a != b; }},
    {"Greater", [](double a, double b) { return a > b; }}, {"GreaterEqual", [](double a, double b) { return a >= b; }},
    {"Less", [](double a, double b) { return a < b; }},    {"LessEqual", [](double a, double b) { return a <= b; }},
};

// Eighths, then zero of either sign, infinities and NaN.
template <typename T>
std::vector<T> hostile(unsigned count, unsigned seed) {
  std::vector<T> values = Draw(seed).row<T>(count);
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const T special[] = {T(0), -T(0), kInfinity, -kInfinity, std::numeric_limits<T>::quiet_NaN()};
  for (unsigned i = 0; i < 5 && i + 9 < count; ++i) values[i * (seed % 3 + 1)] = special[i];
  return values;
}

template <typename R, typename T>
std::vector<R> unary(const CodeletLibrary& library, const std::string& name, const std::vector<T>& in) {
  Alone vertex(library, "snnjax::Unary<" + name + ">");
  vertex.edge("in", in).edge("out", std::vector<R>(in.size())).state("count", static_cast<unsigned>(in.size()));
  return vertex.run(true).template get<R>("out");
}

// in1 or in2 is one element where it is shorter.
template <typename R, typename T>
std::vector<R> binary(const CodeletLibrary& library, const std::string& name, const std::vector<T>& in1,
                      const std::vector<T>& in2) {
  const std::size_t count = std::max(in1.size(), in2.size());
  Alone vertex(library, "snnjax::Binary<" + name + ">");
  vertex.edge("in1", in1).edge("in2", in2).edge("out", std::vector<R>(count));
  vertex.state("count", static_cast<unsigned>(count)).state("single1", in1.size() < count);
  return vertex.state("single2", in2.size() < count).run(true).template get<R>("out");
}

template <typename T>
void testReal(const CodeletLibrary& library, const std::string& type) {
  for (const unsigned count : kCounts) {
    const std::vector<T> a = hostile<T>(count, 1), b = hostile<T>(count, 2);
    for (const auto& [name, function] : kFunctions) {
      const auto out = unary<T>(library, name + "," + type, a);
      for (unsigned i = 0; i < count; ++i) checkNear(out[i], function(static_cast<double>(a[i])), name + " " + type);
    }
    for (const auto& [name, function] : kTests) {
      const auto out = unary<unsigned char>(library, name + "," + type, a);
      for (unsigned i = 0; i < count; ++i) CHECK_EQUAL(out[i], function(static_cast<double>(a[i])));
    }
    for (const auto& [name, function] : kPairs) {
      const auto out = binary<T>(library, name + "," + type, a, b);
      for (unsigned i = 0; i < count; ++i) {
        checkNear(out[i], function(static_cast<double>(a[i]), static_cast<double>(b[i])), name + " " + type);
      }
    }
    for (const auto& [name, function] : kComparisons) {
      const auto out = binary<unsigned char>(library, name + "," + type, a, b);
      for (unsigned i = 0; i < count; ++i) {
        CHECK_EQUAL(out[i], function(static_cast<double>(a[i]), static_cast<double>(b[i])));
      }
    }
  }
}

template <typename T>
void testSingles(const CodeletLibrary& library, const std::string& type) {
  const std::vector<T> many = Draw(3).row<T>(13), one = {T(3)};
  const auto left = binary<T>(library, "Subtract," + type, one, many);
  const auto right = binary<T>(library, "Subtract," + type, many, one);
  for (unsigned i = 0; i < many.size(); ++i) {
    CHECK(left[i] == T(3) - many[i]);
    CHECK(right[i] == many[i] - T(3));
  }
}

// What C++ leaves undefined: sums that wrap around, shifts by 32 and more, the lowest integer without its sign.
void testIntegers(const CodeletLibrary& library) {
  constexpr int kLowest = std::numeric_limits<int>::lowest(), kMost = std::numeric_limits<int>::max();
  const auto of = [&](const std::string& op, int a, int b) {
    return binary<int>(library, op + ",int", std::vector<int>{a, a}, std::vector<int>{b, b})[1];
  };
  CHECK_EQUAL(of("Add", kMost, 1), kLowest);
  CHECK_EQUAL(of("Subtract", kLowest, 1), kMost);
  CHECK_EQUAL(of("Multiply", 1 << 30, 4), 0);
  CHECK_EQUAL(of("Divide", -7, 2), -3);
  CHECK_EQUAL(of("Divide", kLowest, -1), kLowest);
  CHECK_EQUAL(of("Divide", 7, 0), 0);
  CHECK_EQUAL(of("Remainder", -7, 2), -1);
  CHECK_EQUAL(of("Remainder", kLowest, -1), 0);
  CHECK_EQUAL(of("Remainder", 7, 0), 0);
  CHECK_EQUAL(of("Power", 3, 4), 81);
  CHECK_EQUAL(of("ShiftLeft", 1, 31), kLowest);
  CHECK_EQUAL(of("ShiftLeft", 1, 32), 0);
  CHECK_EQUAL(of("ShiftRight", -1, 31), 1);
  CHECK_EQUAL(of("ShiftRightSignExtend", -8, 2), -2);
  CHECK_EQUAL(of("ShiftRightSignExtend", -8, 40), -1);
  CHECK_EQUAL(of("BitwiseAnd", 12, 10), 8);
  CHECK_EQUAL(of("BitwiseOr", 12, 10), 14);
  CHECK_EQUAL(of("BitwiseXor", 12, 10), 6);
  CHECK_EQUAL(of("Maximum", -3, 2), 2);
  CHECK_EQUAL(of("Minimum", -3, 2), -3);
  for (const auto& [name, function] : kComparisons) {
    const auto out = binary<unsigned char>(library, name + ",int", std::vector<int>{-1, 2}, std::vector<int>{2, 2});
    CHECK(out[0] == function(-1, 2) && out[1] == function(2, 2));
  }
  CHECK_EQUAL((unary<int>(library, "Absolute,int", std::vector<int>{kLowest})[0]), kLowest);
  CHECK_EQUAL((unary<int>(library, "Negate,int", std::vector<int>{5})[0]), -5);
  CHECK_EQUAL((unary<int>(library, "Signum,int", std::vector<int>{-5})[0]), -1);
  CHECK_EQUAL((unary<int>(library, "Square,int", std::vector<int>{-5})[0]), 25);
  CHECK_EQUAL((unary<unsigned>(library, "BitwiseNot,unsigned", std::vector<unsigned>{0})[0]), 0xffffffffU);
  CHECK_EQUAL((unary<unsigned>(library, "Popcount,unsigned", std::vector<unsigned>{0xf0f})[0]), 8U);
  CHECK_EQUAL((unary<unsigned>(library, "CountLeadingZeros,unsigned", std::vector<unsigned>{0})[0]), 32U);
}

void testBooleans(const CodeletLibrary& library) {
  const std::vector<unsigned char> a = {0, 0, 1, 1}, b = {0, 1, 0, 1};
  using Bools = std::vector<unsigned char>;
  CHECK((binary<unsigned char>(library, "LogicalAnd,bool", a, b) == Bools{0, 0, 0, 1}));
  CHECK((binary<unsigned char>(library, "LogicalOr,bool", a, b) == Bools{0, 1, 1, 1}));
  CHECK((binary<unsigned char>(library, "Equal,bool", a, b) == Bools{1, 0, 0, 1}));
  CHECK((unary<unsigned char>(library, "LogicalNot,bool", b) == Bools{1, 0, 1, 0}));
}

template <typename T>
void testSelect(const CodeletLibrary& library, const std::string& type, bool single) {
  constexpr unsigned kCount = 11;
  Draw draw(5);
  const auto in1 = draw.row<T>(single ? 1 : kCount), in2 = draw.row<T>(kCount);
  std::vector<unsigned char> in3(kCount);
  for (unsigned i = 0; i < kCount; ++i) in3[i] = i % 3 == 0;
  Alone vertex(library, "snnjax::Select<" + type + ">");
  vertex.edge("in1", in1).edge("in2", in2).edge("in3", in3).edge("out", std::vector<T>(kCount)).state("count", kCount);
  vertex.state("single1", single).state("single2", false).state("single3", false);
  const auto out = vertex.run(true).template get<T>("out");
  for (unsigned i = 0; i < kCount; ++i) CHECK(out[i] == (in3[i] ? in1[single ? 0 : i] : in2[i]));
}

}  // namespace

int main(int argc, char** argv) {
  return runForms(argc, argv, [](const CodeletLibrary& library) {
    testReal<float>(library, "float");
    testReal<half>(library, "half");
    testSingles<float>(library, "float");
    testSingles<half>(library, "half");
    testSingles<int>(library, "int");
    testIntegers(library);
    testBooleans(library);
    for (const bool single : {false, true}) {
      testSelect<float>(library, "float", single);
      testSelect<half>(library, "half", single);
      testSelect<int>(library, "int", single);
    }
  });
}
