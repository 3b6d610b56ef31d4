// Sorted rows with values that move along: a stable merge sort of each row. NaN is larger than any number.
#include "sort_cycles.hpp"

#include "fields.hpp"
#include "workers.hpp"

namespace snnjax {

namespace {

template <class K>
bool isLess(K a, K b) {
  return a < b || (b != b && a == a);
}

// A row of keys, and of the values that go with them.
template <class K, class V>
struct Pairs {
  K* keys;
  V* values;
  void take(unsigned to, const Pairs& from, unsigned i) {
    keys[to] = from.keys[i];
    values[to] = from.values[i];
  }
};

// Merges [first, middle) and [middle, last) of `from`; of equal keys the one from the left goes first.
template <class Row>
void merge(Row from, Row to, unsigned first, unsigned middle, unsigned last, bool descending) {
  unsigned left = first, right = middle;
  for (unsigned i = first; i < last; ++i) {
    const bool right_first =
        right < last && (left == middle || (descending ? isLess(from.keys[left], from.keys[right])
                                                       : isLess(from.keys[right], from.keys[left])));
    to.take(i, from, right_first ? right++ : left++);
  }
}

// Sorts `row`, in which every `sorted` elements are in order already.
template <class Row>
void mergeSort(Row row, Row scratch, unsigned length, unsigned sorted, bool descending) {
  Row from = row, to = scratch;
  for (unsigned run = larger(sorted, 1); run < length; run *= 2) {
    for (unsigned first = 0; first < length; first += 2 * run) {
      merge(from, to, first, smaller(first + run, length), smaller(first + 2 * run, length), descending);
    }
    const Row read = from;
    from = to;
    to = read;
  }
  if (from.keys == row.keys) return;
  for (unsigned i = 0; i < length; ++i) row.take(i, from, i);
}

}  // namespace

// Workers share the rows.
template <class K, class V>
class SortRowsWithValues : public poplar::MultiVertex {
 public:
  InOut<K> keys;          // [rows, length]
  InOut<V> values;        // [rows, length]
  Out<K> scratch;         // [rows, length]
  Out<V> scratch_values;  // [rows, length]
  unsigned rows, length;
  unsigned sorted;  // runs of this many elements are already in order: 1 if nothing is known
  bool descending;

  bool compute(unsigned worker) {
    const Range own = shareOf(rows, worker, larger(rowsPerUnit<K>(length), rowsPerUnit<V>(length)));
    for (unsigned row = own.first; row < own.last; ++row) {
      const unsigned first = row * length;
      mergeSort(Pairs<K, V>{&keys[first], &values[first]}, Pairs<K, V>{&scratch[first], &scratch_values[first]}, length,
                sorted, descending);
    }
    return true;
  }
};

template <class K, class V>
std::uint64_t workerCycles(const SortRowsWithValues<K, V>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, larger(rowsPerUnit<K>(vertex.length), rowsPerUnit<V>(vertex.length)));
  return cycles::sortRows(own.last - own.first, vertex.length, vertex.sorted);
}

template class SortRowsWithValues<float, unsigned>;
template class SortRowsWithValues<half, unsigned>;
template class SortRowsWithValues<int, unsigned>;
template class SortRowsWithValues<unsigned, unsigned>;

}  // namespace snnjax
