// The codelets of sort_numbers.cpp alone, against the standard library's stable sort.
#include <cmath>
#include <limits>
#include <numeric>
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/movement/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

// Zeros are equal, a NaN is above all.
template <typename T>
bool isBelow(T a, T b) {
  return a < b || (b != b && a == a);
}

template <typename T>
void testOrder(const CodeletLibrary& library, const std::string& type, const std::vector<T>& in) {
  for (const bool descending : {false, true}) {
    Alone order(library, "snnjax::OrderedBits<" + type + ">");
    order.edge("in", in).edge("out", std::vector<unsigned>(in.size()));
    order.state("count", static_cast<unsigned>(in.size())).state("descending", descending);
    order.state("total", false);
    const std::vector<unsigned> bits = order.run(true).template get<unsigned>("out");
    for (std::size_t i = 0; i < in.size(); ++i) {
      for (std::size_t j = 0; j < in.size(); ++j) {
        CHECK_EQUAL(bits[i] < bits[j], descending ? isBelow(in[j], in[i]) : isBelow(in[i], in[j]));
      }
    }
  }
}

template <typename T>
void testTotalOrder(const CodeletLibrary& library, const std::string& type, const std::vector<T>& ascending) {
  Alone order(library, "snnjax::OrderedBits<" + type + ">");
  order.edge("in", ascending).edge("out", std::vector<unsigned>(ascending.size()));
  order.state("count", static_cast<unsigned>(ascending.size())).state("descending", false).state("total", true);
  const std::vector<unsigned> bits = order.run(true).template get<unsigned>("out");
  for (std::size_t i = 1; i < bits.size(); ++i) CHECK(bits[i - 1] < bits[i]);
}

Alone& setSort(Alone& sort, const std::vector<unsigned>& keys, const std::vector<unsigned>& numbers, unsigned rows,
               unsigned parts, unsigned sorted) {
  const auto elements = static_cast<unsigned>(numbers.size());
  sort.edge("keys", keys).edge("numbers", numbers).edge("scratch", numbers).state("rows", rows);
  sort.state("num_keys", static_cast<unsigned>(keys.size()) / elements).state("length", elements / rows);
  return sort.state("parts", parts).state("sorted", sorted);
}

void testSort(const CodeletLibrary& library, unsigned num_keys, unsigned rows, unsigned length) {
  const unsigned elements = rows * length;
  Draw draw(elements);
  std::vector<unsigned> keys(num_keys * elements), numbers(elements), expected(elements);
  for (unsigned& key : keys) key = draw.below(4) == 0 ? draw.bits() : draw.below(3);
  std::iota(expected.begin(), expected.end(), 0u);
  for (unsigned row = 0; row < rows; ++row) {
    std::stable_sort(expected.begin() + row * length, expected.begin() + (row + 1) * length, [&](auto a, auto b) {
      for (unsigned key = 0; key < num_keys; ++key) {
        const unsigned of_a = keys[key * elements + a], of_b = keys[key * elements + b];
        if (of_a != of_b) return of_a < of_b;
      }
      return false;
    });
  }
  Alone sort(library, "snnjax::SortNumbers");
  CHECK(setSort(sort, keys, numbers, rows, 1, 1).run(true).get<unsigned>("numbers") == expected);
  for (const unsigned parts : {2u, 4u, 6u}) {
    const unsigned part = (length + parts - 1) / parts;
    Alone first(library, "snnjax::SortNumbers"), whole(library, "snnjax::SortNumbers");
    const std::vector<unsigned> sorted =
        setSort(first, keys, numbers, rows, parts, 1).run(true).get<unsigned>("numbers");
    if (part < 2) continue;  // 1 would say that they need not be set
    CHECK(setSort(whole, keys, sorted, rows, 1, part).run(true).get<unsigned>("numbers") == expected);
  }
}

template <typename T>
void testTake(const CodeletLibrary& library, const std::string& type, unsigned count) {
  constexpr unsigned kRows = 3, kLength = 7;
  Draw draw(count);
  std::vector<T> in(kRows * kLength);
  std::vector<unsigned> numbers(in.size());
  for (T& x : in) x = static_cast<T>(draw.bits());
  for (unsigned& number : numbers) number = draw.below(kRows * kLength);
  Alone take(library, "snnjax::TakeNumbers<" + type + ">");
  take.edge("in", in).edge("numbers", numbers).edge("out", std::vector<T>(kRows * count)).state("rows", kRows);
  const std::vector<T> out = take.state("length", kLength).state("count", count).run(true).template get<T>("out");
  for (unsigned i = 0; i < out.size(); ++i) CHECK_EQUAL(out[i], in[numbers[i / count * kLength + i % count]]);
}

void test(const CodeletLibrary& library) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  testOrder<float>(library, "float", {3, kNaN, -0.0f, 0, -kInfinity, kInfinity, -kNaN, -1, 1e-40f, 3});
  testOrder<half>(library, "half", {half(3), half(kNaN), half(-0.0f), half(0), half(-1), half(-kInfinity)});
  testOrder<int>(library, "int", {3, 0, -1, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()});
  testOrder<unsigned>(library, "unsigned", {3, 0, 0xffffffffU, 0x80000000U, 0x7fffffffU});
  testTotalOrder<float>(library, "float", {-kNaN, -kInfinity, -1, -1e-40f, -0.0f, 0, 1e-40f, 1, kInfinity, kNaN});
  testTotalOrder<half>(library, "half", {half(-kInfinity), half(-1), half(-0.0f), half(0), half(1), half(kInfinity)});
  for (const unsigned keys : {1u, 3u}) {
    testSort(library, keys, 1, 1);
    testSort(library, keys, 1, 100);
    testSort(library, keys, 9, 13);
    testSort(library, keys, 7, 32);
  }
  for (const unsigned count : {1u, 3u, 7u}) {
    testTake<unsigned>(library, "unsigned", count);
    testTake<unsigned short>(library, "unsigned short", count);
    testTake<unsigned char>(library, "unsigned char", count);
  }
  namespace cycles = snnjax::cycles;
  static_assert(cycles::orderedBits(5) - cycles::orderedBits(0) == 60);
  static_assert(cycles::sortNumbers(1, 4, 2, 1) - cycles::sortNumbers(0, 4, 2, 1) == 92 + 4 * 15 + 10 + 4 * 3);
  static_assert(cycles::takeNumbers(5, 4) - cycles::takeNumbers(0, 4) == 45);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
