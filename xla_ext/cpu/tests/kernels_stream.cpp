// Copies, past the caches and as columns, of every instruction set of this machine, compared with plain loops: products
// of eighths are exact.
#include "kernel_checks.hpp"

namespace {

using namespace kernel_checks;

constexpr Index kRows = 3;

// To rows that begin at whole vectors, or next to them.
void rowsAreCopied(const Case& of, Random& random) {
  constexpr Index kAlignment = 16;  // numbers of the widest vector
  const Matrix from(random, kRows, of.size);
  const Floats scale = random.eighths(of.size);
  for (const Index shift : {0, 1}) {
    for (const bool scales : {false, true}) {
      const Index stride = roundUp(of.size, kAlignment) + kAlignment;
      Floats got = random.eighths(kRows * stride + kAlignment + 1);
      const auto past = static_cast<Index>(reinterpret_cast<std::uintptr_t>(got.data()) / sizeof(float) % kAlignment);
      const Index first = shift + roundUp(past, kAlignment) - past;
      Floats want = got;
      for (Index r = 0; r < kRows; ++r) {
        for (Index c = 0; c < of.size; ++c) {
          want[sizeOf(first + r * stride + c)] = scales ? scale[sizeOf(c)] * from.at(r, c) : from.at(r, c);
        }
      }
      of.kernels.streamRows(from.rows(), kRows, of.size, scales ? scale.data() : nullptr, {got.data() + first, stride});
      expectSame(of, got, want);
    }
  }
}

// Of some rows; what is read behind the last column is not written.
void rowsBecomeColumns(const Case& of, Random& random) {
  const Index lanes = of.kernels.lanes;
  for (const Index rows : {Index{1}, lanes, lanes + 1}) {
    const Matrix from(random, rows, of.size, lanes);
    const Index stride = roundUp(rows, lanes) + 1;
    Floats got = random.eighths(of.size * stride), want = got;
    for (Index c = 0; c < of.size; ++c) {
      for (Index r = 0; r < roundUp(rows, lanes); ++r) want[sizeOf(c * stride + r)] = r < rows ? from.at(r, c) : 0.0F;
    }
    of.kernels.transpose(from.rows(), rows, of.size, {got.data(), stride});
    expectSame(of, got, want);
  }
}

}  // namespace

int main() {
  forEachSet(rowsAreCopied);
  forEachSet(rowsBecomeColumns);
  return check::failures;
}
