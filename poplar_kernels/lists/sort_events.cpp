// A user's events in the form that the network's codelets read, and, on the way back, the gradients of their values.
#include <algorithm>
#include <utility>
#include <vector>

#include "../vertex.hpp"
#include "cycles.hpp"
#include "lists.hpp"

namespace snnjax {

// Whether rows ascend, what names nothing included, and have no value of 0. Workers share each row.
template <class Source, bool valued>
class CheckEvents : public poplar::MultiVertex {
 public:
  In<Source> ids;                // [rows, capacity]
  If<valued, In<float>> values;  // [rows, capacity]
  Out<unsigned> sorted;          // [rows, workers], 1 for shares without a fault, else 0
  unsigned rows, capacity, num_inputs;

  bool compute(unsigned worker) {
    const Range own = quickShareOf(capacity, worker);
    for (unsigned row = 0; row < rows; ++row) sorted[row * numWorkers() + worker] = isSorted(row, own) ? 1 : 0;
    return true;
  }

 private:
  bool isSorted(unsigned row, Range own) const {
    const Source* const of_row = &ids[row * capacity];
    auto before = own.first == 0 ? 0 : static_cast<unsigned>(of_row[own.first - 1]);
    for (unsigned k = own.first; k < own.last; ++k) {
      const auto id = static_cast<unsigned>(of_row[k]);
      if (id < before) return false;
      before = id;
      if constexpr (valued) {
        if (id < num_inputs && values[row * capacity + k] == 0.0f) return false;
      }
    }
    return true;
  }
};

// Records of the ids in range, ascending, with the values of each and the slot it came from; the same ids stay in the
// order of their slots, and what follows them is not written but for the other half of a word. Entries of value 0 are
// listed after the others, for their gradient alone. Events mostly come sorted: then workers share what is copied, else
// one sorts a row by insertion.
template <class Source, bool valued>
class SortEvents : public poplar::MultiVertex {
 public:
  In<Source> ids;                   // [rows, capacity], in any order; those out of range name nothing
  If<valued, In<float>> values;     // [rows, capacity], else 1
  In<unsigned> in_order;            // [rows, workers], of CheckEvents
  Out<unsigned short> lists;        // [rows, stride], records (lists.hpp)
  If<valued, Out<float>> sorted;    // [rows, capacity], in the order of the record
  If<valued, Out<unsigned>> slots;  // [rows, capacity], likewise
  unsigned rows, capacity, stride, num_inputs;

  bool compute(unsigned worker) {
    const bool is_shared = rows < numWorkers();  // each row by all workers
    for (unsigned row = is_shared ? 0 : worker; row < rows; row += is_shared ? 1 : numWorkers()) {
      if (isSorted(row)) {
        const Range own = is_shared ? Range{worker, worker + 1} : Range{0, numWorkers()};
        for (unsigned share = own.first; share < own.last; ++share) copyShare(row, share);
      } else if (!is_shared || worker == 0) {
        sort(row);
      }
    }
    return true;
  }

  bool isSorted(unsigned row) const {
    unsigned all = 1;
    for (unsigned share = 0; share < numWorkers(); ++share) all &= in_order[row * numWorkers() + share];
    return all != 0;
  }

 private:
  // A share of a sorted row and of its header, by words.
  void copyShare(unsigned row, unsigned share) {
    const Source* const of_row = &ids[row * capacity];
    unsigned short* const record = &lists[row * stride];
    const unsigned listed = numBelow(of_row, capacity, num_inputs);
    const Range words = quickShareOf((listed + 1) / 2, share);
    for (unsigned k = 2 * words.first; k < smaller(2 * words.last, listed); k += 2) {
      const auto at = [&](unsigned i) { return static_cast<unsigned>(of_row[i]); };
      storeTwo(record + kListHeader + k, at(k), k + 1 < listed ? at(k + 1) : num_inputs);
    }
    if constexpr (valued) {
      for (unsigned k = 2 * words.first; k < smaller(2 * words.last, listed); ++k) {
        sorted[row * capacity + k] = values[row * capacity + k];
        slots[row * capacity + k] = k;
      }
    }
    const auto entry = [&](unsigned i) {
      return i < kStarts ? listed : numBelow(of_row, listed, (i - kStarts + 1) * neuronsOfShare(num_inputs));
    };
    const unsigned first = 2 * share;
    if (first < kListHeader) storeTwo(record + first, entry(first), entry(first + 1));
  }

  void sort(unsigned row) {
    unsigned short* const record = &lists[row * stride];
    unsigned short* const own = record + kListHeader;
    unsigned end = 0, kept = 0;
    for (unsigned k = 0; k < capacity; ++k) {
      const unsigned id = static_cast<unsigned>(ids[row * capacity + k]);
      if (id >= num_inputs) continue;
      unsigned at = end++;
      if constexpr (valued) {
        const float value = values[row * capacity + k];
        float* const numbers = &sorted[row * capacity];
        unsigned* const from = &slots[row * capacity];
        kept += value != 0.0f ? 1 : 0;
        for (; at > 0 && isBefore(id, value, own[at - 1], numbers[at - 1]); --at) {
          own[at] = own[at - 1];
          numbers[at] = numbers[at - 1];
          from[at] = from[at - 1];
        }
        numbers[at] = value;
        from[at] = k;
      } else {
        for (; at > 0 && id < own[at - 1]; --at) own[at] = own[at - 1];
        ++kept;
      }
      own[at] = static_cast<unsigned short>(id);
    }
    unsigned header[kListHeader] = {kept, end, end};
    writeStarts(header, own, kept, num_inputs);
    storeHeader(record, header);
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

using namespace cycles;

// How many entries the ones after them pass on their way: of a larger id, or value 0, from a smaller slot.
Slots movesOf(const auto& vertex, unsigned row, bool valued) {
  Slots moves = 0;
  std::vector<std::pair<bool, unsigned>> before;
  for (unsigned k = row * vertex.capacity; k < (row + 1) * vertex.capacity; ++k) {
    const auto id = static_cast<unsigned>(vertex.ids[k]);
    if (id >= vertex.num_inputs) continue;
    bool is_zero = false;
    if constexpr (requires { vertex.values[k]; }) is_zero = valued && vertex.values[k] == 0.0f;
    moves +=
        static_cast<Slots>(std::ranges::count_if(before, [&](const auto& of) { return of > std::pair(is_zero, id); }));
    before.emplace_back(is_zero, id);
  }
  return moves;
}

template <class Source, bool valued>
std::uint64_t workerCycles(const CheckEvents<Source, valued>& vertex, unsigned worker) {
  const Range own = quickShareOf(vertex.capacity, worker);
  return entry(valued ? 6 : 5, false) + 6 + vertex.rows * checkedEvents(own.count(), valued);
}

template <class Source, bool valued>
std::uint64_t workerCycles(const SortEvents<Source, valued>& vertex, unsigned worker) {
  const bool is_shared = vertex.rows < vertex.numWorkers();
  Slots slots = entry(valued ? 10 : 7, false);
  for (unsigned row = is_shared ? 0 : worker; row < vertex.rows; row += is_shared ? 1 : vertex.numWorkers()) {
    const List<unsigned short> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    const unsigned kept = list.spikes(), listed = list.listed(), words = (listed + 1) / 2;
    slots += kSortedRow;
    if (vertex.isSorted(row)) {
      const Range own = is_shared ? Range{worker, worker + 1} : Range{0, vertex.numWorkers()};
      for (unsigned share = own.first; share < own.last; ++share) {
        const Range of_share = quickShareOf(words, share);
        slots += numBelow(vertex.capacity) + copiedEvents(of_share.last - of_share.first, valued) +
                 headerWord(share, listed);
      }
    } else if (!is_shared || worker == 0) {
      slots += sortedEvents(listed, vertex.capacity, movesOf(vertex, row, valued), valued) + eventsHeader(kept);
    }
  }
  return slots;
}

std::uint64_t workerCycles(const UnsortEvents& vertex, unsigned worker) {
  Slots slots = entry(7, false);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    const List<unsigned short> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    slots += unsortedEvents(list.listed(), vertex.capacity);
  }
  return slots;
}

template class CheckEvents<unsigned short, false>;
template class CheckEvents<unsigned short, true>;
template class CheckEvents<int, false>;
template class CheckEvents<int, true>;
template class SortEvents<unsigned short, false>;
template class SortEvents<unsigned short, true>;
template class SortEvents<int, false>;
template class SortEvents<int, true>;

}  // namespace snnjax
