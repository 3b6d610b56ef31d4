// The codelets of elementwise_chain.cpp alone.
#include <bit>
#include <cmath>

#include "kernels/alone.hpp"
#include "poplar_kernels/elementwise/cycles.hpp"
#include "poplar_kernels/elementwise/elementwise_chain_ops.hpp"

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
  return chain.get<unsigned>("out");
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

// All pairs of values; an operation on one takes the first.
Words onPairs(const CodeletLibrary& library, Opcode opcode) {
  Words a, b;
  for (const unsigned x : values()) {
    for (const unsigned y : values()) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const Words program = {row(Opcode::load_word, 0, 0), row(Opcode::load_word, 1, 1), word(opcode, 2, 0, 1),
                         row(Opcode::store_word, 2, 0)};
  return run(library, program, {a, b}, Words(a.size()));
}

// Both forms yield the same bits, without undefined behaviour. tests/ipu/lowering/test_elementwise.py compares the
// results of each operation, on the edges of each type, with the CPU's.
void testOperations(const CodeletLibrary& library) {
#define RUN(name, suffix, From, To, work, expression) onPairs(library, Opcode::name##_##suffix);
  SNNJAX_CHAIN_UNARY(RUN)
  SNNJAX_CHAIN_BINARY(RUN)
#undef RUN
}

// IEEE 754's totalOrder, by sign and magnitude.
long long totalOrder(unsigned x) {
  const long long magnitude = x & 0x7fffffffu;
  return (x >> 31) != 0 ? -1 - magnitude : magnitude;
}

// Which JAX asks for in sorts alone.
void testTotalOrder(const CodeletLibrary& library) {
  const auto test = [&](Opcode opcode, bool (*of)(long long, long long)) {
    const Words out = onPairs(library, opcode);
    std::size_t at = 0;
    for (const unsigned x : values()) {
      for (const unsigned y : values()) {
        CHECK_EQUAL(out[at], unsigned(of(totalOrder(x), totalOrder(y))));
        ++at;
      }
    }
  };
  test(Opcode::eq_total_f32, [](long long a, long long b) { return a == b; });
  test(Opcode::ne_total_f32, [](long long a, long long b) { return a != b; });
  test(Opcode::lt_total_f32, [](long long a, long long b) { return a < b; });
  test(Opcode::le_total_f32, [](long long a, long long b) { return a <= b; });
  test(Opcode::gt_total_f32, [](long long a, long long b) { return a > b; });
  test(Opcode::ge_total_f32, [](long long a, long long b) { return a >= b; });
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
  testOperations(library);
  testTotalOrder(library);
  testBlocks(library);
  testInPlace(library);
  testNarrow(library);
  testCycles(library);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
