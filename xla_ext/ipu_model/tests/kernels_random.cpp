// The codelets of random.cpp alone, against numbers that JAX 0.10.2 gives for jax.random.key(42), and the known answer
// of Threefry-2x32 that its authors publish with their implementation (Random123, kat_vectors).
#include <cmath>
#include <poplar/HalfFloat.hpp>

#include "../../../poplar_kernels/random_cycles.hpp"
#include "kernels_alone.hpp"

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

void testBits(const CodeletLibrary& library) {
  Alone threefry(library, "snnjax::Threefry");
  threefry.edge("key0", std::vector<unsigned>{0, 0x13198a2e}).edge("key1", std::vector<unsigned>{0, 0x03707344});
  threefry.edge("in0", std::vector<unsigned>{0, 0x243f6a88}).edge("in1", std::vector<unsigned>{0, 0x85a308d3});
  threefry.edge("out0", std::vector<unsigned>(2)).edge("out1", std::vector<unsigned>(2));
  threefry.state("count", 2u).state("single_key", false).run();
  CHECK((threefry.get<unsigned>("out0") == std::vector<unsigned>{0x6b200159, 0xc4923a9c}));
  CHECK((threefry.get<unsigned>("out1") == std::vector<unsigned>{0x99ba4efe, 0x483df7a0}));

  Alone bits(library, "snnjax::RandomBits"), later(library, "snnjax::RandomBits");
  withElements(bits, 5).edge("out", std::vector<unsigned>(5)).run(true);
  CHECK(
      (bits.get<unsigned>("out") == std::vector<unsigned>{0x7d1c13a2, 0xae0730d9, 0x9dc3f9f9, 0x8f9ec1d7, 0x735d7315}));
  withElements(later, 4, 296).edge("out", std::vector<unsigned>(4)).run();
  CHECK((later.get<unsigned>("out") == std::vector<unsigned>{0xfbd0e153, 0x45ae047a, 0x271be9fa, 0xf5b00fb5}));
}

template <typename T>
void testUniform(const CodeletLibrary& library, const std::string& type, T low, T high,
                 std::vector<unsigned> expected) {
  const unsigned count = static_cast<unsigned>(expected.size());
  Alone uniform(library, "snnjax::RandomUniform<" + type + ">");
  withElements(uniform, count).edge("out", std::vector<T>(count)).state("low", low).state("high", high).run(true);
  CHECK(patterns(uniform.get<T>("out")) == expected);
}

// Mean and deviation of many numbers, and limits.
void testDistributions(const CodeletLibrary& library) {
  constexpr unsigned kCount = 20000;
  Alone normal(library, "snnjax::RandomNormal<float>");
  withElements(normal, kCount).edge("out", std::vector<float>(kCount)).state("low", std::nextafter(-1.0f, 0.0f));
  normal.state("high", 1.0f).state("mean", 0.0f).state("deviation", 1.0f).run();
  const std::vector<float> numbers = normal.get<float>("out");
  const float expected[] = {-0.02830461598932743f, 0.4671318531036377f, 0.2957029640674591f, 0.15354591608047485f};
  for (unsigned i = 0; i < 4; ++i) CHECK_NEAR(numbers[i], expected[i], 4e-7f);
  double sum = 0, squares = 0;
  for (const float x : numbers) sum += x, squares += double(x) * x;
  CHECK_NEAR(sum / kCount, 0.0, 0.03);  // four standard errors of the mean: 4 / sqrt(20000)
  CHECK_NEAR(squares / kCount, 1.0, 0.04);

  Alone bernoulli(library, "snnjax::RandomBernoulli<bool>");
  withElements(bernoulli, 12).edge("out", std::vector<unsigned char>(12)).state("probability", 0.3f).run();
  CHECK((bernoulli.get<unsigned char>("out") == std::vector<unsigned char>{0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}));

  Alone integers(library, "snnjax::RandomUniform<int>");
  withElements(integers, kCount).edge("out", std::vector<int>(kCount)).state("low", -3).state("high", 4).run();
  const std::vector<int> drawn = integers.get<int>("out");
  CHECK_EQUAL(*std::min_element(drawn.begin(), drawn.end()), -3);
  CHECK_EQUAL(*std::max_element(drawn.begin(), drawn.end()), 3);
}

void test(const CodeletLibrary& library) {
  testBits(library);
  testUniform<float>(library, "float", 0, 1, {0x3efa3824, 0x3f2e0730, 0x3f1dc3f8, 0x3f0f9ec0});
  // Scaled by a product and a sum, each rounded; XLA on a CPU rounds once, which gives ...388 for the first.
  testUniform<float>(library, "float", -2, 3, {1055070384, 1068700152, 1066035692, 1062083008});
  testUniform<half>(library, "half", 0, 1, {11488, 12824, 15310, 14862});
  testDistributions(library);
  static_assert(snnjax::cycles::kThreefry == 117);
  static_assert(snnjax::cycles::random(10, snnjax::cycles::kStoreBits) == 40 + 10 * 121);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runForms(argc, argv, test); }
