// The sum over rows: of the partial dot products of many tiles, of the gradients of all samples.
#include "../numbers.hpp"
#include "../vertex.hpp"
#include "cycles.hpp"

namespace snnjax {

// The sums of kCount neighbouring N of columns, row by row in order.
template <class N, unsigned kCount>
void sumColumns(const float* at, float* to, unsigned rows, unsigned columns) {
  using Of = Numbers<N>;
  N sums[kCount];
  for (unsigned i = 0; i < kCount; ++i) sums[i] = Of::fill(0.0f);
  const auto add = [&] {
    for (unsigned i = 0; i < kCount; ++i) sums[i] += Of::load(at + i * Of::kCount);
    at += columns;
  };
  constexpr unsigned kTurn = kCount == 1 ? 8 : 2;
  switch (rows % kTurn) {  // those left over come first
    case 7: add(); [[fallthrough]];
    case 6: add(); [[fallthrough]];
    case 5: add(); [[fallthrough]];
    case 4: add(); [[fallthrough]];
    case 3: add(); [[fallthrough]];
    case 2: add(); [[fallthrough]];
    case 1: add(); [[fallthrough]];
    default: break;
  }
  for (unsigned turn = 0; turn < rows / kTurn; ++turn) {
    for (unsigned k = 0; k < kTurn; ++k) add();
  }
  for (unsigned i = 0; i < kCount; ++i) Of::store(to + i * Of::kCount, sums[i]);
}

// out[j] = sum_r in[r, j], row by row in order. Workers share columns: pairs, four of which are summed at once, two
// rows a turn, or one, eight rows a turn.
class SumRows : public poplar::MultiVertex {
 public:
  In<float> in;    // [rows, columns]
  Out<float> out;  // [columns]
  unsigned rows, columns;

  void compute(unsigned worker) {
    const Range own = ownColumns(worker);
    unsigned j = own.first;
    if (columns % 2 == 0) {
      for (; j + 8 <= own.last; j += 8) sumColumns<float2, 4>(&in[j], &out[j], rows, columns);
      for (; j < own.last; j += 2) sumColumns<float2, 1>(&in[j], &out[j], rows, columns);
    }
    for (; j < own.last; ++j) sumColumns<float, 1>(&in[j], &out[j], rows, columns);
  }

  Range ownColumns(unsigned worker) const {
    const Range pairs = quickShareOf((columns + 1) / 2, worker);
    return {smaller(2 * pairs.first, columns), smaller(2 * pairs.last, columns)};
  }
};

std::uint64_t workerCycles(const SumRows& vertex, unsigned worker) {
  const Range own = vertex.ownColumns(worker);
  return cycles::entry(4, false) + cycles::sumRows(vertex.rows, own.count(), vertex.columns % 2 == 0);
}

}  // namespace snnjax
