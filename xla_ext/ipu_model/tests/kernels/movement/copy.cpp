// The codelets of copy.cpp alone.
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/movement/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

template <typename T>
void testFill(const CodeletLibrary& library, const std::string& type) {
  for (const unsigned count : {0u, 1u, 7u, 8u, 100u}) {
    Alone fill(library, "snnjax::Fill<" + type + ">");
    fill.edge("out", std::vector<T>(count)).state("count", count).state("value", T(3)).run(true);
    CHECK(fill.template get<T>("out") == std::vector<T>(count, T(3)));
  }
}

template <typename T>
void testTranspose(const CodeletLibrary& library, const std::string& type) {
  constexpr unsigned kRows = 5, kColumns = 7;
  const std::vector<T> in = Draw(1).row<T>(kRows * kColumns);
  Alone transpose(library, "snnjax::Transpose<" + type + ">");
  transpose.edge("in", in).edge("out", std::vector<T>(in.size())).state("rows", kRows).state("columns", kColumns);
  const std::vector<T> out = transpose.run(true).template get<T>("out");
  for (unsigned i = 0; i < in.size(); ++i) CHECK(out[i % kColumns * kRows + i / kColumns] == in[i]);
}

void testCycles() {
  namespace cycles = snnjax::cycles;
  static_assert(cycles::fillTensor(0, 4) == 23 && cycles::fillTensor(200, 4) == 23 + 125);
  static_assert(cycles::fillTensor(15, 2) == 23 + 3 * 2 + 3 * 5);  // three elements of 16 bits are left
  static_assert(cycles::transpose(10, 1) == 125 && cycles::transpose(10, 2) == 165);
}

void test(const CodeletLibrary& library) {
  testFill<float>(library, "float");
  testFill<half>(library, "half");
  testFill<unsigned char>(library, "unsigned char");
  testTranspose<unsigned>(library, "unsigned int");
  testTranspose<unsigned short>(library, "unsigned short");
  testTranspose<unsigned char>(library, "unsigned char");
  testCycles();
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
