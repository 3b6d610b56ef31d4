// A user's events in the form that the network's codelets read, and, on the way back, the gradients of their values.
#include "../fields.hpp"
#include "lists.hpp"

namespace snnjax {

// Records of the ids in range, ascending, with the values of each and the slot it came from; the same ids stay in the
// order of their slots, and what follows them is not written. Entries of value 0 are listed after the others, for their
// gradient alone. Workers share rows. An insertion sort: events mostly come sorted.
template <class Source>
class SortEvents : public poplar::MultiVertex {
 public:
  In<Source> ids;             // [rows, capacity], in any order; those out of range name nothing
  In<float> values;           // [rows, capacity]
  Out<unsigned short> lists;  // [rows, stride], records (lists.hpp)
  Out<float> sorted;          // [rows, capacity], in the order of the record
  Out<unsigned> slots;        // [rows, capacity], likewise
  unsigned rows, capacity, stride, num_inputs;

  bool compute(unsigned worker) {
    for (unsigned row = worker; row < rows; row += numWorkers()) sort(row);
    return true;
  }

 private:
  void sort(unsigned row) {
    unsigned short* const record = &lists[row * stride];
    unsigned short* const own = record + kListHeader;
    float* const numbers = &sorted[row * capacity];
    unsigned* const from = &slots[row * capacity];
    unsigned end = 0, kept = 0;
    for (unsigned k = 0; k < capacity; ++k) {
      const unsigned id = static_cast<unsigned>(ids[row * capacity + k]);
      if (id >= num_inputs) continue;
      const float value = values[row * capacity + k];
      unsigned at = end++;
      kept += value != 0.0f ? 1 : 0;
      for (; at > 0 && isBefore(id, value, own[at - 1], numbers[at - 1]); --at) {
        own[at] = own[at - 1];
        numbers[at] = numbers[at - 1];
        from[at] = from[at - 1];
      }
      own[at] = static_cast<unsigned short>(id);
      numbers[at] = value;
      from[at] = k;
    }
    for (unsigned i = 0; i < kStarts; ++i) record[i] = static_cast<unsigned short>(i == kKept ? kept : end);
    writeStarts(record, kept, num_inputs);
  }

  static bool isBefore(unsigned id, float value, unsigned other, float other_value) {
    return (value == 0.0f) == (other_value == 0.0f) ? id < other : value != 0.0f;
  }
};

// out[slots[k]] = g[k] for what a record lists, and 0 in the other slots.
class UnsortEvents : public poplar::MultiVertex {
 public:
  In<unsigned short> lists;  // [rows, stride], and
  In<unsigned> slots;        // [rows, capacity], from SortEvents; those out of range name nothing
  In<float> g;               // [rows, capacity], in the order of the record
  Out<float> out;            // [rows, capacity]
  unsigned rows, capacity, stride;

  bool compute(unsigned worker) {
    for (unsigned row = worker; row < rows; row += numWorkers()) {
      const unsigned first = row * capacity;
      for (unsigned k = 0; k < capacity; ++k) out[first + k] = 0.0f;
      const unsigned listed = List<unsigned short>{&lists[row * stride], capacity}.listed();
      for (unsigned k = 0; k < listed; ++k) {
        if (slots[first + k] < capacity) out[first + slots[first + k]] = g[first + k];
      }
    }
    return true;
  }
};

template class SortEvents<unsigned short>;
template class SortEvents<int>;

}  // namespace snnjax
