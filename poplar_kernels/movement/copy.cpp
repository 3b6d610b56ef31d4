// Elements written without arithmetic: a constant, a transposed copy.

#include "../vertex.hpp"
#include "../words.hpp"
#include "cycles.hpp"

namespace snnjax {

// out = value
template <class T>
class Fill : public poplar::MultiVertex {
 public:
  Out<T> out;  // [count]
  unsigned count;
  T value;

  void compute(unsigned worker) {
    const Range share = shareOf(count, worker, kPerVector<T>);
    alignas(8) T word[kPerVector<T>];
    for (T& each : word) each = value;
    unsigned i = share.first;
    for (; i + 4 * kPerVector<T> <= share.last; i += 4 * kPerVector<T>) {  // unrolled: a store is all that a turn does
      for (unsigned k = 0; k < 4 * kPerVector<T>; k += kPerVector<T>) moveWord<8>(&out[i + k], word);
    }
    for (; i + kPerVector<T> <= share.last; i += kPerVector<T>) moveWord<8>(&out[i], word);
    for (; i < share.last; ++i) out[i] = value;
  }
};

// out[column, row] = in[row, column]
template <class T>
class Transpose : public poplar::MultiVertex {
 public:
  In<T> in;    // [rows, columns]
  Out<T> out;  // [columns, rows]
  unsigned rows, columns;

  void compute(unsigned worker) {
    // Shares are ranges of whole words of `out`, so that no two workers write to the same word.
    const Range share = shareOf(rows * columns, worker, kPerWord<T>);
    if (share.first == share.last) return;
    unsigned column = share.first / rows, row = share.first % rows;
    for (const unsigned i : share) {
      out[i] = in[row * columns + column];
      if (++row == rows) {
        row = 0;
        ++column;
      }
    }
  }
};

template <class T>
std::uint64_t workerCycles(const Fill<T>& vertex, unsigned worker) {
  return cycles::fillTensor(shareOf(vertex.count, worker, kPerVector<T>).count(), sizeof(T));
}

template <class T>
std::uint64_t workerCycles(const Transpose<T>& vertex, unsigned worker) {
  return cycles::transpose(shareOf(vertex.rows * vertex.columns, worker, kPerWord<T>).count(), kPerWord<T>);
}

SNNJAX_INSTANCES_OF_ELEMENTS(Fill)
SNNJAX_INSTANCES_OF_WIDTHS(Transpose)

}  // namespace snnjax
