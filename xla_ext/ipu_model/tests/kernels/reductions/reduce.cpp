// Reduce alone, every operation and type, against a loop on the host.
#include <cmath>
#include <limits>
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

struct Shape {
  unsigned outer, rows, inner;
};

// Rows side by side and apart, even and odd; nothing to reduce; one number.
const std::vector<Shape> kShapes = {{1, 1, 1}, {5, 6, 1}, {4, 7, 1}, {3, 4, 2},
                                    {1, 9, 8}, {2, 3, 5}, {7, 2, 3}, {3, 0, 2}};

double combine(const std::string& op, double a, double x) {
  if (op == "Sum") return a + x;
  if (op == "SquareSum") return a + x * x;
  if (op == "Product") return a * x;
  if (op == "Largest") return std::max(a, x);
  if (op == "Smallest") return std::min(a, x);
  return op == "AllOf" ? (a != 0 && x != 0) : (a != 0 || x != 0);
}

template <typename T>
double neutral(const std::string& op) {
  using Limits = std::numeric_limits<T>;
  if (op == "Product" || op == "AllOf") return 1;
  if (op == "Largest") return Limits::has_infinity ? -INFINITY : static_cast<double>(Limits::lowest());
  if (op == "Smallest") return Limits::has_infinity ? INFINITY : static_cast<double>(Limits::max());
  return 0;
}

template <typename T, typename R>
std::vector<R> reduce(const CodeletLibrary& library, const std::string& type, Shape s, const std::vector<T>& in) {
  Alone vertex(library, "snnjax::Reduce<" + type + ">");
  vertex.edge("in", in).edge("out", std::vector<R>(s.outer * s.inner)).state("outer", s.outer);
  return vertex.state("rows", s.rows).state("inner", s.inner).run(true).template get<R>("out");
}

// `draw()` makes numbers whose sums, squares and products are exact.
template <typename T, typename R, typename Drawing>
void testOp(const CodeletLibrary& library, const std::string& op, const std::string& types, Drawing&& draw) {
  for (const Shape s : kShapes) {
    std::vector<T> in(s.outer * s.rows * s.inner);
    for (T& x : in) x = static_cast<T>(draw());
    const std::vector<R> out = reduce<T, R>(library, op + "," + types, s, in);
    for (unsigned i = 0; i < out.size(); ++i) {
      double result = neutral<T>(op);
      for (unsigned row = 0; row < s.rows; ++row) {
        const T x = in[(i / s.inner * s.rows + row) * s.inner + i % s.inner];
        result = combine(op, result, static_cast<double>(x));
      }
      CHECK_EQUAL(static_cast<double>(out[i]), result);
    }
  }
}

void test(const CodeletLibrary& library) {
  Draw draw(1);
  const auto quarter = [&] { return (static_cast<float>(draw.below(17)) - 8.0f) / 4.0f; };
  const auto sign = [&] { return draw.below(2) == 0 ? -1.0f : 2.0f; };
  const auto natural = [&] { return static_cast<float>(draw.below(9)); };
  for (const std::string op : {"Sum", "SquareSum", "Product", "Largest", "Smallest"}) {
    const auto real = [&] { return op == "Product" ? sign() : quarter(); };
    testOp<float, float>(library, op, "float,float", real);
    testOp<float, half>(library, op, "float,half", real);
    testOp<half, float>(library, op, "half,float", real);
    testOp<half, half>(library, op, "half,half", real);
    testOp<int, int>(library, op, "int,int", [&] { return op == "Product" ? sign() : 4 * quarter(); });
    testOp<unsigned, unsigned>(library, op, "unsigned,unsigned", natural);
  }
}

void testLogic(const CodeletLibrary& library) {
  for (const Shape s : kShapes) {
    for (unsigned first_false = 0; first_false < 3; ++first_false) {
      std::vector<unsigned char> in(s.outer * s.rows * s.inner, 1);
      for (std::size_t i = first_false; i < in.size(); i += 5) in[i] = 0;
      const auto all = reduce<unsigned char, unsigned char>(library, "AllOf,bool,bool", s, in);
      const auto any = reduce<unsigned char, unsigned char>(library, "AnyOf,bool,bool", s, in);
      for (unsigned i = 0; i < all.size(); ++i) {
        unsigned trues = 0;
        for (unsigned row = 0; row < s.rows; ++row) {
          trues += in[(i / s.inner * s.rows + row) * s.inner + i % s.inner];
        }
        CHECK_EQUAL(all[i], trues == s.rows);
        CHECK_EQUAL(any[i], trues > 0);
      }
    }
  }
}

template <typename T>
void testBits(const CodeletLibrary& library, const std::string& op, const std::string& type) {
  Draw draw(7);
  for (const Shape s : kShapes) {
    std::vector<T> in(s.outer * s.rows * s.inner);
    for (T& x : in) x = static_cast<T>(draw.bits());
    const std::vector<T> out = reduce<T, T>(library, op + "," + type + "," + type, s, in);
    for (unsigned i = 0; i < out.size(); ++i) {
      T result = op == "BitAnd" ? static_cast<T>(~T(0)) : T(0);
      for (unsigned row = 0; row < s.rows; ++row) {
        const T x = in[(i / s.inner * s.rows + row) * s.inner + i % s.inner];
        result = static_cast<T>(op == "BitAnd" ? result & x : op == "BitOr" ? result | x : result ^ x);
      }
      CHECK_EQUAL(out[i], result);
    }
  }
}

void testBits(const CodeletLibrary& library) {
  for (const std::string op : {"BitAnd", "BitOr", "BitXor"}) testBits<unsigned>(library, op, "unsigned");
  for (const std::string op : {"BitAnd", "BitOr", "BitXor"}) testBits<unsigned char>(library, op, "unsigned char");
  testBits<unsigned short>(library, "BitOr", "unsigned short");
}

// Halves are summed as floats: 2048 + 1 + 1 would stay 2048 in half. Sums of integers wrap around. NaN is the largest.
void testEdges(const CodeletLibrary& library) {
  const std::vector<half> halves = {half(2048), half(1), half(1)};
  CHECK((reduce<half, float>(library, "Sum,half,float", {1, 3, 1}, halves)[0]) == 2050.0f);
  CHECK((reduce<half, half>(library, "Sum,half,half", {1, 3, 1}, halves)[0]) == half(2050));
  CHECK((reduce<int, int>(library, "Sum,int,int", {1, 2, 1}, {0x7fffffff, 1})[0]) == -0x7fffffff - 1);
  for (const std::string op : {"Largest", "Smallest"}) {
    for (const Shape s : {Shape{1, 4, 1}, Shape{1, 4, 2}}) {
      std::vector<float> in(s.rows * s.inner, 1.0f);
      in[2] = NAN;
      CHECK(std::isnan(reduce<float, float>(library, op + ",float,float", s, in)[0]));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return runTest(argc, argv, [](const CodeletLibrary& library) {
    test(library);
    testLogic(library);
    testBits(library);
    testEdges(library);
  });
}
