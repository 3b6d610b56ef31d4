// lif_network: dense inputs on their way to the neurons. Their home lists the nonzero ones, so that the cost of sums
// and weight gradients grows with these alone.
#include "../numbers.hpp"
#include "cycles.hpp"
#include "lists.hpp"

namespace snnjax {

// The inputs of a block that are not 0, and their values. Workers share rows.
class ListInputs : public poplar::MultiVertex {
 public:
  In<float> history;          // [num_blocks, rows, num_inputs]
  Out<unsigned short> lists;  // [rows, stride], records (lists.hpp), ids ascending; the rest is not touched
  Out<float> values;          // [rows, num_inputs], of the listed inputs, in their order
  poplar::Input<unsigned> block;
  unsigned num_blocks, rows, stride, num_inputs;

  void compute(unsigned worker) {
    if (*block >= num_blocks) return;
    for (unsigned b = worker; b < rows; b += numWorkers()) {
      unsigned short* const record = &lists[b * stride];
      const unsigned count =
          list(&history[(*block * rows + b) * num_inputs], record + kListHeader, &values[b * num_inputs]);
      for (unsigned i = 0; i < kStarts; ++i)
        record[i] = static_cast<unsigned short>(count);  // kept, listed, true spikes
      writeStarts(record, record + kListHeader, count, num_inputs);
    }
  }

 private:
  // Returns how many there are. Most pairs are skipped in one test.
  unsigned list(const float* row, unsigned short* ids, float* kept) const {
    unsigned count = 0, i = 0;
    const auto offer = [&](unsigned id, float value) {
      if (value == 0.0f) return;
      ids[count] = static_cast<unsigned short>(id);
      kept[count++] = value;
    };
    for (; num_inputs % 2 == 0 && i < num_inputs; i += 2) {
      const float2 pair = Numbers<float2>::load(row + i);
      if (pair[0] == 0.0f && pair[1] == 0.0f) continue;
      offer(i, pair[0]);
      offer(i + 1, pair[1]);
    }
    for (; i < num_inputs; ++i) offer(i, row[i]);
    return count;
  }
};

std::uint64_t workerCycles(const ListInputs& vertex, unsigned worker) {
  cycles::Slots slots = cycles::entry(8, false) + 2;
  for (unsigned b = worker; b < vertex.rows; b += vertex.numWorkers()) {
    const List<unsigned short> list = {&vertex.lists[b * vertex.stride], vertex.num_inputs};
    slots += cycles::listedRow(vertex.num_inputs, list.spikes(), sizeof(unsigned short));
  }
  return slots;
}

}  // namespace snnjax
