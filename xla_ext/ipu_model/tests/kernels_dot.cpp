// The codelets of dot.cpp alone, against products on the host.
#include <cmath>
#include <poplar/HalfFloat.hpp>

#include "kernels_alone.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

struct Shape {
  unsigned rows, depth, columns;
};

// Widths of one, of whole blocks of 8, of whole vectors, and odd ones; nothing to sum.
const std::vector<Shape> kShapes = {{1, 1, 1}, {3, 5, 8}, {2, 6, 12}, {7, 4, 3}, {1, 9, 17}, {13, 8, 10}, {2, 0, 4}};

// Where element (row, k) of a, or (k, column) of b, lies.
template <typename T>
struct Matrix {
  std::vector<T> elements;
  unsigned outer_step, inner_step;
  float operator()(unsigned i, unsigned j) const {
    return static_cast<float>(elements[i * outer_step + j * inner_step]);
  }
};

// Eighths and sums of few of their products are exact in half as well as in float: no order of sums matters.
template <typename T, typename R>
void testProduct(const CodeletLibrary& library, const std::string& name, Shape s, bool accumulate) {
  const bool left_transposed = name.starts_with("TransposedDot"), right_transposed = name.starts_with("DotTransposed");
  Draw draw(s.rows * 100 + s.columns);
  const Matrix<T> a = {draw.row<T>(s.rows * s.depth), left_transposed ? 1 : s.depth, left_transposed ? s.rows : 1};
  const Matrix<T> b = {draw.row<T>(s.depth * s.columns), right_transposed ? 1 : s.columns,
                       right_transposed ? s.depth : 1};
  const std::vector<R> before = draw.row<R>(s.rows * s.columns);
  Alone dot(library, "snnjax::" + name);
  dot.edge("a", a.elements).edge("b", b.elements).edge("out", before).state("rows", s.rows).state("depth", s.depth);
  dot.state("columns", s.columns).state("accumulate", accumulate);
  const std::vector<R> out = dot.run(true).template get<R>("out");
  for (unsigned row = 0; row < s.rows; ++row) {
    for (unsigned column = 0; column < s.columns; ++column) {
      const unsigned i = row * s.columns + column;
      double sum = accumulate ? static_cast<double>(before[i]) : 0.0;
      for (unsigned k = 0; k < s.depth; ++k) sum += static_cast<double>(a(row, k)) * static_cast<double>(b(k, column));
      CHECK_NEAR(static_cast<double>(out[i]), sum, sizeof(R) == 2 ? 0.25 : 0.0);
    }
  }
}

void test(const CodeletLibrary& library) {
  for (const Shape shape : kShapes) {
    for (const bool accumulate : {false, true}) {
      for (const std::string name : {"Dot", "TransposedDot", "DotTransposed"}) {
        testProduct<float, float>(library, name + "<float,float>", shape, accumulate);
        testProduct<half, float>(library, name + "<half,float>", shape, accumulate);
        testProduct<half, half>(library, name + "<half,half>", shape, accumulate);
      }
    }
  }
}

// A NaN or an infinity in an operand reaches the sums of its own row and column, and no other.
void testNotANumber(const CodeletLibrary& library) {
  std::vector<float> a(4 * 2, 1.0f);
  a[2] = NAN;  // row 1
  Alone dot(library, "snnjax::Dot<float,float>");
  dot.edge("a", a).edge("b", std::vector<float>(2 * 8, 1.0f)).edge("out", std::vector<float>(4 * 8));
  dot.state("rows", 4U).state("depth", 2U).state("columns", 8U).state("accumulate", false);
  const auto out = dot.run().get<float>("out");
  for (unsigned i = 0; i < 8; ++i) CHECK(out[i] == 2.0f && out[16 + i] == 2.0f);
  CHECK(std::isnan(out[8]) && std::isnan(out[15]));
}

}  // namespace

int main(int argc, char** argv) {
  return runForms(argc, argv, [](const CodeletLibrary& library) {
    test(library);
    testNotANumber(library);
  });
}
