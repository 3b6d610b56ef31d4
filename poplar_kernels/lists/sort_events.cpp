// A user's events in the form that the network's codelets read, and, on the way back, the gradients of their values.
#include <algorithm>
#include <utility>
#include <vector>

#include "../vertex.hpp"
#include "cycles.hpp"
#include "lists.hpp"

namespace snnjax {

// Records of the ids in range, ascending, with the values of each and the slot it came from; the same ids stay in the
// order of their slots, and what follows them is not written. Entries of value 0 are listed after the others, for their
// gradient alone. Events mostly come sorted: then workers share what is copied, else one sorts a row by insertion.
template <class Source, bool valued>
class SortEvents : public poplar::MultiVertex {
 public:
  In<Source> ids;                   // [rows, capacity], in any order; those out of range name nothing
  If<valued, In<float>> values;     // [rows, capacity], else 1
  Out<unsigned short> lists;        // [rows, stride], records (lists.hpp)
  If<valued, Out<float>> sorted;    // [rows, capacity], in the order of the record
  If<valued, Out<unsigned>> slots;  // [rows, capacity], likewise
  unsigned rows, capacity, stride, num_inputs;

  bool compute(unsigned worker) {
    const bool is_shared = rows < numWorkers();  // each row by all workers
    for (unsigned row = is_shared ? 0 : worker; row < rows; row += is_shared ? 1 : numWorkers()) {
      if (isSorted(row)) {
        const unsigned listed = numBelow(&ids[row * capacity], capacity, num_inputs);
        const Range words = is_shared ? quickShareOf((listed + 1) / 2, worker) : Range{0, (listed + 1) / 2};
        copy(row, {2 * words.first, smaller(2 * words.last, listed)});
        // The last worker has the shortest share.
        if (!is_shared || worker + 1 == numWorkers()) writeHeader(row, &ids[row * capacity], listed, listed);
      } else if (!is_shared || worker == 0) {
        sort(row);
      }
    }
    return true;
  }

  // Whether a row ascends, what names nothing included, and has no value of 0.
  bool isSorted(unsigned row) const {
    unsigned before = 0;
    for (unsigned k = 0; k < capacity; ++k) {
      const unsigned id = static_cast<unsigned>(ids[row * capacity + k]);
      if (id < before) return false;
      before = id;
      if constexpr (valued) {
        if (id < num_inputs && values[row * capacity + k] == 0.0f) return false;
      }
    }
    return true;
  }

 private:
  // Entries that begin at a word.
  void copy(unsigned row, Range own) {
    for (unsigned k = own.first; k < own.last; ++k) {
      lists[row * stride + kListHeader + k] = static_cast<unsigned short>(ids[row * capacity + k]);
      if constexpr (valued) {
        sorted[row * capacity + k] = values[row * capacity + k];
        slots[row * capacity + k] = k;
      }
    }
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
    writeHeader(row, own, kept, end);
  }

  template <class Own>
  void writeHeader(unsigned row, const Own* own, unsigned kept, unsigned listed) {
    unsigned header[kListHeader] = {kept, listed, listed};
    writeStarts(header, own, kept, num_inputs);
    storeHeader(&lists[row * stride], header);
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
std::uint64_t workerCycles(const SortEvents<Source, valued>& vertex, unsigned worker) {
  const bool is_shared = vertex.rows < vertex.numWorkers();
  Slots slots = entry(valued ? 9 : 6, false);
  for (unsigned row = is_shared ? 0 : worker; row < vertex.rows; row += is_shared ? 1 : vertex.numWorkers()) {
    const List<unsigned short> list = {&vertex.lists[row * vertex.stride], vertex.capacity};
    const unsigned kept = list.spikes(), listed = list.listed(), words = (listed + 1) / 2;
    slots += isSorted(vertex.capacity, valued);
    if (vertex.isSorted(row)) {
      const Range own = is_shared ? quickShareOf(words, worker) : Range{0, words};
      slots += numBelow(vertex.capacity) + copiedEvents(2 * (own.last - own.first), valued);
      if (!is_shared || worker + 1 == vertex.numWorkers()) slots += eventsHeader(kept);
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

template class SortEvents<unsigned short, false>;
template class SortEvents<unsigned short, true>;
template class SortEvents<int, false>;
template class SortEvents<int, true>;

}  // namespace snnjax
