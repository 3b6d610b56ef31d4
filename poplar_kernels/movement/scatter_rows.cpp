// New values for table rows by index; elements of any type, by their width.
//
// Every worker goes through all ids and takes those of its own rows, in their order: so of several new values for one
// row the last wins, for any number of workers.
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

  bool compute(unsigned worker) {
    const Range own = shareOf(rows, worker, rowsPerUnit<T>(width));
    forEachOwnRow(&ids[0], count, first_row, own,
                  [&](unsigned k, unsigned row) { copyRows(&table[row * width], &values[k * width], width, width); });
    return true;
  }
};

template <class T>
std::uint64_t workerCycles(const ScatterRows<T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<T>(vertex.width));
  const unsigned found = countOwnRows(&vertex.ids[0], vertex.count, vertex.first_row, own);
  return cycles::scatterRows(vertex.count, found, vertex.width, sizeof(T));
}

template class ScatterRows<unsigned>;
template class ScatterRows<unsigned short>;
template class ScatterRows<unsigned char>;

}  // namespace snnjax
