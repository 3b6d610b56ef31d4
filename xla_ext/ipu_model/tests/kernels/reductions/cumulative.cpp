// Cumulative alone, every operation and type, both ways, from nothing or from what came before.
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/reductions/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

double combine(const std::string& op, double a, double x) {
  if (op == "Sum") return a + x;
  if (op == "Product") return a * x;
  return op == "Largest" ? std::max(a, x) : std::min(a, x);
}

// Numbers whose running sums and products are exact in half. A is what results run in.
template <typename T, typename A>
void testOp(const CodeletLibrary& library, const std::string& op, const std::string& type, unsigned rows,
            unsigned length, bool continues, bool reverse) {
  Draw draw(rows + length);
  std::vector<T> in(rows * length);
  for (T& x : in) x = static_cast<T>(op == "Product" ? 1 + static_cast<int>(draw.below(16) == 0) : draw.below(7));
  std::vector<A> before(continues ? rows : 1);
  for (A& x : before) x = static_cast<A>(1 + draw.below(3));
  Alone running(library, "snnjax::Cumulative<snnjax::" + op + "," + type + ">");
  running.edge("in", in).edge("before", before).edge("out", std::vector<T>(in.size())).state("rows", rows);
  running.state("length", length).state("continues", continues).state("reverse", reverse);
  const std::vector<T> out = running.run(true).template get<T>("out");
  for (unsigned row = 0; row < rows; ++row) {
    double result = continues ? static_cast<double>(before[row]) : 0.0;
    for (unsigned k = 0; k < length; ++k) {
      const unsigned i = row * length + (reverse ? length - 1 - k : k);
      const auto x = static_cast<double>(in[i]);
      result = k == 0 && !continues ? x : combine(op, result, x);
      CHECK_EQUAL(static_cast<double>(out[i]), result);
    }
  }
}

void test(const CodeletLibrary& library) {
  for (const std::string op : {"Sum", "Product", "Largest", "Smallest"}) {
    for (const bool continues : {false, true}) {
      for (const bool reverse : {false, true}) {
        for (const auto& [rows, length] : {std::pair{1u, 1u}, std::pair{7u, 13u}, std::pair{2u, 40u}}) {
          testOp<float, float>(library, op, "float", rows, length, continues, reverse);
          testOp<half, float>(library, op, "half", rows, length, continues, reverse);
          testOp<int, int>(library, op, "int", rows, length, continues, reverse);
          testOp<unsigned, unsigned>(library, op, "unsigned", rows, length, continues, reverse);
        }
      }
    }
  }
  namespace cycles = snnjax::cycles;
  static_assert(cycles::cumulative(3, 10, 4) - cycles::cumulative(0, 10, 4) == 3 * (12 + 10 * 6));
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
