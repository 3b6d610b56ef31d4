// Updates of table rows by index: sums, new values, and a window of rows.
//
// Every worker goes through all ids and takes those of its own rows, in their order: so sums are the same for any
// number of workers, and of several new values for one row the last wins.
#include "scatter_add_cycles.hpp"

#include <type_traits>

#include "fields.hpp"
#include "numbers.hpp"
#include "workers.hpp"

namespace snnjax {

namespace {

// The type a sum is computed in; integers wrap around.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, unsigned, float>;

}  // namespace

// table[ids[k] - first_row] += scale * values[k] where there is such a row.
template <class T, class Id>
class ScatterAdd : public poplar::MultiVertex {
 public:
  InOut<T> table;              // [rows, width]
  In<Id> ids;                  // [count]
  In<T> values;                // [count, width]
  poplar::Input<float> scale;  // for integers, its integer part
  unsigned rows, width, count;
  unsigned first_row;  // the number of the table's first row

  bool compute(unsigned worker) {
    const Range own = shareOf(rows, worker, rowsPerUnit<T>(width));
    const Sum<T> factor = static_cast<Sum<T>>(static_cast<Factor>(*scale));
    forEachOwnRow(ids, count, first_row, own,
                  [&](unsigned k, unsigned row) { addRow(&values[k * width], &table[row * width], factor); });
    return true;
  }

 private:
  using Factor = std::conditional_t<std::is_integral_v<T>, int, float>;

  // to += factor * from
  void addRow(const T* from, T* to, Sum<T> factor) const {
    unsigned i = 0;
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
    if constexpr (!std::is_integral_v<T>) {
      using Of = Numbers<float2>;
      for (; width % 2 == 0 && i < width; i += 2) Of::store(to + i, Of::load(to + i) + factor * Of::load(from + i));
    }
#endif
    for (; i < width; ++i) {
      to[i] = static_cast<T>(static_cast<Sum<T>>(to[i]) + factor * static_cast<Sum<T>>(from[i]));
    }
  }
};

// table[ids[k] - first_row] = values[k] where there is such a row.
template <class T, class Id>
class ScatterRows : public poplar::MultiVertex {
 public:
  InOut<T> table;  // [rows, width]
  In<Id> ids;      // [count]
  In<T> values;    // [count, width]
  unsigned rows, width, count;
  unsigned first_row;  // the number of the table's first row

  bool compute(unsigned worker) {
    const Range own = shareOf(rows, worker, rowsPerUnit<T>(width));
    forEachOwnRow(ids, count, first_row, own, [&](unsigned k, unsigned row) {
      for (unsigned i = 0; i < width; ++i) table[row * width + i] = values[k * width + i];
    });
    return true;
  }
};

// table[(offset + k) mod rows] = values[k]: Poplar's dynamicUpdate in one dimension, which wraps around.
template <class T>
class DynamicUpdate : public poplar::MultiVertex {
 public:
  InOut<T> table;                  // [rows, width]
  poplar::Input<unsigned> offset;  // taken modulo rows
  In<T> values;                    // [count, width], count at most rows
  unsigned rows, width, count;

  bool compute(unsigned worker) {
    const Range own = shareOf(rows, worker, rowsPerUnit<T>(width));
    const unsigned first = *offset % rows;
    for (unsigned row = own.first; row < own.last; ++row) {
      const unsigned k = row >= first ? row - first : row + rows - first;
      if (k >= count) continue;
      for (unsigned i = 0; i < width; ++i) table[row * width + i] = values[k * width + i];
    }
    return true;
  }
};

template <class T, class Id>
std::uint64_t workerCycles(const ScatterAdd<T, Id>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<T>(vertex.width));
  const unsigned found = countOwnRows(vertex.ids, vertex.count, vertex.first_row, own);
  return cycles::scatterAdd(vertex.count, found, vertex.width, sizeof(T), std::is_integral_v<T>);
}

template <class T, class Id>
std::uint64_t workerCycles(const ScatterRows<T, Id>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<T>(vertex.width));
  const unsigned found = countOwnRows(vertex.ids, vertex.count, vertex.first_row, own);
  return cycles::scatterRows(vertex.count, found, vertex.width * sizeof(T));
}

template <class T>
std::uint64_t workerCycles(const DynamicUpdate<T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<T>(vertex.width));
  return cycles::updateRows(own.last - own.first, vertex.width * sizeof(T));
}

#define SNNJAX_SCATTER(T)                        \
  template class ScatterRows<T, int>;            \
  template class ScatterRows<T, unsigned>;       \
  template class ScatterRows<T, unsigned short>; \
  template class DynamicUpdate<T>;
SNNJAX_SCATTER(float)
SNNJAX_SCATTER(half)
SNNJAX_SCATTER(int)
SNNJAX_SCATTER(unsigned)
SNNJAX_SCATTER(short)
SNNJAX_SCATTER(unsigned short)
SNNJAX_SCATTER(signed char)
SNNJAX_SCATTER(unsigned char)
SNNJAX_SCATTER(char)
SNNJAX_SCATTER(bool)
#undef SNNJAX_SCATTER

#define SNNJAX_SCATTER_ADD(T)             \
  template class ScatterAdd<T, int>;      \
  template class ScatterAdd<T, unsigned>; \
  template class ScatterAdd<T, unsigned short>;
SNNJAX_SCATTER_ADD(float)
SNNJAX_SCATTER_ADD(half)
SNNJAX_SCATTER_ADD(int)
SNNJAX_SCATTER_ADD(unsigned)
#undef SNNJAX_SCATTER_ADD

}  // namespace snnjax
