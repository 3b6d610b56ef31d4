// A user's events in the form that the network's codelets read, and, on the way back, the gradients of their values.
#include <algorithm>
#include <utility>
#include <vector>

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

  void compute(unsigned worker) {
    const Range own = quickShareOf(capacity, worker);
    for (unsigned row = 0; row < rows; ++row) sorted[row * numWorkers() + worker] = isSorted(row, own) ? 1 : 0;
  }

 private:
  bool isSorted(unsigned row, Range own) const {
    const Source* const of_row = &ids[row * capacity];
    auto before = own.first == 0 ? 0 : static_cast<unsigned>(of_row[own.first - 1]);
    for (const unsigned k : own) {
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

  void compute(unsigned worker) {
    const bool is_shared = rows < numWorkers();  // each row by all workers
    for (unsigned row = is_shared ? 0 : worker; row < rows; row += is_shared ? 1 : numWorkers()) {
      if (isSorted(row)) {
        const Range own = is_shared ? Range{worker, worker + 1} : Range{0, numWorkers()};
        for (const unsigned share : own) copyShare(row, share);
      } else if (!is_shared || worker == 0) {
        sort(row);
      }
    }
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

  void compute(unsigned worker) {
    for (unsigned row = worker; row < rows; row += numWorkers()) {
      const unsigned first = row * capacity;
      for (unsigned k = 0; k < capacity; ++k) out[first + k] = 0.0f;
      const unsigned listed = List<unsigned short>{&lists[row * stride], capacity}.listed();
      for (unsigned k = 0; k < listed; ++k) {
        if (slots[first + k] < capacity) out[first + slots[first + k]] = g[first + k];
      }
    }
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

// A share of a row: its pointers 4, the entry before it 2, its flag 3; a slot's load, comparison and branch, loop; its
// value's load, range 2, comparison and branch.
template <class Source, bool valued>
std::uint64_t workerCycles(const CheckEvents<Source, valued>& vertex, unsigned worker) {
  const Slots slots = quickShareOf(vertex.capacity, worker).count();
  return entry(valued ? 6 : 5, false) + 6 + vertex.rows * (9 + slots * (4 + (valued ? 5 : 0)));
}

// What is copied, a share of a sorted row: the search for its end; of two entries two loads, the test for the second
// one, both in one 2, the store, the loop; with values three words each and a loop of their own. A worker's word of the
// header: around it 8, the searches for the starts in it with their bounds.
Slots copiedShare(Slots capacity, unsigned listed, unsigned share, bool valued) {
  const Slots words = quickShareOf((listed + 1) / 2, share).count();
  const unsigned last = 2 * share + 1, starts = last < kStarts ? 0 : last < kListHeader ? (last > kStarts ? 2 : 1) : 0;
  return numBelow(capacity) + 14 + words * (7 + (valued ? 8 : 0)) + 8 + starts * (2 + numBelow(listed));
}

// A row that one worker sorts. A slot of the input: its id, range 2, loop 2; of one in range the entry before it with
// the comparison 3, the store of 16 bits; with values 2 more, the value 2, two stores. An entry that moves: the same, a
// load for each store, the loop. The header: starts, each with its share's bound and the loop 3, for all ids a load,
// comparison and branch; of two entries both in one 2, and the store.
Slots sortedRow(List<unsigned short> list, Slots moves, bool valued) {
  const Slots entry = 3 + kShortStore + (valued ? 2 + 2 + 2 : 0);
  return 20 + Slots{list.capacity} * 5 + list.listed() * entry + moves * (entry + 2 + (valued ? 1 : 0)) + 8 +
         Slots{list.spikes()} * 3 + (kShares - 1) * 3 + kListHeader / 2 * 3;
}

// Whether all shares of a row are sorted: a load of each beside the sum of the one before, and the test.
template <class Source, bool valued>
std::uint64_t workerCycles(const SortEvents<Source, valued>& vertex, unsigned worker) {
  const bool is_shared = vertex.rows < vertex.numWorkers();
  Slots slots = entry(valued ? 10 : 7, false);
  for (unsigned row = is_shared ? 0 : worker; row < vertex.rows; row += is_shared ? 1 : vertex.numWorkers()) {
    const List<unsigned short> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    slots += 2 + kShares + 2;
    if (vertex.isSorted(row)) {
      for (const unsigned share : is_shared ? Range{worker, worker + 1} : Range{0, vertex.numWorkers()}) {
        slots += copiedShare(vertex.capacity, list.listed(), share, valued);
      }
    } else if (!is_shared || worker == 0) {
      slots += sortedRow(list, movesOf(vertex, row, valued), valued);
    }
  }
  return slots;
}

// A zero by its store and branch; an entry: its slot, range 2, address 1, load, store, loop 2.
std::uint64_t workerCycles(const UnsortEvents& vertex, unsigned worker) {
  Slots slots = entry(7, false);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    const List<unsigned short> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    slots += 12 + Slots{vertex.capacity} * 2 + kRecordHeader + list.listed() * 8;
  }
  return slots;
}

SNNJAX_INSTANCES_OF_CHOICES(CheckEvents, unsigned short)
SNNJAX_INSTANCES_OF_CHOICES(CheckEvents, int)
SNNJAX_INSTANCES_OF_CHOICES(SortEvents, unsigned short)
SNNJAX_INSTANCES_OF_CHOICES(SortEvents, int)

}  // namespace snnjax
