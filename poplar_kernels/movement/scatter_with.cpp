// Table rows combined with others by index. As in scatter_rows.cpp, every worker goes through all indices and takes
// those of its own rows, in their order.
#include "../combine.hpp"
#include "../vertex.hpp"
#include "cycles.hpp"

namespace snnjax {

// table[numbers[k] - first_row] = Op(table[...], values[k]) where there is such a row.
template <class Op, class T>
class ScatterWith : public poplar::MultiVertex {
 public:
  InOut<T> table;        // [rows, width]
  In<unsigned> numbers;  // [count]
  In<T> values;          // [count, width]
  unsigned rows, width, count;
  unsigned first_row;  // the number of the table's first row

  bool compute(unsigned worker) {
    const Range own = shareOf(rows, worker, rowsPerUnit<T>(width));
    forEachOwnRow(&numbers[0], count, first_row, own, [&](unsigned k, unsigned row) {
      for (unsigned i = 0; i < width; ++i) {
        T& element = table[row * width + i];
        element = static_cast<T>(Op::of(static_cast<A>(element), static_cast<A>(values[k * width + i])));
      }
    });
    return true;
  }

 private:
  using A = Accumulator<T>;
};

template <class Op, class T>
std::uint64_t workerCycles(const ScatterWith<Op, T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<T>(vertex.width));
  const unsigned found = countOwnRows(&vertex.numbers[0], vertex.count, vertex.first_row, own);
  return cycles::scatterWith(vertex.count, found, vertex.width, sizeof(T));
}

#define SNNJAX_SCATTER_NUMBER(Op)        \
  template class ScatterWith<Op, float>; \
  template class ScatterWith<Op, half>;  \
  template class ScatterWith<Op, int>;   \
  template class ScatterWith<Op, unsigned>;
SNNJAX_SCATTER_NUMBER(Sum)
SNNJAX_SCATTER_NUMBER(Product)
SNNJAX_SCATTER_NUMBER(Largest)
SNNJAX_SCATTER_NUMBER(Smallest)
#undef SNNJAX_SCATTER_NUMBER
#define SNNJAX_SCATTER_BITS(Op)             \
  template class ScatterWith<Op, unsigned>; \
  template class ScatterWith<Op, unsigned char>;
SNNJAX_SCATTER_BITS(BitAnd)
SNNJAX_SCATTER_BITS(BitOr)
SNNJAX_SCATTER_BITS(BitXor)
#undef SNNJAX_SCATTER_BITS

}  // namespace snnjax
