// Sorting by several keys: keys become unsigned numbers of the same order, a merge sort orders the places of the
// elements by them, and elements of any type are then taken from their places.

#include "../numbers.hpp"
#include "../vertex.hpp"
#include "cycles.hpp"

namespace snnjax {

// out is in the order of in, or the opposite one if `descending`: both zeros are equal, a NaN is above all. If `total`
// the order is that of IEEE 754: -NaN, -infinity, ..., -0, 0, ..., infinity, NaN.
template <class T>
class OrderedBits : public poplar::MultiVertex {
 public:
  In<T> in;           // [count]
  Out<unsigned> out;  // [count]
  unsigned count;
  bool descending, total;

  void compute(unsigned worker) {
    for (const unsigned i : shareOf(count, worker, 2)) {
      const unsigned bits = ordered(in[i]);
      out[i] = descending ? ~bits : bits;
    }
  }

 private:
  static constexpr unsigned kSign = 0x80000000U;

  unsigned ordered(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<unsigned>(x) ^ (std::is_signed_v<T> ? kSign : 0U);
    } else {
      const float number = toFloat(x);
      if (!total && number != number) return ~0U;
      if (!total && number == 0.0f) return kSign;
      return keyOf(number);
    }
  }
};

// numbers[r, :] become places (in the whole field) of row r in the order of their keys, equal ones in that of their
// places. Every `sorted` of them are in order already; 1 says that nothing is known, and they need not be set. A row is
// cut into `parts` of equal length except the last, each sorted on its own; workers share the parts. So all of them
// sort parts of a long row, then one of them merges the row, with `sorted` the length of the parts.
class SortNumbers : public poplar::MultiVertex {
 public:
  In<unsigned> keys;        // [num_keys, rows, length], the first one counts most
  InOut<unsigned> numbers;  // [rows, length]
  Out<unsigned> scratch;    // [rows, length]
  unsigned num_keys, rows, length;
  unsigned parts, sorted;

  void compute(unsigned worker) {
    for (const unsigned i : shareOf(rows * parts, worker)) {
      const unsigned first = i % parts * partLength();
      if (first < length) sortPart(i / parts * length + first, smaller(partLength(), length - first));
    }
  }
  unsigned partLength() const { return (length + parts - 1) / parts; }

 private:
  bool isBefore(unsigned a, unsigned b) const {
    for (unsigned key = 0; key < num_keys; ++key) {
      const unsigned* const of_key = &keys[key * rows * length];
      if (of_key[a] != of_key[b]) return of_key[a] < of_key[b];
    }
    return a < b;
  }

  void merge(const unsigned* from, unsigned* to, unsigned first, unsigned middle, unsigned last) const {
    unsigned left = first, right = middle;
    for (unsigned i = first; i < last; ++i) {
      const bool right_first = right < last && (left == middle || isBefore(from[right], from[left]));
      to[i] = from[right_first ? right++ : left++];
    }
  }

  void sortPart(unsigned begin, unsigned count) {
    unsigned *from = &numbers[begin], *to = &scratch[begin];
    if (sorted <= 1) {
      for (unsigned i = 0; i < count; ++i) from[i] = begin + i;
    }
    for (unsigned run = larger(sorted, 1); run < count; run *= 2) {
      for (unsigned first = 0; first < count; first += 2 * run) {
        merge(from, to, first, smaller(first + run, count), smaller(first + 2 * run, count));
      }
      unsigned* const written = to;
      to = from;
      from = written;
    }
    for (unsigned i = 0; from != &numbers[begin] && i < count; ++i) to[i] = from[i];
  }
};

// out[r, i] = in[numbers[r, i]] for the first `count` of each row.
template <class T>
class TakeNumbers : public poplar::MultiVertex {
 public:
  In<T> in;              // [rows, length]
  In<unsigned> numbers;  // [rows, length], each below rows * length
  Out<T> out;            // [rows, count]
  unsigned rows, length, count;

  void compute(unsigned worker) {
    const Range own = shareOf(rows * count, worker, larger(2, kPerWord<T>));
    for (const unsigned i : own) out[i] = in[numbers[i / count * length + i % count]];
  }
};

template <class T>
std::uint64_t workerCycles(const OrderedBits<T>& vertex, unsigned worker) {
  return cycles::orderedBits(shareOf(vertex.count, worker, 2).count());
}

inline std::uint64_t workerCycles(const SortNumbers& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows * vertex.parts, worker);
  return cycles::sortNumbers(own.count(), vertex.partLength(), vertex.sorted, vertex.num_keys);
}

template <class T>
std::uint64_t workerCycles(const TakeNumbers<T>& vertex, unsigned worker) {
  return cycles::takeNumbers(shareOf(vertex.rows * vertex.count, worker, larger(2, kPerWord<T>)).count(), sizeof(T));
}

SNNJAX_INSTANCES_OF_NUMBERS(OrderedBits)
SNNJAX_INSTANCES_OF_WIDTHS(TakeNumbers)

}  // namespace snnjax
