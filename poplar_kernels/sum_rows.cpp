// The sum over rows: of the partial dot products of many tiles, of the gradients of all samples.
#include "fields.hpp"
#include "numbers.hpp"
#include "workers.hpp"

namespace snnjax {

// out[j] = sum_r in[r, j], row by row in order. Workers share columns, in pairs.
class SumRows : public poplar::MultiVertex {
 public:
  In<float> in;    // [rows, columns]
  Out<float> out;  // [columns]
  unsigned rows, columns;

  bool compute(unsigned worker) {
    const Range own = shareOf(columns, worker, 2);
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
    if (columns % 2 == 0) {
      for (unsigned j = own.first; j < own.last; j += 2) sumColumns<float2>(j);
      return true;
    }
#endif
    for (unsigned j = own.first; j < own.last; ++j) sumColumns<float>(j);
    return true;
  }

 private:
  template <class N>
  void sumColumns(unsigned j) {
    using Of = Numbers<N>;
    N sum = Of::fill(0.0f);
    const float* at = &in[j];
    for (unsigned r = 0; r < rows; ++r, at += columns) sum += Of::load(at);
    Of::store(&out[j], sum);
  }
};

}  // namespace snnjax
