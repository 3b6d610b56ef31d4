// poplin::matMul against the product on the host, over shapes, operands' layouts and numbers of tiles.
#include <cmath>
#include <poplin/MatMul.hpp>
#include <popops/Cast.hpp>
#include <poputil/exceptions.hpp>
#include <random>

#include "poplibs/program.hpp"

using namespace poplibs_test;

namespace {

struct Sizes {
  std::size_t m, k, n;
};

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, const Sizes& s) {
  std::vector<float> c(s.m * s.n);
  for (std::size_t i = 0; i < s.m; ++i) {
    for (std::size_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < s.k; ++k)
        sum += static_cast<double>(a[i * s.k + k]) * static_cast<double>(b[k * s.n + j]);
      c[i * s.n + j] = static_cast<float>(sum);
    }
  }
  return c;
}

void checkNear(const std::vector<float>& got, const std::vector<float>& expected, float tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK_NEAR(got[i], expected[i], tolerance);
}

void productsMatchTheHost() {
  const std::vector<Sizes> cases = {{1, 1, 1}, {5, 300, 1}, {1, 700, 9}, {20, 16, 33}, {64, 50, 48}, {3, 0, 4}};
  for (const unsigned tiles : kTileCounts) {
    for (const Sizes& s : cases) {
      Run run(tiles);
      const auto a = randomFloats(s.m * s.k, tiles), b = randomFloats(s.k * s.n, tiles + 1);
      const Tensor ta = run.input({s.m, s.k}, a), tb = run.input({s.k, s.n}, b);
      const auto plain = run.output(poplin::matMul(run.graph, ta, tb, run.prog));
      const Tensor lhs = poplin::createMatMulInputLHS(run.graph, poplar::FLOAT, {s.m, s.k}, {s.k, s.n}, "lhs");
      const Tensor rhs = poplin::createMatMulInputRHS(run.graph, poplar::FLOAT, {s.m, s.k}, {s.k, s.n}, "rhs");
      run.prog.add(poplar::program::Copy(ta, lhs));
      run.prog.add(poplar::program::Copy(tb, rhs));
      const auto laid_out = run.output(poplin::matMul(run.graph, lhs, rhs, run.prog, poplar::FLOAT, "product"));
      run.run();
      checkNear(run.read<float>(plain, s.m * s.n), product(a, b, s), 1e-2F);
      checkNear(run.read<float>(laid_out, s.m * s.n), product(a, b, s), 1e-2F);
    }
  }
}

// Random shapes, with so little memory that the depth of some comes in steps.
void randomShapesInLittleMemory() {
  std::mt19937 random(5);
  const auto size = [&random](unsigned most) { return std::size_t{1 + random() % most}; };
  for (unsigned i = 0; i < 12; ++i) {
    const Sizes s{size(60), size(400), size(60)};
    Run run(i % 2 == 0 ? 1 : 5);
    const auto a = randomFloats(s.m * s.k, i), b = randomFloats(s.k * s.n, i + 100);
    const poplar::OptionFlags options{{"availableMemoryProportion", "0.02"}};
    const Tensor lhs = poplin::createMatMulInputLHS(run.graph, poplar::FLOAT, {s.m, s.k}, {s.k, s.n}, "lhs", options);
    const Tensor rhs = poplin::createMatMulInputRHS(run.graph, poplar::FLOAT, {s.m, s.k}, {s.k, s.n}, "rhs", options);
    run.prog.add(poplar::program::Copy(run.input({s.m, s.k}, a), lhs));
    run.prog.add(poplar::program::Copy(run.input({s.k, s.n}, b), rhs));
    const auto out = run.output(poplin::matMul(run.graph, lhs, rhs, run.prog, poplar::FLOAT, "product", options));
    run.run();
    checkNear(run.read<float>(out, s.m * s.n), product(a, b, s), 1e-2F);
  }
}

void halvesAndTransposes() {
  Run run(7);
  const Sizes s{6, 40, 10};
  const auto a = randomFloats(s.m * s.k, 1, -1, 1), b = randomFloats(s.k * s.n, 2, -1, 1);
  const Tensor ta = run.input(poplar::HALF, {6, 40}, a), tb = run.input(poplar::HALF, {40, 10}, b);
  const auto wide = run.output(poplin::matMul(run.graph, ta, tb, run.prog, poplar::FLOAT));
  const Tensor narrow = poplin::matMul(run.graph, ta, tb, run.prog, "narrow", {{"partialsType", "half"}});
  CHECK(narrow.elementType() == poplar::HALF);
  const auto out_narrow = run.output(popops::cast(run.graph, narrow, poplar::FLOAT, run.prog));
  const Tensor fa = run.input({6, 40}, a), fb = run.input({40, 10}, b);
  const auto transposed = run.output(poplin::matMul(run.graph, fb.transpose(), fa.transpose(), run.prog));
  run.run();
  const auto expected = product(a, b, s), got = run.read<float>(transposed, 60);
  checkNear(run.read<float>(wide, 60), expected, 0.02F);
  checkNear(run.read<float>(out_narrow, 60), expected, 0.1F);
  for (std::size_t i = 0; i < 60; ++i) CHECK_NEAR(got[i % 10 * 6 + i / 10], expected[i], 1e-4F);
}

void mistakesAreNamed() {
  Run run(1);
  const Tensor a = run.input({2, 3}, randomFloats(6, 1)), h = run.input(poplar::HALF, {3, 2}, randomFloats(6, 1));
  CHECK_THROWS(poplin::matMul(run.graph, a, a, run.prog), "`a, b` must be {m, k} and {k, n}, got {2,3} and {2,3}");
  CHECK_THROWS(poplin::matMul(run.graph, a, h, run.prog), "must be both float or both half");
  for (const char* share : {"-1", "1.5", "1e30", "nan", "half", "0.5x", ""}) {
    const poplar::OptionFlags options{{"availableMemoryProportion", share}};
    const Tensor b = a.transpose();
    CHECK_THROWS(poplin::matMul(run.graph, a, b, run.prog, poplar::FLOAT, {}, options),
                 "`availableMemoryProportion` must be a number from 0 to 1, got " + std::string(share) + ".");
  }
}

}  // namespace

int main() {
  productsMatchTheHost();
  randomShapesInLittleMemory();
  halvesAndTransposes();
  mistakesAreNamed();
  return check::failures;
}
