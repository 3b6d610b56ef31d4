// Dense matrix products of the blocks that a tile holds, as they are or with one operand transposed (the products of a
// backward pass). Sums have the type of the output: float for either operands, or half.
#include "dot_cycles.hpp"

#include <type_traits>

#include "fields.hpp"
#include "workers.hpp"

namespace snnjax {

namespace {

constexpr unsigned kColumns = cycles::kDotColumns;

// Blocks of one row and up to 8 columns of an output, shared by the workers: in pairs of rows where a row ends inside
// a 32-bit word.
template <class Result>
struct Blocks {
  unsigned rows, columns;

  unsigned perRow() const { return (columns + kColumns - 1) / kColumns; }
  Range shareOfWorker(unsigned worker) const {
    return shareOf(rows * perRow(), worker, columns % kPerWord<Result> == 0 ? 1 : kPerWord<Result> * perRow());
  }
  // Calls body(row, first column, number of columns) for each of the worker's blocks.
  template <class Body>
  void forEach(unsigned worker, Body&& body) const {
    const Range share = shareOfWorker(worker);
    for (unsigned block = share.first; block < share.last; ++block) {
      const unsigned first = block % perRow() * kColumns;
      body(block / perRow(), first, smaller(kColumns, columns - first));
    }
  }
};

// to[j] (+)= sum over k of a[k * step] * b[k * columns + j], in the order of k: axpys of rows of b.
template <class T, class Result>
void addRows(const T* a, unsigned step, const T* b, unsigned columns, unsigned depth, Result* to, unsigned count,
             bool accumulate) {
  Result sums[kColumns] = {};
  for (unsigned j = 0; accumulate && j < count; ++j) sums[j] = to[j];
  for (unsigned k = 0; k < depth; ++k) {
    const Result x = static_cast<Result>(a[k * step]);
    const T* const from = b + k * columns;
    for (unsigned j = 0; j < count; ++j) sums[j] = static_cast<Result>(sums[j] + x * static_cast<Result>(from[j]));
  }
  for (unsigned j = 0; j < count; ++j) to[j] = sums[j];
}

// The sum over k of a[k] * b[k], even k and odd ones apart: the two halves of a vector.
template <class T>
float dotOfRows(const T* a, const T* b, unsigned depth) {
  float even = 0, odd = 0;
  for (unsigned k = 0; k + 1 < depth; k += 2) {
    even += static_cast<float>(a[k]) * static_cast<float>(b[k]);
    odd += static_cast<float>(a[k + 1]) * static_cast<float>(b[k + 1]);
  }
  if (depth % 2 != 0) even += static_cast<float>(a[depth - 1]) * static_cast<float>(b[depth - 1]);
  return even + odd;
}

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
      for (unsigned column = first; column < first + count; ++column) {
        Result& to = out[row * columns + column];
        const float before = accumulate ? static_cast<float>(to) : 0.0f;
        to = static_cast<Result>(before + dotOfRows(&a[row * depth], &b[column * depth], depth));
      }
    });
    return true;
  }
};

namespace {

template <class T, class Result, class V>
std::uint64_t axpyCycles(const V& vertex, unsigned worker) {
  const Range share = Blocks<Result>{vertex.rows, vertex.columns}.shareOfWorker(worker);
  return cycles::dot(share.last - share.first, vertex.depth, std::is_same_v<T, half>, std::is_same_v<Result, half>);
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
  const Range share = Blocks<Result>{vertex.rows, vertex.columns}.shareOfWorker(worker);
  return cycles::dotTransposed(share.last - share.first, vertex.depth, std::is_same_v<T, half>);
}

template class Dot<float, float>;
template class Dot<half, float>;
template class Dot<half, half>;
template class TransposedDot<float, float>;
template class TransposedDot<half, float>;
template class DotTransposed<float, float>;
template class DotTransposed<half, float>;

}  // namespace snnjax
