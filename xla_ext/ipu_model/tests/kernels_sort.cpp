// The codelets of sort.cpp alone, against the standard library's stable sort.
#include <cmath>
#include <limits>
#include <numeric>
#include <poplar/HalfFloat.hpp>

#include "../../../poplar_kernels/sort_cycles.hpp"
#include "kernels_alone.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

template <typename K>
bool isLess(K a, K b) {
  return a < b || (b != b && a == a);
}

// Sorts rows with their old places as values, both ways, and compares.
template <typename K>
void testSort(const CodeletLibrary& library, const std::string& type, const std::vector<K>& keys, unsigned rows,
              bool descending) {
  const unsigned length = static_cast<unsigned>(keys.size()) / rows;
  std::vector<unsigned> places(keys.size());
  std::iota(places.begin(), places.end(), 0u);
  const auto set = [&](Alone& vertex) -> Alone& {
    vertex.edge("keys", keys).edge("scratch", keys).state("rows", rows).state("length", length);
    return vertex.state("sorted", 1u).state("descending", descending);
  };
  Alone pairs(library, "snnjax::SortRowsWithValues<" + type + ",unsigned>");
  set(pairs).edge("values", places).edge("scratch_values", places).run(true);
  const std::vector<K> sorted = pairs.get<K>("keys");
  const std::vector<unsigned> sorted_places = pairs.get<unsigned>("values");

  const auto before = [&](unsigned a, unsigned b) {
    return descending ? isLess(keys[b], keys[a]) : isLess(keys[a], keys[b]);
  };
  for (unsigned row = 0; row < rows; ++row) {
    const auto first = places.begin() + row * length;
    std::stable_sort(first, first + length, before);
  }
  CHECK(sorted_places == places);
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(std::memcmp(&sorted[i], &keys[places[i]], sizeof(K)) == 0);
}

// One long row as six, then as one.
void testLongRow(const CodeletLibrary& library) {
  std::vector<float> keys = Draw(5).row(100);
  const auto sorted = [&](unsigned rows, unsigned length, unsigned known) {
    Alone sort(library, "snnjax::SortRowsWithValues<float,unsigned>");
    sort.edge("values", std::vector<unsigned>(100)).edge("scratch_values", std::vector<unsigned>(100));
    sort.edge("keys", keys).edge("scratch", keys).state("rows", rows).state("length", length);
    sort.state("sorted", known).state("descending", false).run();
    return sort.get<float>("keys");
  };
  keys = sorted(5, 20, 1);
  keys = sorted(1, 100, 20);
  CHECK(std::is_sorted(keys.begin(), keys.end()));
}

void test(const CodeletLibrary& library) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  for (const bool descending : {false, true}) {
    testSort<float>(library, "float", Draw(1).row(7 * 33), 7, descending);
    testSort<half>(library, "half", Draw(2).row<half>(9 * 13), 9, descending);
    testSort<int>(library, "int", Draw(3).row<int>(64), 1, descending);
    testSort<unsigned>(library, "unsigned", {3, 0, 4294967295u, 3}, 2, descending);
    testSort<float>(library, "float", {1, kNaN, -kInfinity, 0, kNaN, -0.0f, kInfinity}, 1, descending);
    testSort<float>(library, "float", {1}, 1, descending);
  }
  testLongRow(library);
  static_assert(snnjax::cycles::sortRows(0, 100, 1) == 40);
  static_assert(snnjax::cycles::sortRows(1, 1, 1) == 52);
  static_assert(snnjax::cycles::sortRows(1, 4, 1) == 40 + 12 + 2 * 4 * 14 + 3 * 10);
  static_assert(snnjax::cycles::sortRows(1, 4, 2) == 40 + 12 + 4 * 14 + 10 + 4 * 5);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runForms(argc, argv, test); }
