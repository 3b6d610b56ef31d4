// Running sums, products, maxima and minima along rows.
#include "../combine.hpp"
#include "../vertex.hpp"
#include "cycles.hpp"

namespace snnjax {

// out[r, i] = Op of before[r] and in[r, 0 .. i], or in[r, i .. length - 1] if `reverse`. Workers share the rows.
template <class Op, class T>
class Cumulative : public poplar::MultiVertex {
 public:
  In<T> in;                   // [rows, length]
  In<Accumulator<T>> before;  // [rows], or [1] if not `continues`
  Out<T> out;                 // [rows, length]
  unsigned rows, length;
  bool continues, reverse;

  void compute(unsigned worker) {
    for (const unsigned row : shareOf(rows, worker, rowsPerUnit<T>(length))) {
      Accumulator<T> result = continues ? before[row] : Op::template kNeutral<Accumulator<T>>;
      for (unsigned k = 0; k < length; ++k) {
        const unsigned i = row * length + (reverse ? length - 1 - k : k);
        result = Op::of(result, static_cast<Accumulator<T>>(in[i]));
        out[i] = static_cast<T>(result);
      }
    }
  }
};

template <class Op, class T>
std::uint64_t workerCycles(const Cumulative<Op, T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<T>(vertex.length));
  return cycles::cumulative(own.count(), vertex.length, sizeof(T));
}

SNNJAX_INSTANCES_OF_NUMBERS(Cumulative, Sum)
SNNJAX_INSTANCES_OF_NUMBERS(Cumulative, Product)
SNNJAX_INSTANCES_OF_NUMBERS(Cumulative, Largest)
SNNJAX_INSTANCES_OF_NUMBERS(Cumulative, Smallest)

}  // namespace snnjax
