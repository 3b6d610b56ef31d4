// A user's lists in the form that the network's codelets read: ascending, ids in range.
#include "fields.hpp"
#include "lists.hpp"

namespace snnjax {

// Drops ids out of range from the records, sorts either group of each, pads, and counts again. Workers share records.
// An insertion sort: lists mostly come sorted, and then it only compares neighbours.
template <class Id>
class SortRecord : public poplar::MultiVertex {
 public:
  InOut<Id> list;  // [rows, stride], records (lists.hpp)
  unsigned rows, stride, capacity, num_inputs;

  bool compute(unsigned worker) {
    for (unsigned b = worker; b < rows; b += numWorkers()) sort(&list[b * stride]);
    return true;
  }

 private:
  void sort(Id* record) {
    const List<Id> own = {record, capacity};
    const unsigned spikes = own.spikes(), listed = own.listed();
    Id* const ids = record + kListHeader;
    const unsigned kept = sortGroup(ids, 0, spikes, 0);
    const unsigned last = sortGroup(ids, spikes, listed, kept);
    record[0] = static_cast<Id>(kept);
    record[1] = static_cast<Id>(last);
    for (unsigned k = last; k < stride - kListHeader; ++k) ids[k] = static_cast<Id>(num_inputs);
  }

  // Moves the ids [first, last) that are in range to `to` onwards, in ascending order; returns the end.
  unsigned sortGroup(Id* ids, unsigned first, unsigned last, unsigned to) const {
    unsigned end = to;
    for (unsigned k = first; k < last; ++k) {
      const Id id = ids[k];
      if (static_cast<unsigned>(id) >= num_inputs) continue;
      unsigned at = end++;
      for (; at > to && ids[at - 1] > id; --at) ids[at] = ids[at - 1];
      ids[at] = id;
    }
    return end;
  }
};

template class SortRecord<unsigned short>;
template class SortRecord<int>;

}  // namespace snnjax
