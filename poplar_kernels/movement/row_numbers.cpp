// The table rows that the windows of a gather or scatter cover.
#include "../vertex.hpp"
#include "cycles.hpp"

namespace snnjax {

// rows[i, j] = bases[i] + offsets[j] + sum over d of starts[i, d] * strides[d]. To starts below 0 from_end[d] is added;
// then they are moved into [0, limits[d]], or, if not `clamps`, the row is 0xffffffff where one lies outside.
class RowNumbers : public poplar::MultiVertex {
 public:
  In<unsigned> starts;                     // [count, depth], or the bits of ints
  In<unsigned> limits, strides, from_end;  // [depth]
  In<unsigned> bases;                      // [count]
  In<unsigned> offsets;                    // [window]
  Out<unsigned> numbers;                   // [count, window]
  unsigned count, depth, window;
  bool is_signed, clamps;

  void compute(unsigned worker) {
    for (const unsigned i : shareOf(count, worker)) {
      bool inside = true;
      const unsigned first = firstRow(i, inside);
      for (unsigned j = 0; j < window; ++j) numbers[i * window + j] = inside ? first + offsets[j] : kNowhere;
    }
  }

 private:
  static constexpr unsigned kNowhere = 0xffffffffU;

  bool isBelowZero(unsigned start) const { return is_signed && start > 0x7fffffff; }

  unsigned firstRow(unsigned i, bool& inside) const {
    unsigned row = bases[i];
    for (unsigned d = 0; d < depth; ++d) {
      unsigned start = starts[i * depth + d];
      if (isBelowZero(start)) start += from_end[d];
      if (start > limits[d]) {
        inside = inside && clamps;
        start = isBelowZero(start) ? 0 : limits[d];
      }
      row += start * strides[d];
    }
    return row;
  }
};

std::uint64_t workerCycles(const RowNumbers& vertex, unsigned worker) {
  return cycles::rowNumbers(shareOf(vertex.count, worker).count(), vertex.depth, vertex.window);
}

}  // namespace snnjax
