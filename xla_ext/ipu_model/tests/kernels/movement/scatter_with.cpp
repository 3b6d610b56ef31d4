// ScatterWith alone, every operation and type: numbers below, above and far out of the table change nothing.
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/movement/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

constexpr unsigned kRows = 9, kFirstRow = 4, kCount = 31;

template <typename T>
T combined(const std::string& op, T a, T x) {
  if constexpr (std::is_integral_v<T>) {
    if (op == "BitAnd") return static_cast<T>(a & x);
    if (op == "BitOr") return static_cast<T>(a | x);
    if (op == "BitXor") return static_cast<T>(a ^ x);
  }
  if (op == "Sum") return static_cast<T>(a + x);
  if (op == "Product") return static_cast<T>(a * x);
  if (op == "Largest") return x > a ? x : a;
  return x < a ? x : a;
}

template <typename T>
void testOp(const CodeletLibrary& library, const std::string& op, const std::string& type, unsigned width) {
  Draw draw(width);
  std::vector<T> expected(kRows * width), values(kCount * width);
  for (T& x : expected) x = static_cast<T>(static_cast<int>(draw.below(17)) - 8);
  for (T& x : values) x = static_cast<T>(op == "Product" ? 1 + draw.below(2) : draw.below(9));
  std::vector<unsigned> numbers(kCount);
  for (unsigned& number : numbers) number = draw.below(kRows + 2 * kFirstRow);
  numbers[3] = 0xffffffffU;
  numbers[5] = 0x80000000U;
  Alone scatter(library, "snnjax::ScatterWith<snnjax::" + op + "," + type + ">");
  scatter.edge("table", expected).edge("numbers", numbers).edge("values", values).state("rows", kRows);
  scatter.state("width", width).state("count", kCount).state("first_row", kFirstRow);
  for (unsigned i = 0; i < values.size(); ++i) {
    const unsigned row = numbers[i / width] - kFirstRow;
    if (row >= kRows) continue;
    T& element = expected[row * width + i % width];
    element = combined(op, element, values[i]);
  }
  CHECK(scatter.run(true).template get<T>("table") == expected);
}

void test(const CodeletLibrary& library) {
  for (const unsigned width : {1u, 3u, 8u}) {
    for (const std::string op : {"Sum", "Product", "Largest", "Smallest"}) {
      testOp<float>(library, op, "float", width);
      testOp<half>(library, op, "half", width);
      testOp<int>(library, op, "int", width);
      testOp<unsigned>(library, op, "unsigned", width);
    }
    for (const std::string op : {"BitAnd", "BitOr", "BitXor"}) {
      testOp<unsigned>(library, op, "unsigned", width);
      testOp<unsigned char>(library, op, "unsigned char", width);
    }
  }
  namespace cycles = snnjax::cycles;
  static_assert(cycles::scatterWith(10, 0, 16, 4) == 82);
  static_assert(cycles::scatterWith(10, 10, 16, 4) == 32 + 10 * (11 + 16 * 5));
  // A worker pays for the numbers of its own rows: worker 0 holds rows 0 and 1 of 9.
  Alone scatter(library, "snnjax::ScatterWith<snnjax::Sum,float>");
  scatter.edge("table", std::vector<float>(kRows)).edge("numbers", std::vector<unsigned>{0, 1, 8, 2, 0xffffffffU});
  scatter.edge("values", std::vector<float>(5)).state("rows", kRows).state("width", 1u).state("count", 5u);
  scatter.state("first_row", 0u).run();
  CHECK_EQUAL(scatter.cycles(0), cycles::scatterWith(5, 2, 1, 4));
  CHECK_EQUAL(scatter.cycles(5), cycles::scatterWith(5, 1, 1, 4));
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
