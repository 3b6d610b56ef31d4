// The codelets of matrix_unit.cpp alone, against products and sums on the host; and what they cost.
#include <array>
#include <cmath>
#include <poplar/HalfFloat.hpp>
#include <utility>

#include "kernels/alone.hpp"
#include "poplar_kernels/products/matrix_unit_cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

// Launch and rendezvous of a compute set, as the model counts them besides (chips.cpp).
constexpr double kComputeSet = 38;

// By hand: a block of halves and 18 rows, three a worker. 50 + 6 + 42 around it, loops 13 + 11, 18 + 7 + 32 for the
// block; a worker 37 - 7.
static_assert(snnjax::cycles::matrixProduct(18, 16, 16, true) == 98 + 24 + 57 + 6 * 30);
// Floats: twice the depth takes one block more, 16 + 25 + 32 and 46 a worker.
static_assert(snnjax::cycles::matrixProduct(18, 16, 16, false) - snnjax::cycles::matrixProduct(18, 8, 16, false) ==
              73 + 6 * 46);
// 64 multiply-adds a cycle of halves, 16 of floats: 24 and 48 cycles for six rows more.
static_assert(snnjax::cycles::matrixProduct(606, 16, 16, true) - snnjax::cycles::matrixProduct(600, 16, 16, true) ==
              24);
static_assert(snnjax::cycles::matrixProduct(606, 16, 16, false) - snnjax::cycles::matrixProduct(600, 16, 16, false) ==
              2 * 48 + 48);  // two blocks, and the sums of the first cleared

// Points of graphcore-research/tessellate-ipu, "IPU Peak Flops", a Bow: rows of 16 and cycles.
void testPublishedLine() {
  constexpr std::array<std::pair<unsigned, double>, 8> kMeasured = {
      {{16, 402}, {48, 524}, {64, 584}, {128, 845.34}, {256, 1352}, {512, 2381.35}, {1024, 4424}, {2048, 8525.34}}};
  for (const auto& [rows, cycles] : kMeasured) {
    const double predicted = kComputeSet + static_cast<double>(snnjax::cycles::matrixProduct(rows, 16, 16, true));
    CHECK_NEAR(predicted / cycles, 1.0, 0.02);
  }
}

struct Shape {
  unsigned rows, depth, columns;
};

// One number, whole and odd blocks of columns, a depth of more than one part; nothing to sum.
const std::vector<Shape> kShapes = {{1, 1, 1}, {3, 5, 8}, {2, 6, 33}, {7, 130, 3}, {13, 8, 40}, {2, 0, 4}};

// Where element (i, j) of an operand lies.
template <typename T>
struct Matrix {
  std::vector<T> elements;
  unsigned outer_step, inner_step;
  double operator()(unsigned i, unsigned j) const {
    return static_cast<double>(elements[i * outer_step + j * inner_step]);
  }
};

// Eighths and sums of few of their products are exact in half as well as in float: no order of sums matters.
template <typename T, typename R>
void testProduct(const CodeletLibrary& library, const std::string& name, Shape s, bool a_across, bool b_deep,
                 bool accumulate) {
  Draw draw(s.rows * 100 + s.columns);
  const Matrix<T> a = {draw.row<T>(s.rows * s.depth), a_across ? 1 : s.depth, a_across ? s.rows : 1};
  const Matrix<T> b = {draw.row<T>(s.depth * s.columns), b_deep ? 1 : s.columns, b_deep ? s.depth : 1};
  const std::vector<R> before = draw.row<R>(s.rows * s.columns);
  Alone product(library, "snnjax::MatrixProduct" + name);
  product.edge("a", a.elements).edge("b", b.elements).edge("out", before);
  product.state("rows", s.rows).state("depth", s.depth).state("columns", s.columns);
  product.state("a_across", a_across).state("b_deep", b_deep).state("holds_a", b_deep).state("transposed", 0U);
  const std::vector<R> out = product.state("accumulate", accumulate).run(true).template get<R>("out");
  for (unsigned row = 0; row < s.rows; ++row) {
    for (unsigned column = 0; column < s.columns; ++column) {
      const unsigned i = row * s.columns + column;
      double sum = accumulate ? static_cast<double>(before[i]) : 0.0;
      for (unsigned k = 0; k < s.depth; ++k) sum += a(row, k) * b(k, column);
      CHECK_NEAR(static_cast<double>(out[i]), sum, sizeof(R) == 2 ? 0.5 : 0.0);
    }
  }
}

void testProducts(const CodeletLibrary& library) {
  for (const Shape shape : kShapes) {
    for (const unsigned form : {0U, 1U, 2U, 3U, 4U}) {
      const bool a_across = form % 2 == 1, b_deep = form / 2 == 1, accumulate = form != 2;
      testProduct<float, float>(library, "<float,float>", shape, a_across, b_deep, accumulate);
      testProduct<half, float>(library, "<half,float>", shape, a_across, b_deep, accumulate);
      testProduct<half, half>(library, "<half,half>", shape, a_across, b_deep, accumulate);
    }
  }
}

// A NaN in an operand reaches the sums of its own row and column, and no other.
void testNotANumber(const CodeletLibrary& library) {
  std::vector<float> a(4 * 2, 1.0f);
  a[2] = NAN;  // row 1
  Alone product(library, "snnjax::MatrixProduct<float,float>");
  product.edge("a", a).edge("b", std::vector<float>(2 * 8, 1.0f)).edge("out", std::vector<float>(4 * 8));
  product.state("rows", 4U).state("depth", 2U).state("columns", 8U).state("accumulate", false);
  product.state("a_across", false).state("b_deep", false).state("holds_a", false).state("transposed", 0U);
  const auto out = product.run().get<float>("out");
  for (unsigned i = 0; i < 8; ++i) CHECK(out[i] == 2.0f && out[16 + i] == 2.0f);
  CHECK(std::isnan(out[8]) && std::isnan(out[15]));
}

void testSums(const CodeletLibrary& library) {
  for (const unsigned count : {1U, 6U, 75U, 200U}) {
    for (const unsigned parts : {1U, 3U}) {
      Draw draw(count);
      const std::vector<float> in = draw.row<float>(parts * count);
      Alone sum(library, "snnjax::SumPartials<float,half>");
      sum.edge("in", in).edge("out", std::vector<half>(count)).state("parts", parts).state("count", count);
      const auto out = sum.run(true).get<half>("out");
      for (unsigned i = 0; i < count; ++i) {
        float expected = 0.0f;
        for (unsigned k = 0; k < parts; ++k) expected += in[k * count + i];
        CHECK_NEAR(static_cast<float>(out[i]), expected, 0.0f);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  testPublishedLine();
  return runTest(argc, argv, [](const CodeletLibrary& library) {
    testProducts(library);
    testNotANumber(library);
    testSums(library);
  });
}
