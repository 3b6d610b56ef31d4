// Dense matrix products of the blocks that a tile holds, as they are or with one operand transposed (the products of a
// backward pass). Sums have the type of the output: float for either operands, or half.
#include "dot_loops.hpp"

#include <type_traits>

#include "fields.hpp"
#include "workers.hpp"

namespace snnjax {

namespace {

// Blocks of one row and up to 8 columns of an output, shared by the workers: in pairs of rows where a row ends inside
// a 32-bit word.
template <class Result>
struct Blocks {
  unsigned rows, columns;

  unsigned perRow() const { return (columns + kDotColumns - 1) / kDotColumns; }
  Range shareOfWorker(unsigned worker) const {
    return shareOf(rows * perRow(), worker, columns % kPerWord<Result> == 0 ? 1 : kPerWord<Result> * perRow());
  }
  // Calls body(row, first column, number of columns) for each of the worker's blocks.
  template <class Body>
  void forEach(unsigned worker, Body&& body) const {
    const Range share = shareOfWorker(worker);
    for (unsigned block = share.first; block < share.last; ++block) {
      const unsigned first = block % perRow() * kDotColumns;
      body(block / perRow(), first, smaller(kDotColumns, columns - first));
    }
  }
};

}  // namespace

// out (+)= a b
template <class T, class Result>
class Dot : public poplar::MultiVertex {
 public:
  In<T> a;            // [rows, depth]
  In<T> b;            // [depth, columns]
  InOut<Result> out;  // [rows, columns]
  unsigned rows, depth, columns;
  bool accumulate;  // adds to what is there

  bool compute(unsigned worker) {
    Blocks<Result>{rows, columns}.forEach(worker, [this](unsigned row, unsigned first, unsigned count) {
      addRows(&a[row * depth], 1, &b[first], columns, depth, &out[row * columns + first], count, accumulate);
    });
    return true;
  }
};

// out (+)= a^T b
template <class T, class Result>
class TransposedDot : public poplar::MultiVertex {
 public:
  In<T> a;            // [depth, rows]
  In<T> b;            // [depth, columns]
  InOut<Result> out;  // [rows, columns]
  unsigned rows, depth, columns;
  bool accumulate;  // adds to what is there

  bool compute(unsigned worker) {
    Blocks<Result>{rows, columns}.forEach(worker, [this](unsigned row, unsigned first, unsigned count) {
      addRows(&a[row], rows, &b[first], columns, depth, &out[row * columns + first], count, accumulate);
    });
    return true;
  }
};

// out (+)= a b^T
template <class T, class Result>
class DotTransposed : public poplar::MultiVertex {
 public:
  In<T> a;            // [rows, depth]
  In<T> b;            // [columns, depth]
  InOut<Result> out;  // [rows, columns]
  unsigned rows, depth, columns;
  bool accumulate;  // adds to what is there

  bool compute(unsigned worker) {
    Blocks<Result>{rows, columns}.forEach(worker, [this](unsigned row, unsigned first, unsigned count) {
      addDotBlock(&a[row * depth], &b[first * depth], depth, &out[row * columns + first], count, accumulate);
    });
    return true;
  }
};

namespace {

template <class T, class Result, class V>
std::uint64_t axpyCycles(const V& vertex, unsigned worker) {
  std::uint64_t slots = cycles::kDotPrologue;
  Blocks<Result>{vertex.rows, vertex.columns}.forEach(worker, [&](unsigned, unsigned, unsigned count) {
    slots +=
        cycles::dotBlock(count, vertex.columns, vertex.depth, std::is_same_v<T, half>, std::is_same_v<Result, half>);
  });
  return slots;
}

}  // namespace

template <class T, class Result>
std::uint64_t workerCycles(const Dot<T, Result>& vertex, unsigned worker) {
  return axpyCycles<T, Result>(vertex, worker);
}

template <class T, class Result>
std::uint64_t workerCycles(const TransposedDot<T, Result>& vertex, unsigned worker) {
  return axpyCycles<T, Result>(vertex, worker);
}

template <class T, class Result>
std::uint64_t workerCycles(const DotTransposed<T, Result>& vertex, unsigned worker) {
  std::uint64_t slots = cycles::kDotPrologue;
  Blocks<Result>{vertex.rows, vertex.columns}.forEach(worker, [&](unsigned, unsigned, unsigned count) {
    slots += cycles::transposedBlock(count, vertex.depth, std::is_same_v<T, half>);
  });
  return slots;
}

template class Dot<float, float>;
template class Dot<half, float>;
template class Dot<half, half>;
template class TransposedDot<float, float>;
template class TransposedDot<half, float>;
template class TransposedDot<half, half>;
template class DotTransposed<float, float>;
template class DotTransposed<half, float>;
template class DotTransposed<half, half>;

}  // namespace snnjax
