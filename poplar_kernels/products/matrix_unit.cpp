// Dense products of the blocks that a tile holds, on the tile's matrix unit, and the sums of partial results.
//
// These stand in for the vendor's vertices: public C++ cannot express the unit's instructions, so this file says what
// they compute, and matrix_unit_cycles.hpp gives their published cost. An SDK compiles this file as it is, without the
// unit.
#include "matrix_unit_cycles.hpp"

#include "../numbers.hpp"
#include "../vertex.hpp"

namespace snnjax {

namespace {

constexpr unsigned kAtOnce = 32;  // columns that are summed side by side
constexpr unsigned kRows = 2;     // rows likewise
constexpr unsigned kDeep = 64;    // of the depth, at a time

using Lanes = float __attribute__((vector_size(64)));
constexpr unsigned kLanes = sizeof(Lanes) / sizeof(float), kVectors = kAtOnce / kLanes;

// Part of an operand as floats, [depth, width].
template <unsigned kWidth>
struct Part {
  alignas(Lanes) float numbers[kDeep * kWidth];

  void load(const auto* from, unsigned deep_step, unsigned step, unsigned depth, unsigned width) {
    for (unsigned k = 0; k < depth; ++k, from += deep_step) {
      float* const to = numbers + k * kWidth;
      if (step == 1 && width == kWidth) {
        for (unsigned j = 0; j < kWidth; ++j) to[j] = toFloat(from[j]);
        continue;
      }
      for (unsigned j = 0; j < width; ++j) to[j] = toFloat(from[j * step]);
      for (unsigned j = width; j < kWidth; ++j) to[j] = 0.0f;
    }
  }
};

struct Sums {
  alignas(Lanes) float numbers[kRows][kAtOnce];
};

// A host's wider vectors add in the same order and do not fuse: the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SNNJAX_ANY_HOST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SNNJAX_ANY_HOST
#endif

// sums[i, j] += sum over k of a[k, i] * b[k, j], in the order of k.
SNNJAX_ANY_HOST void addProducts(const Part<kRows>& a, const Part<kAtOnce>& b, unsigned depth, Sums& to) {
  Lanes sums[kRows][kVectors];
  std::memcpy(sums, to.numbers, sizeof sums);
  for (unsigned k = 0; k < depth; ++k) {
    for (unsigned v = 0; v < kVectors; ++v) {
      Lanes columns;
      std::memcpy(&columns, &b.numbers[k * kAtOnce + v * kLanes], sizeof columns);
      for (unsigned i = 0; i < kRows; ++i) sums[i][v] += a.numbers[k * kRows + i] * columns;
    }
  }
  std::memcpy(to.numbers, sums, sizeof sums);
}

}  // namespace

// out (+)= a b, each operand with its rows one after the other, or its columns (across).
template <class T, class Result>
class MatrixProduct : public poplar::MultiVertex {
 public:
  In<T> a;            // [rows, depth], or [depth, rows] if a_across
  In<T> b;            // [depth, columns], or [columns, depth] if b_deep
  InOut<Result> out;  // [rows, columns]
  unsigned rows, depth, columns;
  bool a_across, b_deep;
  bool holds_a;         // which operand's blocks the unit holds; the other one's rows stream through it
  unsigned transposed;  // elements of operands that lack the unit's layout, depth innermost
  bool accumulate;      // accumulates

  void compute(unsigned worker) {
    const Range own = workOf(rows, worker, rowsPerUnit<Result>(columns));
    for (unsigned first = 0; first < columns && own.first < own.last; first += kAtOnce) {
      for (unsigned k = 0; k < depth || k == 0; k += kStep) addPart(own, first, k);
    }
  }

  // What streams through the unit, and what it holds.
  unsigned streamed() const { return holds_a ? columns : rows; }
  cycles::UnitBlocks held() const {
    return cycles::unitBlocks(depth, holds_a ? rows : columns, std::is_same_v<T, half>);
  }

 private:
  // Sums of halves are rounded after each block of the unit.
  static constexpr unsigned kStep = std::is_same_v<Result, half> ? cycles::unitDepth(true) : kDeep;

  void addPart(Range own, unsigned first, unsigned k) {
    const unsigned deep = smaller(kStep, depth - k), wide = smaller(kAtOnce, columns - first);
    const unsigned deep_step = b_deep ? 1 : columns, column_step = b_deep ? depth : 1;
    const unsigned row_step = a_across ? 1 : depth, step = a_across ? rows : 1;
    Part<kAtOnce> of_b;
    of_b.load(&b[k * deep_step + first * column_step], deep_step, column_step, deep, wide);
    for (unsigned row = own.first; row < own.last; row += kRows) {
      const unsigned high = smaller(kRows, own.last - row);
      Part<kRows> of_a;
      of_a.load(&a[row * row_step + k * step], step, row_step, deep, high);
      Result* const to = &out[row * columns + first];
      Sums sums = {};
      for (unsigned i = 0; i < high && (accumulate || k > 0); ++i) {
        for (unsigned j = 0; j < wide; ++j) sums.numbers[i][j] = toFloat(to[i * columns + j]);
      }
      addProducts(of_a, of_b, deep, sums);
      for (unsigned i = 0; i < high; ++i) {
        for (unsigned j = 0; j < wide; ++j) to[i * columns + j] = static_cast<Result>(sums.numbers[i][j]);
      }
    }
  }
};

// out[i] = the sum of in[k, i]
template <class T, class Result>
class SumPartials : public poplar::MultiVertex {
 public:
  In<T> in;         // [parts, count]
  Out<Result> out;  // [count]
  unsigned parts, count;

  void compute(unsigned worker) {
    const Range own = workOf(count, worker, kFour);
    for (unsigned first = own.first; first < own.last; first += kAtOnce) {
      const unsigned width = smaller(kAtOnce, own.last - first);
      float sums[kAtOnce] = {};
      for (unsigned k = 0; k < parts; ++k) {
        for (unsigned i = 0; i < width; ++i) sums[i] += toFloat(in[k * count + first + i]);
      }
      for (unsigned i = 0; i < width; ++i) out[first + i] = static_cast<Result>(sums[i]);
    }
  }

  static constexpr unsigned kFour = 4;
};

template <class T, class Result>
std::uint64_t workerCycles(const MatrixProduct<T, Result>& vertex, unsigned worker) {
  return cycles::unitWorker(shareOf(vertex.streamed(), worker).count(), vertex.held(), std::is_same_v<T, half>);
}

template <class T, class Result>
std::uint64_t supervisorCycles(const MatrixProduct<T, Result>& vertex) {
  constexpr bool kHalf = std::is_same_v<T, half>;
  return cycles::unitSupervisor(vertex.held(), kHalf) + cycles::transposed(vertex.transposed, kHalf);
}

template <class T, class Result>
std::uint64_t workerCycles(const SumPartials<T, Result>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.count, worker, SumPartials<T, Result>::kFour);
  const unsigned at_once = 16 / sizeof(T);
  return cycles::sumPartials((own.count() + at_once - 1) / at_once, vertex.parts);
}

template class MatrixProduct<float, float>;
SNNJAX_INSTANCES_OF_FLOATS(MatrixProduct, half)
SNNJAX_INSTANCES_OF_FLOATS(SumPartials, float)
SNNJAX_INSTANCES_OF_FLOATS(SumPartials, half)

}  // namespace snnjax
