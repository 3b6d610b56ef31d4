// Windows of consecutive rows that start at a row known only at run time. A window that would reach beyond the table is
// moved back into it.
#include "../vertex.hpp"
#include "../words.hpp"
#include "cycles.hpp"

namespace snnjax {

// The first row of a window of `count` of `rows` rows.
inline unsigned firstRow(unsigned start, bool is_signed, unsigned rows, unsigned count) {
  if (is_signed && start > 0x7fffffff) return 0;
  return smaller(start, rows - count);
}

// The share of a worker in the elements of a table from `first` on, in whole vectors of the table.
template <class T>
Range shareOfWindow(unsigned first, unsigned count, unsigned worker) {
  const unsigned begin = first / kPerVector<T> * kPerVector<T>;
  const Range vectors = shareOf(first + count - begin, worker, kPerVector<T>);
  return {larger(first, begin + vectors.first), larger(first, begin + vectors.last)};
}

// out[k] = table[first + k]. Workers share the rows of `out`.
template <class T>
class SliceWindow : public poplar::MultiVertex {
 public:
  In<T> table;                    // [rows, width]
  poplar::Input<unsigned> start;  // or the bits of an int
  Out<T> out;                     // [count, width], count at most rows
  unsigned rows, width, count;
  bool is_signed;

  void compute(unsigned worker) {
    const Range share = shareOf(count * width, worker, kPerVector<T>);
    const T* const from = &table[firstRow(*start, is_signed, rows, count) * width];
    copyRows(&out[share.first], from + share.first, share.count(), width);
  }
};

// table[first + k] = values[k]. Workers share the values, in units such that no two write to the same word.
template <class T>
class UpdateWindow : public poplar::MultiVertex {
 public:
  InOut<T> table;                 // [rows, width]
  poplar::Input<unsigned> start;  // or the bits of an int
  In<T> values;                   // [count, width], count at most rows
  unsigned rows, width, count;
  bool is_signed;

  void compute(unsigned worker) {
    const unsigned first = firstElement();
    const Range own = shareOfWindow<T>(first, count * width, worker);
    copyRows(&table[own.first], &values[own.first - first], own.count(), width);
  }
  unsigned firstElement() const { return firstRow(*start, is_signed, rows, count) * width; }
};

template <class T>
std::uint64_t workerCycles(const SliceWindow<T>& vertex, unsigned worker) {
  return cycles::window(shareOf(vertex.count * vertex.width, worker, kPerVector<T>).count(), vertex.width, sizeof(T));
}

template <class T>
std::uint64_t workerCycles(const UpdateWindow<T>& vertex, unsigned worker) {
  const Range own = shareOfWindow<T>(vertex.firstElement(), vertex.count * vertex.width, worker);
  return cycles::window(own.count(), vertex.width, sizeof(T));
}

SNNJAX_INSTANCES_OF_WIDTHS(SliceWindow)
SNNJAX_INSTANCES_OF_WIDTHS(UpdateWindow)

}  // namespace snnjax
