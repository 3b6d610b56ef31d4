// Elements written without arithmetic: a constant, a transposed copy.
#include <type_traits>

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

  bool compute(unsigned worker) {
    const Range share = shareOf(count, worker, kPerVector<T>);
    alignas(8) T word[kPerVector<T>];
    for (T& each : word) each = value;
    unsigned i = share.first;
    for (; i + 4 * kPerVector<T> <= share.last; i += 4 * kPerVector<T>) {  // unrolled: a store is all that a turn does
      for (unsigned k = 0; k < 4 * kPerVector<T>; k += kPerVector<T>) moveWord<8>(&out[i + k], word);
    }
    for (; i + kPerVector<T> <= share.last; i += kPerVector<T>) moveWord<8>(&out[i], word);
    for (; i < share.last; ++i) out[i] = value;
    return true;
  }
};

// out[column, row] = in[row, column]
template <class T>
class Transpose : public poplar::MultiVertex {
 public:
  In<T> in;    // [rows, columns]
  Out<T> out;  // [columns, rows]
  unsigned rows, columns;

  bool compute(unsigned worker) {
    // Shares are ranges of whole words of `out`, so that no two workers write to the same word.
    const Range share = shareOf(rows * columns, worker, kPerWord<T>);
    if (share.first == share.last) return true;
    unsigned column = share.first / rows, row = share.first % rows;
    for (unsigned i = share.first; i < share.last; ++i) {
      out[i] = in[row * columns + column];
      if (++row == rows) {
        row = 0;
        ++column;
      }
    }
    return true;
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

// Every element type that a tensor may have.
template class Fill<float>;
template class Fill<half>;
template class Fill<int>;
template class Fill<unsigned>;
template class Fill<short>;
template class Fill<unsigned short>;
template class Fill<char>;
template class Fill<signed char>;
template class Fill<unsigned char>;
template class Fill<bool>;
// Elements of any type, by their width.
template class Transpose<unsigned>;
template class Transpose<unsigned short>;
template class Transpose<unsigned char>;

}  // namespace snnjax
