// Rows of a table by index, and a window of rows; elements of any type, by their width.

#include "../vertex.hpp"
#include "../words.hpp"
#include "cycles.hpp"

namespace snnjax {

// Zeros where there is no such row.
template <class Table, class T>
void takeRow(const Table& table, unsigned row, unsigned rows, T* to, unsigned width) {
  if (row < rows) return copyRows(to, &table[row * width], width, width);
  fillRows(to, T(0), width, width);
}

// out[k] = table[ids[k] - first_row], zeros where there is no such row: each tile that holds part of a table looks up
// its own rows, and their sum is the result. Workers share the ids.
template <class T>
class Gather : public poplar::MultiVertex {
 public:
  In<T> table;       // [rows, width]
  In<unsigned> ids;  // [count]
  Out<T> out;        // [count, width]
  unsigned rows, width, count;
  unsigned first_row;  // the number of the table's first row

  void compute(unsigned worker) {
    for (const unsigned k : shareOf(count, worker, rowsPerUnit<T>(width))) {
      const unsigned row = ids[k] - first_row;  // below it wraps around: out of range too
      takeRow(table, row, rows, &out[k * width], width);
    }
  }
};

// As Gather, with the starts of windows of one row in place of ids, as StableHLO has them: to those below 0 `from_end`
// is added, then they are moved into [0, last], the rows of all tables.
template <class T, class Start>
class GatherAt : public poplar::MultiVertex {
 public:
  In<T> table;       // [rows, width]
  In<Start> starts;  // [count]
  Out<T> out;        // [count, width]
  unsigned rows, width, count;
  unsigned first_row;  // the number of the table's first row
  unsigned last, from_end;

  void compute(unsigned worker) {
    for (const unsigned k : shareOf(count, worker, rowsPerUnit<T>(width))) {
      const unsigned row = moved(starts[k]) - first_row;
      takeRow(table, row, rows, &out[k * width], width);
    }
  }

 private:
  unsigned moved(Start start) const {
    unsigned row = static_cast<unsigned>(start);
    if constexpr (std::is_signed_v<Start>) {
      if (start < 0) row += from_end;
      if (static_cast<Start>(row) < 0) return 0;
    }
    return smaller(row, last);
  }
};

// out[k] = table[(offset + k) mod rows]: Poplar's dynamicSlice in one dimension, which wraps around. Workers share the
// rows of `out`.
template <class T>
class DynamicSlice : public poplar::MultiVertex {
 public:
  In<T> table;                     // [rows, width]
  poplar::Input<unsigned> offset;  // taken modulo rows
  Out<T> out;                      // [count, width]
  unsigned rows, width, count;

  void compute(unsigned worker) {
    const Range share = shareOf(count, worker, rowsPerUnit<T>(width));
    unsigned row = (*offset % rows + share.first) % rows;
    for (const unsigned k : share) {
      copyRows(&out[k * width], &table[row * width], width, width);
      if (++row == rows) row = 0;
    }
  }
};

template <class T>
std::uint64_t workerCycles(const Gather<T>& vertex, unsigned worker) {
  const Range share = shareOf(vertex.count, worker, rowsPerUnit<T>(vertex.width));
  return cycles::gatherRows(share.count(), vertex.width, sizeof(T));
}

template <class T, class Start>
std::uint64_t workerCycles(const GatherAt<T, Start>& vertex, unsigned worker) {
  const Range share = shareOf(vertex.count, worker, rowsPerUnit<T>(vertex.width));
  return cycles::gatherRowsAt(share.count(), vertex.width, sizeof(T));
}

template <class T>
std::uint64_t workerCycles(const DynamicSlice<T>& vertex, unsigned worker) {
  const Range share = shareOf(vertex.count, worker, rowsPerUnit<T>(vertex.width));
  return cycles::sliceRows(share.count(), vertex.width, sizeof(T));
}

SNNJAX_INSTANCES_OF_WIDTHS(Gather)
SNNJAX_INSTANCES_OF_WIDTHS(DynamicSlice)
SNNJAX_INSTANCES_OF_INTEGERS(GatherAt, unsigned)
SNNJAX_INSTANCES_OF_INTEGERS(GatherAt, unsigned short)
SNNJAX_INSTANCES_OF_INTEGERS(GatherAt, unsigned char)

}  // namespace snnjax
