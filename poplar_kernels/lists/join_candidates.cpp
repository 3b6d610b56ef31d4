// Capped lists from the candidates of their rows, which six workers have listed: first who stays where there are too
// many, by the fair rule, then the list. The result does not depend on how a row is divided.
#include "candidates.hpp"
#include "cycles.hpp"
#include "selection.hpp"

namespace snnjax {

// Of each row the cuts of its list, how many candidates of each part they keep, and how many spikes there are.
template <class Id>
class CutCandidates : public poplar::MultiVertex {
 public:
  // Candidates of one row that fit on a worker's stack.
  static constexpr unsigned kMostGathered = 128;

  In<Id> lists;             // [rows, workers, listStride(slots)], of Part; the slots are those of a share
  In<float> membranes;      // [rows, workers, slots], of Part
  Out<unsigned> cuts;       // [rows, kCutWords]
  Out<unsigned> kept;       // [rows, kKeptWords]
  InOut<unsigned> dropped;  // [rows], spikes that find no slot
  unsigned rows, capacity, num_neurons;
  bool adds;  // to what was dropped before

  void compute(unsigned worker) {
    for (unsigned row = 0; row < rows; ++row) {
      const Counts found = parts().count(row), stay = found.cappedTo(capacity);
      keep(row, worker, true, found.spikes, stay.spikes);
      keep(row, worker, false, found.near, stay.near);
      if (worker > 0) continue;
      kept[row * kKeptWords + 2 * kShares] = found.spikes;
      dropped[row] = (adds ? dropped[row] : 0) + found.spikes - stay.spikes;
    }
  }

  Parts<Id> parts() const { return {&lists[0], &membranes[0], neuronsOfShare(num_neurons)}; }

  // The cut of the spikes, or of the others. If there are few, their membranes are first gathered on the worker's
  // stack, so the search passes over the parts once.
  Cut cutOf(unsigned row, bool spikes, unsigned found, unsigned stay) const {
    const auto forEach = [&](auto&& body) {
      for (unsigned p = 0; p < kShares; ++p) parts().of(row, p).forEach(spikes, body);
    };
    if (found > kMostGathered) {
      const auto countAbove = [&](float bound) {
        unsigned above = 0;
        for (unsigned p = 0; p < kShares; ++p) {
          const Part<Id> part = parts().of(row, p);
          const unsigned first = part.firstSlot(spikes);
          above += numAbove(part.membranes + first, part.count(spikes), first % 2 == 0, bound);
        }
        return above;
      };
      const auto next = [&](float bound, bool above) {
        float nearest = above ? __builtin_inff() : -__builtin_inff();
        forEach([&](float v, unsigned) {
          if (above ? v > bound && v < nearest : v < bound && v > nearest) nearest = v;
        });
        return nearest;
      };
      return findCut(found, stay, extremesOf(forEach), countAbove, next, forEach);
    }
    alignas(8) float v[kMostGathered];
    unsigned gathered = 0;
    Extremes extremes;
    forEach([&](float membrane, unsigned) {
      extremes.add(membrane);
      v[gathered++] = membrane;
    });
    const auto countAbove = [&](float bound) { return numAbove(v, gathered, true, bound); };
    const auto next = [&](float bound, bool above) {
      return above ? nextBeyond<true>(v, gathered, bound) : nextBeyond<false>(v, gathered, bound);
    };
    return findCut(found, stay, extremes, countAbove, next, forEach);
  }

 private:
  // The candidates of one kind: so many, of which so many stay.
  void keep(unsigned row, unsigned worker, bool spikes, unsigned found, unsigned stay) {
    const Part<Id> own = parts().of(row, worker);
    unsigned& count = kept[row * kKeptWords + (spikes ? 0 : kShares) + worker];
    Limit limit = stay == 0 ? Limit::none() : Limit::all();
    count = stay == 0 ? 0 : own.count(spikes);
    if (stay != 0 && stay != found) {  // every worker searches
      limit = cutOf(row, spikes, found, stay).limit;
      count = 0;
      own.forEach(spikes, [&](float v, unsigned id) { count += limit.keeps(v, id) ? 1 : 0; });
    }
    if (worker == 0) limit.to(&cuts[row * kCutWords + (spikes ? 0 : 2)]);
  }
};

// The list of each row, from its parts and what CutCandidates says of them. Each worker copies its own part, the
// spikes and the others: runs of slots, one after the other.
template <class Id>
class JoinCandidates : public poplar::MultiVertex {
 public:
  In<Id> lists;         // as of CutCandidates
  In<float> membranes;  // likewise
  In<unsigned> cuts;    // [rows, kCutWords]
  In<unsigned> kept;    // [rows, kKeptWords]
  Out<Id> list;         // [rows, stride], records
  unsigned rows, stride, num_neurons;

  static constexpr unsigned kRuns = 2 * kShares;

  void compute(unsigned worker) {
    for (unsigned row = 0; row < rows; ++row) {
      Id* const record = &list[row * stride];
      const unsigned first = countOf(row, {0, worker}), spikes = first + countOf(row, {worker, kShares}),
                     near = spikes + countOf(row, {kShares, kShares + worker}),
                     listed = near + countOf(row, {kShares + worker, kRuns});
      copy(row, worker, first);
      copy(row, kShares + worker, near);
      pad(record + kListHeader, listed, worker);
      if (worker > 0) continue;
      unsigned header[kListHeader] = {spikes, listed, kept[row * kKeptWords + kRuns]}, start = 0;
      for (unsigned run = 0; run + 1 < kShares; ++run) header[kStarts + run] = start += countOf(row, run);
      storeHeader(record, header);
    }
  }

  unsigned countOf(unsigned row, unsigned run) const { return kept[row * kKeptWords + run]; }
  unsigned countOf(unsigned row, Range runs) const {
    unsigned all = 0;
    for (const unsigned run : runs) all += countOf(row, run);
    return all;
  }

 private:
  // The candidates of a run that stay, one after the other.
  class Run {
   public:
    Run(const JoinCandidates& vertex, unsigned row, unsigned run)
        : spikes_(run < kShares),
          part_(Parts<Id>{&vertex.lists[0], &vertex.membranes[0], neuronsOfShare(vertex.num_neurons)}.of(
              row, run % kShares)),
          limit_(Limit::from(&vertex.cuts[row * kCutWords + (spikes_ ? 0 : 2)])) {}
    unsigned next() {
      while (k_ + 1 < part_.count(spikes_) && !limit_.keeps(part_.membrane(spikes_, k_), part_.id(spikes_, k_))) ++k_;
      return part_.id(spikes_, k_++);
    }

   private:
    bool spikes_;
    Part<Id> part_;
    Limit limit_;
    unsigned k_ = 0;
  };

  // Stores go by words: one of two ids belongs to the run of the first.
  void copy(unsigned row, unsigned run, unsigned slot) {
    Id* const ids = &list[row * stride + kListHeader];
    const unsigned last = slot + countOf(row, run);
    Run own(*this, row, run);
    if constexpr (kPerWord<Id> == 1) {
      for (; slot < last; ++slot) ids[slot] = static_cast<Id>(own.next());
    } else {
      for (; slot < last; ++slot) {
        const unsigned id = own.next();
        if (slot % 2 == 1) continue;  // the word is of the run before
        const unsigned second = ++slot < last ? own.next() : idAfter(row, run);
        storeTwo(ids + slot - 1, id, second);
      }
    }
  }

  unsigned idAfter(unsigned row, unsigned run) const {
    while (++run < kRuns) {
      if (countOf(row, run) > 0) return Run(*this, row, run).next();
    }
    return num_neurons;
  }

  // The slots from `listed` on; the second one of a word is written with the first.
  void pad(Id* ids, unsigned listed, unsigned worker) {
    const unsigned first = (listed + kPerWord<Id> - 1) / kPerWord<Id>, last = (stride - kListHeader) / kPerWord<Id>;
    const Range own = quickShareOf(last - first, worker);
    for (unsigned k = first + own.first; k < first + own.last; ++k) {
      if constexpr (kPerWord<Id> == 1) {
        ids[k] = static_cast<Id>(num_neurons);
      } else {
        storeTwo(ids + 2 * k, num_neurons, num_neurons);
      }
    }
  }
};

// What all lists of a sample dropped.
class SumDropped : public poplar::Vertex {
 public:
  In<unsigned> dropped;  // [count]
  poplar::Output<unsigned> sum;
  unsigned count;

  void compute() {
    unsigned all = 0;
    for (unsigned k = 0; k < count; ++k) all += dropped[k];
    *sum = all;
  }
};

using namespace cycles;

template <class Id>
std::uint64_t workerCycles(const CutCandidates<Id>& vertex, unsigned worker) {
  Slots slots = entry(9, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    const Counts found = vertex.parts().count(row), stay = found.cappedTo(vertex.capacity);
    const auto kind = [&](bool spikes, unsigned all, unsigned staying) -> Slots {
      if (staying == 0 || staying == all) return 0;
      const Cut cut = vertex.cutOf(row, spikes, all, staying);
      return searchLists({all, cut.counts, cut.walks, cut.tie_passes, cut.ties, all <= vertex.kMostGathered}) +
             vertex.parts().of(row, worker).count(spikes) * kCompared;
    };
    slots += kShares * kPart + kKinds + (worker == 0 ? kCuts : 0) + kind(true, found.spikes, stay.spikes) +
             kind(false, found.near, stay.near);
  }
  return slots;
}

template <class Id>
std::uint64_t workerCycles(const JoinCandidates<Id>& vertex, unsigned worker) {
  Slots slots = entry(8, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    unsigned listed = 0;
    for (unsigned run = 0; run < vertex.kRuns; ++run) listed += vertex.countOf(row, run);
    const unsigned words = (vertex.stride - kListHeader) / kPerWord<Id>,
                   used = (listed + kPerWord<Id> - 1) / kPerWord<Id>;
    const Range pads = quickShareOf(words - smaller(words, used), worker);
    slots += joinRow(vertex.countOf(row, worker) + vertex.countOf(row, kShares + worker), pads.count()) +
             (worker == 0 ? header(sizeof(Id)) : 0);
  }
  return slots;
}

// A number's load, sum and branch.
std::uint64_t workerCycles(const SumDropped& vertex, unsigned) { return kCall + 3 + 2 + Slots{3} * vertex.count; }

SNNJAX_INSTANCES_OF_IDS(CutCandidates)
SNNJAX_INSTANCES_OF_IDS(JoinCandidates)

}  // namespace snnjax
