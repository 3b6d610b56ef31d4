// select_spikes: from membranes to capped lists. Each part of a row of neurons lists its candidates, cut by the fair
// rule; one vertex per row joins the lists. The result does not depend on how the row is divided: whatever a part
// drops, the whole row would drop.
#include <cstring>

#include "fields.hpp"
#include "lists.hpp"
#include "neuron.hpp"
#include "selection.hpp"

namespace snnjax {

// Pads [first, last) of ids that begin at a word: words at a time where an id is half of one.
template <class Id>
inline void fillPads(Id* ids, unsigned first, unsigned last, unsigned pad) {
  unsigned k = first;
  if constexpr (kPerWord<Id> == 2) {
    if (k % 2 == 1 && k < last) ids[k++] = static_cast<Id>(pad);
    const unsigned two_pads = pad << 16 | pad;
    for (; k + 2 <= last; k += 2)
      std::memcpy(__builtin_assume_aligned(ids + k, sizeof(two_pads)), &two_pads, sizeof(two_pads));
  }
  for (; k < last; ++k) ids[k] = static_cast<Id>(pad);
}

// The number of candidates of either kind, and how many are kept.
struct Counts {
  unsigned spikes, near;

  Counts cappedTo(unsigned slots) const {
    const unsigned kept = smaller(spikes, slots);
    return {kept, smaller(near, slots - kept)};
  }
};

// Candidates of one chunk of a row: neurons above the threshold, then those above the second threshold. Both may be
// raised, by an amount for each neuron of each row.
template <class Id, bool raised>
class SelectCandidates : public poplar::MultiVertex {
 public:
  In<float> v;                  // [blocks, rows, columns], membranes as tiles send them; a NaN is never listed
  In<float> threshold;          // [neurons]
  In<float> second_threshold;   // [neurons]
  If<raised, In<float>> raise;  // as v, added to both thresholds
  Out<Id> lists;                // [rows, parts, stride], records (lists.hpp) with global ids
  Out<float> membranes;         // [rows, parts, slots], of the listed ids
  unsigned rows, neurons;
  unsigned columns;  // neuron j of a row lies in block j / columns; the last block may hold more than `neurons`
  unsigned parts;    // chunks of a row: 6 lets all workers share one row, 1 does where there are many rows
  unsigned slots, stride;
  unsigned capacity;  // of the final list: a chunk never needs to offer more
  unsigned first_id, num_neurons;

  bool compute(unsigned worker) {
    for (unsigned item = worker; item < rows * parts; item += numWorkers()) select(item);
    return true;
  }

  // The neurons of an item, [row, part]: an even number but in the last part.
  Range chunkOf(unsigned item) const {
    const unsigned chunk = roundUp((neurons + parts - 1) / parts, 2), first = item % parts * chunk;
    return {smaller(first, neurons), smaller(first + chunk, neurons)};
  }

  // Calls body(j, v, is_spike) for the candidates of an item: those above either threshold.
  template <class Body>
  void forEachCandidate(unsigned item, Body&& body) const {
    const Range own = chunkOf(item);
    const unsigned row = item / parts;
    if (columns == 2) return scan((own.first / 2 * rows + row) * 2, 2 * rows, own, body);
    unsigned block = own.first / columns;
    for (unsigned j = own.first; j < own.last; ++block) {
      const unsigned last = smaller((block + 1) * columns, own.last);
      scan((block * rows + row) * columns + j - block * columns, 2, Range{j, last}, body);
      j = last;
    }
  }

  Counts count(unsigned item) const {
    Counts counts = {0, 0};
    forEachCandidate(item, [&](unsigned, float, bool is_spike) { ++(is_spike ? counts.spikes : counts.near); });
    return counts;
  }

  // The cut of the spikes, or of the others.
  Cut cutOf(unsigned item, bool spikes, unsigned found, unsigned kept) const {
    const auto forEach = [&](auto&& body) {
      forEachCandidate(item, [&](unsigned j, float membrane, bool is_spike) {
        if (is_spike == spikes) body(membrane, first_id + j);
      });
    };
    const auto countAbove = [&](float bound) {
      unsigned above = 0;
      forEach([&](float membrane, unsigned) { above += membrane > bound ? 1 : 0; });
      return above;
    };
    return findCut(found, kept, countAbove, forEach);
  }

 private:
  // The candidates of `own`, two neighbours at a time, from element `at` of v; their pairs lie `step` apart.
  template <class Body>
  void scan(unsigned at, unsigned step, Range own, Body&& body) const {
    unsigned j = own.first;
    for (; j + 2 <= own.last; j += 2, at += step) {
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
      using Of = Numbers<float2>;
      if (columns % 2 == 0) {  // pairs begin at 64 bits
        const float2 pair = Of::load(&v[at]);
        const float2 above =
            fires(pair, limit(threshold, j, at, Of{})) + fires(pair, limit(second_threshold, j, at, Of{}));
        if (above[0] + above[1] == 0.0f) continue;
      }
#endif
      offer(j, at, body);
      offer(j + 1, at + 1, body);
    }
    if (j < own.last) offer(j, at, body);
  }

  // A threshold of the neurons from `j`, of which v holds those from `at`.
  template <class Of>
  auto limit(const In<float>& resting, unsigned j, unsigned at, Of) const {
    if constexpr (raised) {
      return Of::load(&resting[j]) + Of::load(&raise[at]);
    } else {
      return Of::load(&resting[j]);
    }
  }

  template <class Body>
  void offer(unsigned j, unsigned at, Body&& body) const {
    const Numbers<float> one;
    const bool is_spike = v[at] > limit(threshold, j, at, one);
    if (is_spike || v[at] > limit(second_threshold, j, at, one)) body(j, v[at], is_spike);
  }

  void select(unsigned item) {
    Id* const record = &lists[item * stride];
    float* const kept_membranes = &membranes[item * slots];
    const Counts found = count(item), kept = found.cappedTo(smaller(slots, capacity));
    record[0] = static_cast<Id>(kept.spikes);
    record[1] = static_cast<Id>(kept.spikes + kept.near);
    record[2] = static_cast<Id>(found.spikes);
    record[3] = 0;
    if (kept.spikes + kept.near > 0) {
      const Cut spike_cut = cutOf(item, true, found.spikes, kept.spikes);
      const Cut near_cut = cutOf(item, false, found.near, kept.near);
      unsigned spike = 0, near = kept.spikes;
      forEachCandidate(item, [&](unsigned j, float membrane, bool is_spike) {
        if (!(is_spike ? spike_cut : near_cut).keeps(membrane, first_id + j)) return;
        unsigned& slot = is_spike ? spike : near;
        record[kListHeader + slot] = static_cast<Id>(first_id + j);
        kept_membranes[slot++] = membrane;
      });
    }
    fillPads(record + kListHeader, kept.spikes + kept.near, stride - kListHeader, num_neurons);
  }
};

// Joins the lists of the parts of each row, whose ids ascend from list to list. Where there are fewer rows than
// workers, several of them write the slots of one row.
template <class Id>
class CombineCandidates : public poplar::MultiVertex {
 public:
  // Candidates of one row that fit on a worker's stack: at most 1 KiB with their ids.
  static constexpr unsigned kMostGathered = 128;

  In<Id> lists;             // [num_lists, rows, stride_in], records
  In<float> membranes;      // [num_lists, rows, slots], of the listed ids
  Out<Id> list;             // [rows, stride], records
  InOut<unsigned> dropped;  // [rows], spikes that found no slot are added
  unsigned rows, num_lists, slots, stride_in, stride, capacity, num_neurons;

  bool compute(unsigned worker) {
    const RowShares sharing(rows);
    sharing.forEach(worker, [&](unsigned row, unsigned share) {
      const Counts found = count(row), kept = found.cappedTo(capacity);
      if (share == 0) writeHeader(row, kept);
      const Range own = shareAmong(sharing.shares, stride - kListHeader, share, kPerWord<Id>);
      place(row, true, found.spikes, kept.spikes, 0, own);
      place(row, false, found.near, kept.near, kept.spikes, own);
      fillPads(&list[row * stride + kListHeader], larger(own.first, kept.spikes + kept.near), own.last, num_neurons);
    });
    return true;
  }

  List<Id> partOf(unsigned p, unsigned row) const { return {&lists[(p * rows + row) * stride_in], slots}; }

  Counts count(unsigned row) const {
    Counts found = {0, 0};
    for (unsigned p = 0; p < num_lists; ++p) {
      const List<Id> part = partOf(p, row);
      found.spikes += part.spikes();
      found.near += part.listed() - part.spikes();
    }
    return found;
  }

  // The cut of the spikes, or of the others. If there are few, they are first gathered on the worker's stack, so the
  // search passes over the parts once.
  Cut cutOf(unsigned row, bool spikes, unsigned found, unsigned kept) const {
    const auto forEach = [&](auto&& body) { forEachCandidate(row, spikes, body); };
    if (found > kMostGathered) {
      return findCut(found, kept, [&](float bound) { return countAbove(row, spikes, bound); }, forEach);
    }
    alignas(8) float v[kMostGathered];
    Id ids[kMostGathered];
    unsigned gathered = 0;
    forEach([&](float membrane, unsigned id) {
      v[gathered] = membrane;
      ids[gathered++] = static_cast<Id>(id);
    });
    return findCut(
        found, kept, [&](float bound) { return numAbove(v, gathered, true, bound); },
        [&](auto&& body) {
          for (unsigned k = 0; k < gathered; ++k) body(v[k], static_cast<unsigned>(ids[k]));
        });
  }

 private:
  // Calls body(v, id) for the spikes, or the others, of all parts of a row.
  template <class Body>
  void forEachCandidate(unsigned row, bool spikes, Body&& body) const {
    for (unsigned p = 0; p < num_lists; ++p) {
      const List<Id> part = partOf(p, row);
      const unsigned last = spikes ? part.spikes() : part.listed();
      for (unsigned k = spikes ? 0 : part.spikes(); k < last; ++k) {
        body(membranes[(p * rows + row) * slots + k], static_cast<unsigned>(part.ids()[k]));
      }
    }
  }

  unsigned countAbove(unsigned row, bool spikes, float bound) const {
    unsigned above = 0;
    for (unsigned p = 0; p < num_lists; ++p) {
      const List<Id> part = partOf(p, row);
      const unsigned first = spikes ? 0 : part.spikes(), last = spikes ? part.spikes() : part.listed();
      const unsigned at = (p * rows + row) * slots + first;
      above += numAbove(&membranes[at], last - first, at % 2 == 0, bound);
    }
    return above;
  }

  void writeHeader(unsigned row, Counts kept) {
    unsigned true_spikes = 0;
    for (unsigned p = 0; p < num_lists; ++p) true_spikes += partOf(p, row).trueSpikes();
    Id* const record = &list[row * stride];
    record[0] = static_cast<Id>(kept.spikes);
    record[1] = static_cast<Id>(kept.spikes + kept.near);
    record[2] = static_cast<Id>(true_spikes);
    record[3] = 0;
    dropped[row] += true_spikes - smaller(true_spikes, kept.spikes);
  }

  // Writes the kept candidates of one kind, starting at slot `slot`, into the slots that belong to this worker.
  void place(unsigned row, bool spikes, unsigned found, unsigned kept, unsigned slot, Range own) {
    Id* const ids = &list[row * stride + kListHeader];
    if (kept == 0) return;
    if (found == kept) {  // all fit: whole runs are copied or skipped
      for (unsigned p = 0; p < num_lists && slot < own.last; ++p) {
        const List<Id> part = partOf(p, row);
        const unsigned first = spikes ? 0 : part.spikes(), count = (spikes ? part.spikes() : part.listed()) - first;
        const unsigned last = smaller(slot + count, own.last);
        for (unsigned at = larger(slot, own.first); at < last; ++at) ids[at] = part.ids()[first + at - slot];
        slot += count;
      }
      return;
    }
    const Cut cut = cutOf(row, spikes, found, kept);
    forEachCandidate(row, spikes, [&](float v, unsigned id) {
      if (!cut.keeps(v, id)) return;
      if (slot >= own.first && slot < own.last) ids[slot] = static_cast<Id>(id);
      ++slot;
    });
  }
};

// The values of lists: 1 for spikes, 0 for the rest.
template <class W, class Id>
class ListValues : public poplar::MultiVertex {
 public:
  In<Id> lists;   // [rows, stride], records
  Out<W> values;  // [rows, capacity]
  unsigned rows, stride, capacity;

  bool compute(unsigned worker) {
    const Range own = shareOf(rows, worker, capacity % kPerWord<W> == 0 ? 1 : kPerWord<W>);
    for (unsigned b = own.first; b < own.last; ++b) {
      const unsigned spikes = List<Id>{&lists[b * stride], capacity}.spikes();
      for (unsigned k = 0; k < capacity; ++k) values[b * capacity + k] = static_cast<W>(k < spikes ? 1.0f : 0.0f);
    }
    return true;
  }
};

// g_v[id] = surrogate(v - threshold) * g_values at the listed ids of the tile's columns, 0 elsewhere.
template <class T, class Id>
class SelectSpikesBackward : public poplar::MultiVertex {
 public:
  In<T> v;              // [rows, neurons], own columns, the first of which has the id `first_id`
  In<float> threshold;  // [neurons]
  In<Id> ids;           // [rows, capacity]
  In<T> g_values;       // [rows, capacity]
  Out<T> g_v;           // [rows, neurons]; its negative sum is the threshold's gradient
  unsigned rows, neurons, capacity, first_id;
  unsigned char surrogate;  // enum Surrogate
  float slope;

  bool compute(unsigned worker) {
    const Range own = shareOf(rows, worker, neurons % kPerWord<T> == 0 ? 1 : kPerWord<T>);
    for (unsigned b = own.first; b < own.last; ++b) {
      T* const row = &g_v[b * neurons];
      for (unsigned j = 0; j < neurons; ++j) row[j] = static_cast<T>(0.0f);
      for (unsigned k = 0; k < capacity; ++k) {
        const unsigned j = static_cast<unsigned>(ids[b * capacity + k]) - first_id;
        if (j >= neurons) continue;
        const float x = toFloat(v[b * neurons + j]) - threshold[j];
        const float g = maskedProduct(toFloat(g_values[b * capacity + k]), surrogateDerivative(x, surrogate, slope));
        row[j] = static_cast<T>(toFloat(row[j]) + g);
      }
    }
    return true;
  }
};

template class SelectCandidates<unsigned short, false>;
template class SelectCandidates<unsigned short, true>;
template class SelectCandidates<int, false>;
template class SelectCandidates<int, true>;
template class CombineCandidates<unsigned short>;
template class CombineCandidates<int>;
template class ListValues<float, unsigned short>;
template class ListValues<float, int>;
template class ListValues<half, unsigned short>;
template class ListValues<half, int>;
template class SelectSpikesBackward<float, unsigned short>;
template class SelectSpikesBackward<float, int>;
template class SelectSpikesBackward<half, unsigned short>;
template class SelectSpikesBackward<half, int>;

}  // namespace snnjax
