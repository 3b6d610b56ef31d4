// The largest or smallest number of each row, and its position.
#include "../combine.hpp"
#include "../vertex.hpp"
#include "cycles.hpp"

namespace snnjax {

// A NaN goes before any number.
template <class Op, class T>
bool goesBefore(T a, T b) {
  if (b != b) return false;
  return a != a || (Op::of(a, b) == a && a != b);
}

// best[i, j] is the first of the best of in[i, :, j], and number[i, j] its position: first_number + r for row r, or
// numbers[i, r, j] if `has_numbers`.
template <class Op, class T>
class ArgReduce : public poplar::MultiVertex {
 public:
  In<T> in;                     // [outer, rows, inner]
  In<int> numbers;              // the same, or [1]
  Out<T> best;                  // [outer, inner]
  Out<int> number;              // [outer, inner]
  unsigned outer, rows, inner;  // rows at least 1
  int first_number;
  bool has_numbers;

  void compute(unsigned worker) {
    using A = Accumulator<T>;
    for (const unsigned i : shareOf(outer * inner, worker, kPerWord<T>)) {
      const unsigned first = i / inner * rows * inner + i % inner;
      unsigned found = 0;
      A of_found = static_cast<A>(in[first]);
      for (unsigned row = 1; row < rows; ++row) {
        const A x = static_cast<A>(in[first + row * inner]);
        if (!goesBefore<Op>(x, of_found)) continue;
        of_found = x;
        found = row;
      }
      best[i] = in[first + found * inner];
      number[i] = has_numbers ? numbers[first + found * inner] : first_number + static_cast<int>(found);
    }
  }
};

template <class Op, class T>
std::uint64_t workerCycles(const ArgReduce<Op, T>& vertex, unsigned worker) {
  return cycles::argReduce(shareOf(vertex.outer * vertex.inner, worker, kPerWord<T>).count(), vertex.rows, sizeof(T));
}

SNNJAX_INSTANCES_OF_NUMBERS(ArgReduce, Largest)
SNNJAX_INSTANCES_OF_NUMBERS(ArgReduce, Smallest)

}  // namespace snnjax
