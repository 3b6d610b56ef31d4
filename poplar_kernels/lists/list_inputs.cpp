// lif_network: dense inputs on their way to the neurons. Their home lists the nonzero ones, so that the cost of sums
// and weight gradients grows with these alone.
#include "../fields.hpp"
#include "../numbers.hpp"
#include "lists.hpp"

namespace snnjax {

// The inputs of a block that are not 0, and their values. Workers share rows.
template <class Id>
class ListInputs : public poplar::MultiVertex {
 public:
  In<float> history;  // [num_blocks, rows, num_inputs]
  Out<Id> lists;      // [rows, stride], records (lists.hpp), ids ascending; the rest is not touched
  Out<float> values;  // [rows, num_inputs], of the listed inputs, in their order
  poplar::Input<unsigned> block;
  unsigned num_blocks, rows, stride, num_inputs;

  bool compute(unsigned worker) {
    if (*block >= num_blocks) return true;
    for (unsigned b = worker; b < rows; b += numWorkers()) {
      Id* const record = &lists[b * stride];
      const unsigned count =
          list(&history[(*block * rows + b) * num_inputs], record + kListHeader, &values[b * num_inputs]);
      for (unsigned i = 0; i < kStarts; ++i) record[i] = static_cast<Id>(count);  // kept, listed, true spikes
      writeStarts(record, record + kListHeader, count, num_inputs);
    }
    return true;
  }

 private:
  // Returns how many there are. Most pairs are skipped in one test.
  unsigned list(const float* row, Id* ids, float* kept) const {
    unsigned count = 0, i = 0;
    const auto offer = [&](unsigned id, float value) {
      if (value == 0.0f) return;
      ids[count] = static_cast<Id>(id);
      kept[count++] = value;
    };
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
    for (; num_inputs % 2 == 0 && i < num_inputs; i += 2) {
      const float2 pair = Numbers<float2>::load(row + i);
      if (pair[0] == 0.0f && pair[1] == 0.0f) continue;
      offer(i, pair[0]);
      offer(i + 1, pair[1]);
    }
#endif
    for (; i < num_inputs; ++i) offer(i, row[i]);
    return count;
  }
};

template class ListInputs<unsigned short>;

}  // namespace snnjax
