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
    for (unsigned j = 2 * worker; j < columns; j += 2 * numWorkers()) {
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
      if (columns % 2 == 0) {
        sumColumns<float2>(j);
        continue;
      }
#endif
      sumColumns<float>(j);
      if (j + 1 < columns) sumColumns<float>(j + 1);
    }
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
