// Cast alone: what conversions give at and beyond the limits of their types.
#include <limits>
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/elementwise/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <typename From, typename To>
void expect(const CodeletLibrary& library, const std::string& types, const std::vector<From>& in,
            const std::vector<To>& expected) {
  Alone cast(library, "snnjax::Cast<" + types + ">");
  cast.edge("in", in).edge("out", std::vector<To>(in.size())).state("count", unsigned(in.size()));
  const std::vector<To> out = cast.run(true).template get<To>("out");
  CHECK(std::memcmp(out.data(), expected.data(), out.size() * sizeof(To)) == 0);
}

void test(const CodeletLibrary& library) {
  constexpr int kLargest = std::numeric_limits<int>::max(), kLowest = std::numeric_limits<int>::min();
  expect<float, int>(library, "float,int", {1.9f, -1.9f, 3e9f, -3e9f, kInfinity, -kInfinity, kNaN, 2147483520.0f},
                     {1, -1, kLargest, kLowest, kLargest, kLowest, 0, 2147483520});
  expect<float, unsigned>(library, "float,unsigned", {-1, 4294967040.0f, 5e9f, kNaN}, {0, 4294967040u, 4294967295u, 0});
  expect<half, signed char>(library, "half,signed char", {half(127.5f), half(128), half(-129)}, {127, 127, -128});
  expect<float, unsigned short>(library, "float,unsigned short", {65535.9f, 65536, 0.5f}, {65535, 65535, 0});
  expect<int, unsigned char>(library, "int,unsigned char", {256, -1, 77}, {0, 255, 77});
  expect<int, float>(library, "int,float", {16777217, -5}, {16777216, -5});
  expect<float, unsigned char>(library, "float,bool", {0, -0.0f, 0.25f, kNaN}, {0, 0, 1, 1});
  expect<unsigned char, half>(library, "bool,half", {1, 0}, {half(1), half(0)});
  // To the nearest half, ties to even; 65520 is the first that overflows.
  expect<float, half>(library, "float,half", {2049, 2051, 65519, 65520, 5.9e-8f},
                      {half(2048), half(2052), half(65504), half(kInfinity), half(0x1p-24f)});
  expect<half, float>(library, "half,float", {half(0.1f), half(0x1p-24f)}, {0.0999755859375f, 0x1p-24f});

  static_assert(snnjax::cycles::cast(100, true, 1) == 19 + 25 * 5);
  static_assert(snnjax::cycles::cast(100, false, 1) == 519 && snnjax::cycles::cast(100, false, 4) == 919);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
