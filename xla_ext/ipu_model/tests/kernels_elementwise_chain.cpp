// The codelets of elementwise_chain.cpp alone, each operation against a reference of its own.
#include <bit>
#include <climits>
#include <cmath>
#include <functional>

#include "../../../poplar_kernels/elementwise_chain_cycles.hpp"
#include "../../../poplar_kernels/elementwise_chain_ops.hpp"
#include "kernels_alone.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;
using snnjax::chain::Opcode;
using Words = std::vector<unsigned>;
using Short = unsigned short;
using Byte = unsigned char;

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

unsigned bitsOf(float x) { return std::bit_cast<unsigned>(x); }
float floatOf(unsigned x) { return std::bit_cast<float>(x); }

unsigned row(Opcode opcode, unsigned slot, unsigned number) { return snnjax::chain::wordOfRow(opcode, slot, number); }
unsigned word(Opcode opcode, unsigned to, unsigned a = 0, unsigned b = 0, unsigned c = 0) {
  return snnjax::chain::Instruction{opcode, to, a, b, c}.word();
}

void setCosts(Alone& chain) { chain.state("pointers", 30u).state("four", 9u).state("two", 5u).state("one", 4u); }

// Runs a program over rows of words.
Words run(const CodeletLibrary& library, const Words& program, const std::vector<Words>& in, const Words& out,
          unsigned once = 0) {
  Alone chain(library, "snnjax::ElementwiseChain");
  chain.edge("program", program).rows("in", in).rows("out", std::vector<Words>{out});
  chain.state("count", unsigned(out.size())).state("once", once).state("words", unsigned(program.size()));
  setCosts(chain);
  chain.run().get<float>("out");  // the forms are compared but for signs of NaN
  return chain.untraced<unsigned>("out");
}

// Numbers that operations stumble over, and some between.
const std::vector<unsigned>& values() {
  static const std::vector<unsigned> kValues = [] {
    std::vector<unsigned> all = {0,          1,          2,          3,          31,         32,        33,
                                 127,        128,        255,        256,        32767,      32768,     65535,
                                 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0xffffff80};
    for (const float x : {-0.0f,         0.5f,           -0.5f,         1.0f,        1.5f,        -1.5f,     2.5f,
                          -2.5f,         3.7f,           1e-40f,        1e30f,       -1e30f,      65504.0f,  65520.0f,
                          2147483648.0f, -2147483648.0f, 4294967296.0f, 1.00390625f, 1.01171875f, kInfinity, -kInfinity,
                          kNan,          -kNan,          100.25f,       -7.25f}) {
      all.push_back(bitsOf(x));
    }
    return all;
  }();
  return kValues;
}

bool sameBits(unsigned a, unsigned b, bool real) {
  return a == b || (real && std::isnan(floatOf(a)) && std::isnan(floatOf(b)));
}

void expect(const char* name, bool real, unsigned actual, unsigned expected, unsigned a, unsigned b) {
  if (sameBits(actual, expected, real)) return;
  check::that(false, name, __FILE__, __LINE__,
              std::to_string(actual) + " for " + std::to_string(a) + ", " + std::to_string(b) + ", not " +
                  std::to_string(expected));
}

using Of = std::function<unsigned(unsigned, unsigned)>;

// All pairs of values; an operation on one takes the first.
void testOperation(const CodeletLibrary& library, const char* name, Opcode opcode, bool real, const Of& reference) {
  Words a, b;
  for (const unsigned x : values()) {
    for (const unsigned y : values()) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const Words program = {row(Opcode::load_word, 0, 0), row(Opcode::load_word, 1, 1), word(opcode, 2, 0, 1),
                         row(Opcode::store_word, 2, 0)};
  const Words out = run(library, program, {a, b}, Words(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i) expect(name, real, out[i], reference(a[i], b[i]), a[i], b[i]);
}

Of real(const std::function<float(float)>& of) {
  return [of](unsigned a, unsigned) { return bitsOf(of(floatOf(a))); };
}
Of reals(const std::function<float(float, float)>& of) {
  return [of](unsigned a, unsigned b) { return bitsOf(of(floatOf(a), floatOf(b))); };
}
Of compare(const std::function<bool(float, float)>& of) {
  return [of](unsigned a, unsigned b) { return unsigned(of(floatOf(a), floatOf(b))); };
}
// Exact, and then the low 32 bits.
Of integers(const std::function<long long(long long, long long)>& of) {
  return [of](unsigned a, unsigned b) { return unsigned(of(int(a), int(b))); };
}
Of naturals(const std::function<unsigned long long(unsigned long long, unsigned long long)>& of) {
  return [of](unsigned a, unsigned b) { return unsigned(of(a, b)); };
}

unsigned saturated(double x, double lowest, double largest) {
  if (std::isnan(x)) return 0;
  return unsigned(static_cast<long long>(std::trunc(std::min(std::max(x, lowest), largest))));
}

// To nearest of the numbers with `digits` binary digits from 2^lowest on, ties to even.
float roundedTo(float x, int digits, int lowest, float largest) {
  if (!std::isfinite(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), lowest);
  const double unit = std::ldexp(1.0, exponent - digits + 1);
  const double rounded = std::nearbyint(double(x) / unit) * unit;
  return std::fabs(rounded) > largest ? std::copysign(kInfinity, x) : static_cast<float>(rounded);
}

float largerOf(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNan;
  if (a == b) return std::signbit(a) ? b : a;
  return std::max(a, b);
}

// IEEE 754's totalOrder, by sign and magnitude.
long long totalOrder(unsigned x) {
  const long long magnitude = x & 0x7fffffffu;
  return (x >> 31) != 0 ? -1 - magnitude : magnitude;
}

long long powerOf(long long base, long long exponent, long long modulus) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  unsigned long long result = 1,
                     square = static_cast<unsigned long long>(base) % static_cast<unsigned long long>(modulus);
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result * square % static_cast<unsigned long long>(modulus);
    square = square * square % static_cast<unsigned long long>(modulus);
  }
  return static_cast<long long>(result);
}

void testRealOperations(const CodeletLibrary& library) {
  const auto one = [&](const char* name, Opcode opcode, float (*of)(float)) {
    testOperation(library, name, opcode, true, real(of));
  };
  one("abs", Opcode::abs_f32, [](float x) { return std::fabs(x); });
  one("negate", Opcode::negate_f32, [](float x) { return -x; });
  one("sign", Opcode::sign_f32, [](float x) { return x == 0 || std::isnan(x) ? x : std::copysign(1.0f, x); });
  one("square", Opcode::square_f32, [](float x) { return x * x; });
  one("ceil", Opcode::ceil_f32, [](float x) { return std::ceil(x); });
  one("floor", Opcode::floor_f32, [](float x) { return std::floor(x); });
  one("even", Opcode::round_nearest_even_f32, [](float x) { return std::rint(x); });
  one("away", Opcode::round_nearest_afz_f32, [](float x) { return std::round(x); });
  one("trunc", Opcode::trunc_f32, [](float x) { return std::trunc(x); });
  one("sqrt", Opcode::sqrt_f32, [](float x) { return std::sqrt(x); });
  one("rsqrt", Opcode::rsqrt_f32, [](float x) { return 1.0f / std::sqrt(x); });
  one("cbrt", Opcode::cbrt_f32, [](float x) { return std::cbrt(x); });
  one("exp", Opcode::exponential_f32, [](float x) { return std::exp(x); });
  one("expm1", Opcode::exponential_minus_one_f32, [](float x) { return std::expm1(x); });
  one("log", Opcode::log_f32, [](float x) { return std::log(x); });
  one("log1p", Opcode::log_plus_one_f32, [](float x) { return std::log1p(x); });
  one("tanh", Opcode::tanh_f32, [](float x) { return std::tanh(x); });
  one("logistic", Opcode::logistic_f32, [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
  one("sine", Opcode::sine_f32, [](float x) { return std::sin(x); });
  one("cosine", Opcode::cosine_f32, [](float x) { return std::cos(x); });
  one("tan", Opcode::tan_f32, [](float x) { return std::tan(x); });
  one("erf", Opcode::erf_f32, [](float x) { return std::erf(x); });
  one("f16", Opcode::round_f16, [](float x) { return roundedTo(x, 11, -14, 65504.0f); });
  one("bf16", Opcode::round_bf16, [](float x) { return roundedTo(x, 8, -126, 3.3895314e38f); });
  testOperation(library, "finite", Opcode::is_finite_f32, false,
                compare([](float x, float) { return std::isfinite(x); }));
}

void testPairsOfReals(const CodeletLibrary& library) {
  const auto two = [&](const char* name, Opcode opcode, float (*of)(float, float)) {
    testOperation(library, name, opcode, true, reals(of));
  };
  two("add", Opcode::add_f32, [](float a, float b) { return a + b; });
  two("subtract", Opcode::subtract_f32, [](float a, float b) { return a - b; });
  two("multiply", Opcode::multiply_f32, [](float a, float b) { return a * b; });
  two("divide", Opcode::divide_f32, [](float a, float b) { return a / b; });
  two("remainder", Opcode::remainder_f32, [](float a, float b) { return std::fmod(a, b); });
  two("power", Opcode::power_f32, [](float a, float b) { return std::pow(a, b); });
  two("atan2", Opcode::atan2_f32, [](float a, float b) { return std::atan2(a, b); });
  two("maximum", Opcode::maximum_f32, largerOf);
  two("minimum", Opcode::minimum_f32, [](float a, float b) { return -largerOf(-a, -b); });
  const auto test = [&](const char* name, Opcode opcode, bool (*of)(float, float)) {
    testOperation(library, name, opcode, false, compare(of));
  };
  test("eq", Opcode::eq_f32, [](float a, float b) { return a == b; });
  test("ne", Opcode::ne_f32, [](float a, float b) { return a != b; });
  test("lt", Opcode::lt_f32, [](float a, float b) { return a < b; });
  test("le", Opcode::le_f32, [](float a, float b) { return a <= b; });
  test("gt", Opcode::gt_f32, [](float a, float b) { return a > b; });
  test("ge", Opcode::ge_f32, [](float a, float b) { return a >= b; });
  const auto total = [&](const char* name, Opcode opcode, bool (*of)(long long, long long)) {
    testOperation(library, name, opcode, false,
                  [of](unsigned a, unsigned b) { return unsigned(of(totalOrder(a), totalOrder(b))); });
  };
  total("eq_total", Opcode::eq_total_f32, [](long long a, long long b) { return a == b; });
  total("ne_total", Opcode::ne_total_f32, [](long long a, long long b) { return a != b; });
  total("lt_total", Opcode::lt_total_f32, [](long long a, long long b) { return a < b; });
  total("le_total", Opcode::le_total_f32, [](long long a, long long b) { return a <= b; });
  total("gt_total", Opcode::gt_total_f32, [](long long a, long long b) { return a > b; });
  total("ge_total", Opcode::ge_total_f32, [](long long a, long long b) { return a >= b; });
}

void testIntegers(const CodeletLibrary& library) {
  using Long = long long;
  const auto test = [&](const char* name, Opcode opcode, Long (*of)(Long, Long)) {
    testOperation(library, name, opcode, false, integers(of));
  };
  test("abs", Opcode::abs_s32, [](Long a, Long) { return std::abs(a); });
  test("negate", Opcode::negate_s32, [](Long a, Long) { return -a; });
  test("sign", Opcode::sign_s32, [](Long a, Long) { return Long{(a > 0) - (a < 0)}; });
  test("square", Opcode::square_s32, [](Long a, Long) { return a * a; });
  test("add", Opcode::add_s32, [](Long a, Long b) { return a + b; });
  test("subtract", Opcode::subtract_s32, [](Long a, Long b) { return a - b; });
  test("multiply", Opcode::multiply_s32, [](Long a, Long b) { return a * b; });
  test("divide", Opcode::divide_s32, [](Long a, Long b) { return b == 0 ? -1 : a / b; });
  test("remainder", Opcode::remainder_s32, [](Long a, Long b) { return b == 0 ? a : a % b; });
  test("maximum", Opcode::maximum_s32, [](Long a, Long b) { return std::max(a, b); });
  test("minimum", Opcode::minimum_s32, [](Long a, Long b) { return std::min(a, b); });
  test("power", Opcode::power_s32, [](Long a, Long b) { return powerOf(b < 0 ? a : unsigned(a), b, 1LL << 32); });
  test("shift", Opcode::shift_right_arithmetic_s32, [](Long a, Long b) { return a >> (b < 0 || b > 31 ? 31 : b); });
  test("eq", Opcode::eq_s32, [](Long a, Long b) { return Long{a == b}; });
  test("ne", Opcode::ne_s32, [](Long a, Long b) { return Long{a != b}; });
  test("lt", Opcode::lt_s32, [](Long a, Long b) { return Long{a < b}; });
  test("le", Opcode::le_s32, [](Long a, Long b) { return Long{a <= b}; });
  test("gt", Opcode::gt_s32, [](Long a, Long b) { return Long{a > b}; });
  test("ge", Opcode::ge_s32, [](Long a, Long b) { return Long{a >= b}; });
}

void testNaturals(const CodeletLibrary& library) {
  using Long = unsigned long long;
  const auto test = [&](const char* name, Opcode opcode, Long (*of)(Long, Long)) {
    testOperation(library, name, opcode, false, naturals(of));
  };
  test("negate", Opcode::negate_u32, [](Long a, Long) { return 0 - a; });
  test("not", Opcode::not_u32, [](Long a, Long) { return ~a; });
  test("not s32", Opcode::not_s32, [](Long a, Long) { return ~a; });
  test("popcnt", Opcode::popcnt_u32, [](Long a, Long) { return Long(std::popcount(a)); });
  test("zeros", Opcode::count_leading_zeros_u32, [](Long a, Long) { return Long(std::countl_zero(a)) - 32; });
  test("add", Opcode::add_u32, [](Long a, Long b) { return a + b; });
  test("subtract", Opcode::subtract_u32, [](Long a, Long b) { return a - b; });
  test("multiply", Opcode::multiply_u32, [](Long a, Long b) { return a * b; });
  test("divide", Opcode::divide_u32, [](Long a, Long b) { return b == 0 ? ~Long{0} : a / b; });
  test("remainder", Opcode::remainder_u32, [](Long a, Long b) { return b == 0 ? a : a % b; });
  test("maximum", Opcode::maximum_u32, [](Long a, Long b) { return std::max(a, b); });
  test("minimum", Opcode::minimum_u32, [](Long a, Long b) { return std::min(a, b); });
  test("power", Opcode::power_u32,
       [](Long a, Long b) { return Long(powerOf(static_cast<long long>(a), static_cast<long long>(b), 1LL << 32)); });
  test("and", Opcode::and_u32, [](Long a, Long b) { return a & b; });
  test("or", Opcode::or_u32, [](Long a, Long b) { return a | b; });
  test("xor", Opcode::xor_u32, [](Long a, Long b) { return a ^ b; });
  test("left", Opcode::shift_left_u32, [](Long a, Long b) { return b > 31 ? 0 : a << b; });
  test("right", Opcode::shift_right_logical_u32, [](Long a, Long b) { return b > 31 ? 0 : a >> b; });
  test("lt", Opcode::lt_u32, [](Long a, Long b) { return Long{a < b}; });
  test("le", Opcode::le_u32, [](Long a, Long b) { return Long{a <= b}; });
  test("gt", Opcode::gt_u32, [](Long a, Long b) { return Long{a > b}; });
  test("ge", Opcode::ge_u32, [](Long a, Long b) { return Long{a >= b}; });
  test("eq", Opcode::eq_u32, [](Long a, Long b) { return Long{a == b}; });
  test("ne", Opcode::ne_u32, [](Long a, Long b) { return Long{a != b}; });
}

void testConversions(const CodeletLibrary& library) {
  const auto test = [&](const char* name, Opcode opcode, bool real, const Of& of) {
    testOperation(library, name, opcode, real, of);
  };
  test("to s32", Opcode::convert_f32_s32, false,
       [](unsigned a, unsigned) { return saturated(floatOf(a), INT_MIN, INT_MAX); });
  test("to u32", Opcode::convert_f32_u32, false,
       [](unsigned a, unsigned) { return saturated(floatOf(a), 0, UINT_MAX); });
  test("of s32", Opcode::convert_s32_f32, true, [](unsigned a, unsigned) { return bitsOf(float(int(a))); });
  test("of u32", Opcode::convert_u32_f32, true, [](unsigned a, unsigned) { return bitsOf(float(a)); });
  test("bool of f32", Opcode::convert_f32_bool, false, [](unsigned a, unsigned) { return unsigned(floatOf(a) != 0); });
  test("bool of s32", Opcode::convert_s32_bool, false, [](unsigned a, unsigned) { return unsigned(a != 0); });
  test("not bool", Opcode::not_bool, false, [](unsigned a, unsigned) { return a % 2 == 0 ? a + 1 : a - 1; });
  test("s8", Opcode::wrap_s8, false, integers([](long long a, long long) { return ((a + 128) & 255) - 128; }));
  test("u8", Opcode::wrap_u8, false, naturals([](auto a, auto) { return a % 256; }));
  test("s16", Opcode::wrap_s16, false, integers([](long long a, long long) { return ((a + 32768) & 65535) - 32768; }));
  test("u16", Opcode::wrap_u16, false, naturals([](auto a, auto) { return a % 65536; }));
}

// out = 2 * a + b of one element, over blocks and workers of all sizes; the constant and b fill their slots once.
void testBlocks(const CodeletLibrary& library) {
  const Words program = {row(Opcode::constant, 0, 0),
                         bitsOf(2.0f),
                         row(Opcode::load_word, 1, 1 | snnjax::chain::kSingleRow),
                         row(Opcode::load_word, 2, 0),
                         word(Opcode::multiply_f32, 3, 0, 2),
                         row(Opcode::aim, 4, 0),
                         word(Opcode::add_f32, 4, 3, 1)};
  for (const unsigned count : {0u, 1u, 2u, 7u, 32u, 33u, 128u, 129u, 193u, 500u}) {
    Words a;
    for (unsigned i = 0; i < count; ++i) a.push_back(bitsOf(float(i)));
    const Words out = run(library, program, {a, {bitsOf(0.5f)}}, Words(count), 3);
    for (unsigned i = 0; i < count; ++i) CHECK_EQUAL(floatOf(out[i]), 2.0f * float(i) + 0.5f);
    CHECK(run(library, program, {a, {bitsOf(0.5f)}}, Words(count), 0) == out);
  }
}

// The output's row is an input as well; select reads three slots.
void testInPlace(const CodeletLibrary& library) {
  const Words program = {row(Opcode::load_word, 0, snnjax::chain::kOwnRow), row(Opcode::load_word, 1, 0),
                         word(Opcode::lt_s32, 2, 0, 1), word(Opcode::select, 0, 2, 1, 0),
                         row(Opcode::store_word, 0, 0)};
  Words own, other, expected;
  for (unsigned i = 0; i < 100; ++i) {
    own.push_back(i * 37 % 100);
    other.push_back(i * 61 % 100);
    expected.push_back(std::max(own[i], other[i]));
  }
  CHECK(run(library, program, {other}, own) == expected);
}

// Each narrow type there and back, beside words.
void testNarrow(const CodeletLibrary& library) {
  const Words program = {row(Opcode::load_f16, 0, 0),   row(Opcode::load_bf16, 1, 1),  row(Opcode::load_s16, 2, 2),
                         row(Opcode::load_u16, 3, 2),   row(Opcode::load_s8, 4, 0),    row(Opcode::load_u8, 5, 0),
                         row(Opcode::store_f16, 0, 0),  row(Opcode::store_bf16, 1, 1), row(Opcode::store_s16, 2, 2),
                         row(Opcode::store_u16, 3, 3),  row(Opcode::store_s8, 4, 0),   row(Opcode::store_u8, 5, 1),
                         row(Opcode::store_word, 0, 0), row(Opcode::store_word, 1, 1), row(Opcode::store_word, 2, 2),
                         row(Opcode::store_word, 4, 3), row(Opcode::store_word, 5, 4)};
  for (const unsigned count : {1u, 9u, 300u}) {
    std::vector<Short> f16(count), bf16(count), s16(count);
    std::vector<Byte> bytes(count);
    for (unsigned i = 0; i < count; ++i) {
      f16[i] = std::bit_cast<Short>(half(float(i) * 0.25f));
      bf16[i] = static_cast<Short>(bitsOf(float(i) * -0.5f) >> 16);
      s16[i] = static_cast<Short>(i * 499);
      bytes[i] = static_cast<Byte>(i * 7);
    }
    Alone chain(library, "snnjax::MixedElementwiseChain");
    chain.edge("program", program).rows("in", std::vector<Words>{});
    chain.rows("in_halves", std::vector<std::vector<Short>>{f16, bf16, s16})
        .rows("in_bytes", std::vector<std::vector<Byte>>{bytes});
    chain.rows("out", std::vector<Words>(5, Words(count)));
    chain.rows("out_halves", std::vector<std::vector<Short>>(4, std::vector<Short>(count)));
    chain.rows("out_bytes", std::vector<std::vector<Byte>>(2, std::vector<Byte>(count)));
    setCosts(chain);
    chain.state("count", count).state("once", 0u).state("words", unsigned(program.size())).run(true);
    CHECK(chain.get<Short>("out_halves") == f16);
    CHECK(chain.get<Short>("out_halves[1]") == bf16);
    CHECK(chain.get<Short>("out_halves[2]") == s16);
    CHECK(chain.get<Short>("out_halves[3]") == s16);
    CHECK(chain.get<Byte>("out_bytes") == bytes);
    CHECK(chain.get<Byte>("out_bytes[1]") == bytes);
    const unsigned last = count - 1;
    CHECK_EQUAL(floatOf(chain.get<unsigned>("out")[last]), float(last) * 0.25f);
    CHECK_EQUAL(chain.get<unsigned>("out[1]")[last], unsigned(bf16[last]) << 16);
    CHECK_EQUAL(int(chain.get<unsigned>("out[2]")[last]), int(std::int16_t(s16[last])));
    CHECK_EQUAL(int(chain.get<unsigned>("out[3]")[last]), int(std::int8_t(bytes[last])));
    CHECK_EQUAL(chain.get<unsigned>("out[4]")[last], unsigned(bytes[last]));
  }
}

// What the executor counted for 4, 2 and 1 elements, for the share of each worker.
void testCycles(const CodeletLibrary& library) {
  static_assert(snnjax::cycles::chain(11, 30, 9, 5, 4) == 27 + 30 + 2 * 9 + 5 + 4);
  const Words program = {row(Opcode::load_word, 0, 0), row(Opcode::aim, 1, 0), word(Opcode::add_f32, 1, 0, 0)};
  Alone chain(library, "snnjax::ElementwiseChain");
  chain.edge("program", program).rows("in", std::vector<Words>{Words(201)}).rows("out", std::vector<Words>{Words(201)});
  chain.state("count", 201u).state("once", 0u).state("words", 3u);
  setCosts(chain);
  chain.run();
  // 201 elements are 34, 34, 34, 34, 34 and 31 for the workers.
  CHECK_EQUAL(chain.cycles(0), 27 + 30u + 8 * 9 + 5);
  CHECK_EQUAL(chain.cycles(5), 27 + 30u + 7 * 9 + 5 + 4);
}

void test(const CodeletLibrary& library) {
  testRealOperations(library);
  testPairsOfReals(library);
  testIntegers(library);
  testNaturals(library);
  testConversions(library);
  testBlocks(library);
  testInPlace(library);
  testNarrow(library);
  testCycles(library);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runForms(argc, argv, test); }
