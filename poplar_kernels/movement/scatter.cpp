// New values for table rows by index, elements of any type by their width; and table rows combined with others.
//
// Every worker goes through all ids and takes those of its own rows, in their order: so of several new values for one
// row the last wins, for any number of workers.
#include "../combine.hpp"
#include "../vertex.hpp"
#include "../words.hpp"
#include "cycles.hpp"

namespace snnjax {

// table[ids[k] - first_row] = values[k] where there is such a row.
template <class T>
class ScatterRows : public poplar::MultiVertex {
 public:
  InOut<T> table;    // [rows, width]
  In<unsigned> ids;  // [count]
  In<T> values;      // [count, width]
  unsigned rows, width, count;
  unsigned first_row;  // the number of the table's first row

  void compute(unsigned worker) {
    const Range own = shareOf(rows, worker, rowsPerUnit<T>(width));
    forEachOwnRow(&ids[0], count, first_row, own,
                  [&](unsigned k, unsigned row) { copyRows(&table[row * width], &values[k * width], width, width); });
  }
};

template <class T>
std::uint64_t workerCycles(const ScatterRows<T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<T>(vertex.width));
  const unsigned found = countOwnRows(&vertex.ids[0], vertex.count, vertex.first_row, own);
  return cycles::scatterRows(vertex.count, found, vertex.width, sizeof(T));
}

SNNJAX_INSTANCES_OF_WIDTHS(ScatterRows)

// table[numbers[k] - first_row] = Op(table[...], values[k]) where there is such a row.
template <class Op, class T>
class ScatterWith : public poplar::MultiVertex {
 public:
  InOut<T> table;        // [rows, width]
  In<unsigned> numbers;  // [count]
  In<T> values;          // [count, width]
  unsigned rows, width, count;
  unsigned first_row;  // the number of the table's first row

  void compute(unsigned worker) {
    const Range own = shareOf(rows, worker, rowsPerUnit<T>(width));
    forEachOwnRow(&numbers[0], count, first_row, own, [&](unsigned k, unsigned row) {
      for (unsigned i = 0; i < width; ++i) {
        T& element = table[row * width + i];
        element = static_cast<T>(Op::template of<Accumulator<T>>(element, values[k * width + i]));
      }
    });
  }
};

template <class Op, class T>
std::uint64_t workerCycles(const ScatterWith<Op, T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<T>(vertex.width));
  const unsigned found = countOwnRows(&vertex.numbers[0], vertex.count, vertex.first_row, own);
  return cycles::scatterWith(vertex.count, found, vertex.width, sizeof(T));
}

SNNJAX_INSTANCES_OF_NUMBERS(ScatterWith, Sum)
SNNJAX_INSTANCES_OF_NUMBERS(ScatterWith, Product)
SNNJAX_INSTANCES_OF_NUMBERS(ScatterWith, Largest)
SNNJAX_INSTANCES_OF_NUMBERS(ScatterWith, Smallest)
SNNJAX_INSTANCES_OF_BITS(ScatterWith, BitAnd)
SNNJAX_INSTANCES_OF_BITS(ScatterWith, BitOr)
SNNJAX_INSTANCES_OF_BITS(ScatterWith, BitXor)

}  // namespace snnjax
