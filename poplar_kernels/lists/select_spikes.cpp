// select_spikes: from membranes to capped lists. Each worker lists the candidates of its share of the neurons, cut by
// the fair rule, then their lists are joined. The result does not depend on how a row is divided: whatever a part
// drops, the whole row would drop.
#include <cstring>

#include "../fields.hpp"
#include "../surrogates.hpp"
#include "lists.hpp"
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

// What a worker lists of a row: a record without pads (lists.hpp), its spikes ascending from the first slot on, the
// others from the last one back; and the membranes of both.
template <class Id>
struct Part {
  const Id* record;
  const float* membranes;
  unsigned slots;

  unsigned spikes() const { return smaller(static_cast<unsigned>(record[kKept]), listed()); }
  unsigned listed() const { return smaller(static_cast<unsigned>(record[kListed]), slots); }
  unsigned count(bool of_spikes) const { return of_spikes ? spikes() : listed() - spikes(); }
  unsigned slot(bool of_spikes, unsigned k) const { return of_spikes ? k : slots - 1 - k; }
  unsigned id(bool of_spikes, unsigned k) const {
    return static_cast<unsigned>(record[kListHeader + slot(of_spikes, k)]);
  }
  float membrane(bool of_spikes, unsigned k) const { return membranes[slot(of_spikes, k)]; }
};

// Candidates of rows: neurons above the least of both thresholds; those above the threshold are spikes. Both may be
// raised, by an amount for each neuron of each row. Each worker lists its share of the neurons.
template <class Id, bool raised>
class SelectCandidates : public poplar::MultiVertex {
 public:
  In<float> v;                  // [blocks, rows, columns], membranes as tiles send them; a NaN is never listed
  In<float> threshold;          // [neurons]
  In<float> least;              // [neurons], the smaller of both thresholds
  If<raised, In<float>> raise;  // as v, added to both thresholds
  Out<Id> lists;                // [rows, workers, listStride(slots)], of Part; the slots are those of a share
  Out<float> membranes;         // [rows, workers, slots], of Part
  unsigned rows, neurons;
  unsigned columns;  // neuron j of a row lies in block j / columns; the last block may hold more than `neurons`

  bool compute(unsigned worker) {
    for (unsigned row = 0; row < rows; ++row) select(row, worker);
    return true;
  }

  // Calls body(j, v, is_spike) for the candidates of a worker in a row: those above the least threshold.
  template <class Body>
  void forEachCandidate(unsigned row, unsigned worker, Body&& body) const {
    const Range own = neuronsOfWorker(neurons, worker);
    if (columns == 2) return scan((own.first / 2 * rows + row) * 2, 2 * rows, own, body);
    unsigned block = own.first / columns;
    for (unsigned j = own.first; j < own.last; ++block) {
      const unsigned last = smaller((block + 1) * columns, own.last);
      scan((block * rows + row) * columns + j - block * columns, 2, Range{j, last}, body);
      j = last;
    }
  }

 private:
  // The candidates of `own`, two neighbours at a time, from element `at` of v; their pairs lie `step` apart.
  template <class Body>
  void scan(unsigned at, unsigned step, Range own, Body&& body) const {
    unsigned j = own.first;
    for (; j + 2 <= own.last; j += 2, at += step) {
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
      using Of = Numbers<float2>;
      // Pairs begin at 64 bits.
      if (columns % 2 == 0 && !anyAbove(Of::load(&v[at]), limit(least, j, at, Of{}))) continue;
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
    if (v[at] > limit(least, j, at, one)) body(j, v[at], v[at] > limit(threshold, j, at, one));
  }

  void select(unsigned row, unsigned worker) {
    const unsigned item = row * kShares + worker, slots = neuronsOfShare(neurons);
    Id* const record = &lists[item * listStride(slots)];
    float* const own = &membranes[item * slots];
    Counts found = {0, 0};
    forEachCandidate(row, worker, [&](unsigned j, float membrane, bool is_spike) {
      const unsigned slot = is_spike ? found.spikes++ : slots - ++found.near;
      record[kListHeader + slot] = static_cast<Id>(j);
      own[slot] = membrane;
    });
    record[kKept] = static_cast<Id>(found.spikes);
    record[kListed] = static_cast<Id>(found.spikes + found.near);
  }
};

// Joins the parts of each row, whose ids ascend from part to part. Where there are fewer rows than workers, several of
// them write the slots of one row.
template <class Id>
class CombineCandidates : public poplar::MultiVertex {
 public:
  // Candidates of one row that fit on a worker's stack.
  static constexpr unsigned kMostGathered = 128;

  In<Id> lists;             // [rows, workers, listStride(slots)], of Part; the slots are those of a share
  In<float> membranes;      // [rows, workers, slots], of Part
  Out<Id> list;             // [rows, stride], records
  InOut<unsigned> dropped;  // [rows], spikes that found no slot are added
  unsigned rows, stride, capacity, num_neurons;

  bool compute(unsigned worker) {
    const RowShares sharing(rows);
    sharing.forEach(worker, [&](unsigned row, unsigned share) {
      const Counts found = count(row), kept = found.cappedTo(capacity);
      if (share == 0) writeHeader(row, found, kept);
      const Range own = shareAmong(sharing.shares, stride - kListHeader, share, kPerWord<Id>);
      place(row, true, found.spikes, kept.spikes, 0, own);
      place(row, false, found.near, kept.near, kept.spikes, own);
      fillPads(&list[row * stride + kListHeader], larger(own.first, kept.spikes + kept.near), own.last, num_neurons);
    });
    return true;
  }

  Part<Id> partOf(unsigned p, unsigned row) const {
    const unsigned item = row * kShares + p, slots = neuronsOfShare(num_neurons);
    return {&lists[item * listStride(slots)], &membranes[item * slots], slots};
  }

  Counts count(unsigned row) const {
    Counts found = {0, 0};
    for (unsigned p = 0; p < kShares; ++p) {
      found.spikes += partOf(p, row).count(true);
      found.near += partOf(p, row).count(false);
    }
    return found;
  }

  // The cut of the spikes, or of the others. If there are few, their membranes are first gathered on the worker's
  // stack, so the search passes over the parts once.
  Cut cutOf(unsigned row, bool spikes, unsigned found, unsigned kept) const {
    const auto forEach = [&](auto&& body) {
      for (unsigned p = 0; p < kShares; ++p) forEachOf(partOf(p, row), spikes, body);
    };
    if (found > kMostGathered) {
      const auto countAbove = [&](float bound) {
        unsigned above = 0;
        for (unsigned p = 0; p < kShares; ++p) above += countOf(partOf(p, row), spikes, bound);
        return above;
      };
      return findCut(found, kept, extremesOf(forEach), countAbove, forEach);
    }
    alignas(8) float v[kMostGathered];
    unsigned gathered = 0;
    Extremes extremes;
    forEach([&](float membrane, unsigned) {
      extremes.add(membrane);
      v[gathered++] = membrane;
    });
    return findCut(found, kept, extremes, [&](float bound) { return numAbove(v, gathered, true, bound); }, forEach);
  }

 private:
  // Calls body(v, id) for the spikes, or the others, of a part.
  template <class Body>
  static void forEachOf(const Part<Id>& part, bool spikes, Body&& body) {
    for (unsigned k = 0; k < part.count(spikes); ++k) body(part.membrane(spikes, k), part.id(spikes, k));
  }

  static unsigned countOf(const Part<Id>& part, bool spikes, float bound) {
    const unsigned count = part.count(spikes), first = spikes ? 0 : part.slots - count;
    return numAbove(part.membranes + first, count, first % 2 == 0, bound);
  }

  void writeHeader(unsigned row, Counts found, Counts kept) {
    Id* const record = &list[row * stride];
    record[kKept] = static_cast<Id>(kept.spikes);
    record[kListed] = static_cast<Id>(kept.spikes + kept.near);
    record[kTrueSpikes] = static_cast<Id>(found.spikes);
    dropped[row] += found.spikes - kept.spikes;
  }

  // Writes the kept candidates of one kind, starting at slot `slot`, into the slots that belong to this worker; the
  // first one also where the spikes of shares begin.
  void place(unsigned row, bool spikes, unsigned found, unsigned kept, unsigned slot, Range own) {
    Id* const record = &list[row * stride];
    if (!spikes && kept == 0) return;
    const bool fits = found == kept;
    const Cut cut = fits ? Cut{} : cutOf(row, spikes, found, kept);
    for (unsigned p = 0; p < kShares; ++p) {
      const Part<Id> part = partOf(p, row);
      if (spikes && own.first == 0 && p > 0) record[kStarts + p - 1] = static_cast<Id>(slot);
      if (fits) {  // whole runs are copied or skipped
        const unsigned last = smaller(slot + part.count(spikes), own.last);
        for (unsigned at = larger(slot, own.first); at < last; ++at) {
          record[kListHeader + at] = static_cast<Id>(part.id(spikes, at - slot));
        }
        slot += part.count(spikes);
        continue;
      }
      forEachOf(part, spikes, [&](float v, unsigned id) {
        if (!cut.keeps(v, id)) return;
        if (slot >= own.first && slot < own.last) record[kListHeader + slot] = static_cast<Id>(id);
        ++slot;
      });
    }
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

// g_v[id] = surrogate(v - threshold) * g_values at the listed ids, 0 elsewhere.
template <class T, class Id>
class SelectSpikesBackward : public poplar::MultiVertex {
 public:
  In<T> v;              // [rows, neurons]
  In<float> threshold;  // [neurons]
  In<Id> ids;           // [rows, capacity]
  In<T> g_values;       // [rows, capacity]
  Out<T> g_v;           // [rows, neurons]; its negative sum is the threshold's gradient
  unsigned rows, neurons, capacity;
  unsigned char surrogate;  // enum Surrogate
  float slope;

  bool compute(unsigned worker) {
    const Range own = shareOf(rows, worker, neurons % kPerWord<T> == 0 ? 1 : kPerWord<T>);
    for (unsigned b = own.first; b < own.last; ++b) {
      T* const row = &g_v[b * neurons];
      for (unsigned j = 0; j < neurons; ++j) row[j] = static_cast<T>(0.0f);
      for (unsigned k = 0; k < capacity; ++k) {
        const unsigned j = static_cast<unsigned>(ids[b * capacity + k]);
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
