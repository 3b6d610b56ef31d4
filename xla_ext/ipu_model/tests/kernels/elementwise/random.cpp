// The codelets of random.cpp alone, against numbers that JAX 0.10.2 gives for jax.random.key(42), and the known answer
// of Threefry-2x32 that its authors publish with their implementation (Random123, kat_vectors).
#include <algorithm>
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/elementwise/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

const std::vector<unsigned> kKey = {0, 42};  // jax.random.key(42)

Alone& withElements(Alone& vertex, unsigned count, unsigned first = 0) {
  return vertex.edge("key", kKey).state("count", count).state("first", first).state("first_high", 0u);
}

template <typename T>
std::vector<unsigned> patterns(const std::vector<T>& values) {
  std::vector<unsigned> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(&result[i], &values[i], sizeof(T));
  return result;
}

void testThreefry(const CodeletLibrary& library) {
  Alone threefry(library, "snnjax::Threefry");
  threefry.edge("key0", std::vector<unsigned>{0, 0x13198a2e}).edge("key1", std::vector<unsigned>{0, 0x03707344});
  threefry.edge("in0", std::vector<unsigned>{0, 0x243f6a88}).edge("in1", std::vector<unsigned>{0, 0x85a308d3});
  threefry.edge("out0", std::vector<unsigned>(2)).edge("out1", std::vector<unsigned>(2));
  threefry.state("count", 2u).state("single_key", false).run();
  CHECK((threefry.get<unsigned>("out0") == std::vector<unsigned>{0x6b200159, 0xc4923a9c}));
  CHECK((threefry.get<unsigned>("out1") == std::vector<unsigned>{0x99ba4efe, 0x483df7a0}));
}

template <typename T>
void testUniform(const CodeletLibrary& library, const std::string& type, T low, T high,
                 std::vector<unsigned> expected) {
  const unsigned count = static_cast<unsigned>(expected.size());
  Alone uniform(library, "snnjax::RandomUniform<" + type + ">");
  withElements(uniform, count).edge("out", std::vector<T>(count)).state("low", low).state("high", high).run(true);
  CHECK(patterns(uniform.get<T>("out")) == expected);
}

// The limits of many integers.
void testIntegers(const CodeletLibrary& library) {
  constexpr unsigned kCount = 20000;
  Alone integers(library, "snnjax::RandomUniform<int>");
  withElements(integers, kCount).edge("out", std::vector<int>(kCount)).state("low", -3).state("high", 4).run();
  const std::vector<int> drawn = integers.get<int>("out");
  CHECK_EQUAL(*std::min_element(drawn.begin(), drawn.end()), -3);
  CHECK_EQUAL(*std::max_element(drawn.begin(), drawn.end()), 3);
}

void test(const CodeletLibrary& library) {
  testThreefry(library);
  testUniform<float>(library, "float", 0, 1, {0x3efa3824, 0x3f2e0730, 0x3f1dc3f8, 0x3f0f9ec0});
  // Scaled by a product and a sum, each rounded; XLA on a CPU rounds once, which gives ...388 for the first.
  testUniform<float>(library, "float", -2, 3, {1055070384, 1068700152, 1066035692, 1062083008});
  testUniform<half>(library, "half", 0, 1, {11488, 12824, 15310, 14862});
  testIntegers(library);
  static_assert(snnjax::cycles::kThreefry == 117);
  static_assert(snnjax::cycles::random(10, snnjax::cycles::kUniform) == 40 + 10 * 127);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
