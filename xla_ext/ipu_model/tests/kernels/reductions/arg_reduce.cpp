// ArgReduce alone: the first of equals, a NaN before any number.
#include <cmath>
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/reductions/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

struct Shape {
  unsigned outer, rows, inner;
};

const std::vector<Shape> kShapes = {{1, 1, 1}, {5, 6, 1}, {4, 7, 2}, {1, 40, 3}, {13, 3, 1}};

template <typename T>
bool isBefore(T a, T b, bool largest) {
  if (b != b) return false;
  return a != a || (largest ? a > b : a < b);
}

template <typename T>
void testShape(const CodeletLibrary& library, const std::string& type, Shape s, bool largest, bool has_numbers) {
  Draw draw(s.rows);
  std::vector<T> in(s.outer * s.rows * s.inner);
  for (T& x : in) x = static_cast<T>(draw.below(5));
  if constexpr (!std::is_integral_v<T>) {
    for (std::size_t i = 3; i < in.size(); i += 11) in[i] = static_cast<T>(NAN);
  }
  std::vector<int> numbers(has_numbers ? in.size() : 1);
  for (int& number : numbers) number = static_cast<int>(draw.below(1000)) - 500;
  Alone reduce(library, std::string("snnjax::ArgReduce<snnjax::") + (largest ? "Largest," : "Smallest,") + type + ">");
  reduce.edge("in", in).edge("numbers", numbers).edge("best", std::vector<T>(s.outer * s.inner));
  reduce.edge("number", std::vector<int>(s.outer * s.inner)).state("outer", s.outer).state("rows", s.rows);
  reduce.state("inner", s.inner).state("first_number", 70).state("has_numbers", has_numbers).run(true);
  const std::vector<T> best = reduce.get<T>("best");
  const std::vector<int> number = reduce.get<int>("number");
  for (unsigned i = 0; i < best.size(); ++i) {
    const unsigned first = i / s.inner * s.rows * s.inner + i % s.inner;
    unsigned found = 0;
    for (unsigned row = 1; row < s.rows; ++row) {
      if (isBefore(in[first + row * s.inner], in[first + found * s.inner], largest)) found = row;
    }
    const T expected = in[first + found * s.inner];
    CHECK(best[i] == expected || (best[i] != best[i] && expected != expected));
    CHECK_EQUAL(number[i], has_numbers ? numbers[first + found * s.inner] : 70 + static_cast<int>(found));
  }
}

void test(const CodeletLibrary& library) {
  for (const Shape s : kShapes) {
    for (const bool largest : {false, true}) {
      for (const bool has_numbers : {false, true}) {
        testShape<float>(library, "float", s, largest, has_numbers);
        testShape<half>(library, "half", s, largest, has_numbers);
        testShape<int>(library, "int", s, largest, has_numbers);
        testShape<unsigned>(library, "unsigned", s, largest, has_numbers);
      }
    }
  }
  namespace cycles = snnjax::cycles;
  static_assert(cycles::argReduce(2, 10, 4) - cycles::argReduce(0, 10, 4) == 2 * (20 + 40 + 1 + 80));
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
