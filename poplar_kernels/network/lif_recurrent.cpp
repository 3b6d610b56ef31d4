// lif_network, recurrent layers, forward: a step of the neurons of a tile, and the lists of what they fire, which the
// next step reads.
#include <utility>
#include <vector>

#include "../lists/listed_rows.hpp"
#include "../lists/lists.hpp"
#include "../lists/spike_lists.hpp"
#include "../vertex.hpp"
#include "cycles.hpp"
#include "neuron_rows.hpp"

namespace snnjax {

// A step of own neurons, from the currents of a block of steps and the spikes of the step before. Workers share the
// neurons of all samples, in pairs.
template <class W, bool has_second, bool selects, bool counted>
class LifRecurrentStep : public poplar::MultiVertex {
 public:
  // Of the own spikes of the step before: [batch, parts, stride], what RankSpikes kept of them, or [parts, batch,
  // stride], those of each block (ListBlock), of which each worker selects
  In<unsigned> lists;
  In<W> weights;      // [rows, neurons], recurrent ones
  In<float> current;  // [batch, num_steps, neurons], without the bias
  In<float> first;    // [batch, neurons], what the spikes before the first step add to it in that step
  In<float> bias;     // [neurons]
  In<float> decay;    // [neurons]
  In<float> gain;     // [neurons]
  In<float> threshold, second_threshold;  // [neurons]
  In<unsigned> lengths;                   // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  InOut<unsigned> iterations;  // [workers], each counts its own
  // [all steps + 1, batch, neurons], row 0 before the first step; [batch, neurons] if no history is kept
  InOut<float> membranes;
  If<counted, InOut<float>> counts;  // [batch, neurons], true spikes so far
  Out<float> offered;   // [batch, num_steps, offered_stride], membranes for the selection; PackMarks adds to it
  Out<unsigned> marks;  // [batch, num_steps, pairs of neurons], none past the end of a sequence
  If<!selects, Out<float>> sent;    // [batch, neurons], membranes of those that fire (toSend), 0 of others
  If<selects, Out<unsigned>> kept;  // [workers, wordsOfKept(limit)]
  unsigned num_steps, batch, parts, stride, neurons, offered_stride;  // num_steps: of a block
  If<selects, unsigned> limit;                                        // of the spikes of a sample
  unsigned char reset;                                                // enum Reset
  bool keep_history;
  // Of neurons with a second state.
  If<has_second, In<float>> second;  // [kSecondConstants, neurons], neuron.hpp
  If<has_second, InOut<float>> w;    // as the membranes, but for `keep_second` in place of `keep_history`
  If<has_second, bool> keep_second, raises;
  static constexpr bool kHasSecond = has_second, kCounts = counted;

  void compute(unsigned worker) {
    const unsigned iteration = iterations[worker]++;
    if (iteration >= num_steps) return;
    const unsigned t = *block * num_steps + iteration;
    unsigned selected = batch;  // the sample that was selected for
    forEachOwnPair(batch, neurons, worker, [&](unsigned b, unsigned j) {
      const unsigned row = b * num_steps + iteration;
      NeuronRun run(*this, t, b, j);
      [[maybe_unused]] float2 to_send = {};
      if (t < lengths[b]) {
        if constexpr (selects) {
          if (t > 0 && b != selected) select(selected = b, &kept[worker * wordsOfKept(limit)]);
        }
        const auto sum = Pair::load(&current[row * neurons + j]) + recurrent(t, b, j, worker);
        const auto fired = run.advance(sum, reset, row);
        run.storeCounts();
        if constexpr (!selects) to_send = toSend(fired, run.membrane());
      } else {
        run.freeze(row);
      }
      if constexpr (!selects) Pair::store(&sent[b * neurons + j], to_send);
    });
  }

  // Calls body(list) for the lists of a sample.
  void forEachList(unsigned b, auto&& body) const {
    const unsigned next = selects ? batch * stride : stride;
    const unsigned* list = &lists[b * (selects ? stride : parts * stride)];
    unsigned part = 0;
    for (; part + 4 <= parts; part += 4, list += 4 * next) {  // most are short
      for (unsigned k = 0; k < 4; ++k) body(list + k * next);
    }
    for (; part < parts; ++part, list += next) body(list);
  }

  // Rows that are listed for a sample.
  unsigned listed(unsigned b) const {
    unsigned rows = 0;
    forEachList(b, [&](const unsigned* row) {
      for (; *row != kNoRow; ++row) ++rows;
    });
    return rows;
  }

  // The spikes of a sample that are kept, with their words; and what that took.
  KeptSpikes select(unsigned b, unsigned* words) const
    requires selects
  {
    KeptSpikes own = {words, limit, neurons};
    const unsigned slots = (stride - 1) / 2;
    forEachList(b, [&](const unsigned* list) {
      for (; *list != kNoRow; ++list) own.offer(*list, list[1 + slots]);
    });
    own.end();
    return own;
  }

 private:
  float2 recurrent(unsigned t, unsigned b, unsigned j, unsigned worker) const {
    if (t == 0) return Pair::load(&first[b * neurons + j]);
    float2 sum = {};
    const auto add = [&](const unsigned* list) {
      for (; *list != kNoRow; ++list) sum += Pair::load(&weights[*list + j - neurons]);
    };
    if constexpr (selects) {
      add(&kept[worker * wordsOfKept(limit)]);
    } else {
      forEachList(b, add);
    }
    return sum;
  }
};

// The spikes of a block in a step of each sample, as KeptSpikes; packs the marks of the neurons, as PackMarks does.
// Workers share the samples.
class ListBlock : public poplar::MultiVertex {
 public:
  In<unsigned> marks;          // [batch, num_steps, pairs of neurons], of LifRecurrentStep
  InOut<float> offered;        // [batch, num_steps, offered_stride]; the words behind the membranes are written
  Out<unsigned> lists;         // [batch, wordsOfKept(slots)]
  InOut<unsigned> iterations;  // [workers], each counts its own
  unsigned num_steps, batch, neurons, offered_stride, slots, first_id;  // num_steps: of a block of steps; neurons: even

  void compute(unsigned worker) {
    const unsigned iteration = iterations[worker]++;
    if (iteration >= num_steps) return;
    const unsigned pairs = neurons / 2;
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      const unsigned row = b * num_steps + iteration;
      for (unsigned word = 0; word < markWords(neurons); ++word) {
        const unsigned marked = marksOfWord(&marks[row * pairs], pairs, word);
        offered[row * offered_stride + neurons + word] = bitsOf<float>(marked);
      }
      list(row, &lists[b * wordsOfKept(slots)]);
    }
  }

  // The spikes of a row, with their words; and what that took.
  KeptSpikes list(unsigned row, unsigned* words) const {
    KeptSpikes own = {words, slots, neurons};
    const float* const v = &offered[row * offered_stride];
    for (unsigned word = 0; word < markWords(neurons); ++word) {
      forEachMark(bitsOf<unsigned>(v[neurons + word]) & kMarksOfSpikes, [&](unsigned i) {
        const unsigned j = word * kNeuronsOfMark + i;
        own.offer((first_id + 1 + j) * neurons, keyOf(v[j] + 0.0f));  // one key for both zeros
      });
    }
    own.end();
    return own;
  }
};

// The spikes of neighbouring blocks of a layer in one sample, listed by workers: each has its share of the neurons. A
// list is a count, then where the rows of its neurons begin (kNoRow): the ids and one times the columns of a block.
class ListSpikes : public poplar::MultiVertex {
 public:
  In<float> sent;        // [pairs of neurons of the blocks, 2], of LifRecurrentStep
  Out<unsigned> rows;    // [workers, 1 + slots]
  Out<float> membranes;  // [workers, slots]
  unsigned pairs, first_id, columns, slots;

  void compute(unsigned worker) {
    const Range own = quickShareOf(pairs, worker);
    unsigned* const list = &rows[worker * (1 + slots)];
    unsigned found = 0;
    const auto offer = [&](unsigned i) {
      if (!isSent(sent[i])) return;
      membranes[worker * slots + found] = sent[i];
      list[++found] = (first_id + 1 + i) * columns;
    };
    const auto offerPairs = [&](unsigned pair, unsigned count) {
      if (!fired(pair, count)) return;
      for (unsigned i = pair; i < pair + count; ++i) {
        offer(2 * i);
        offer(2 * i + 1);
      }
    };
    unsigned pair = own.first;
    for (; pair + 2 <= own.last; pair += 2) offerPairs(pair, 2);  // two a turn
    if (pair < own.last) offerPairs(pair, 1);
    list[0] = found;
  }

  // Whether any of these pairs did: all their bits in one.
  bool fired(unsigned pair, unsigned count) const {
    Mask any = bitsOf<Mask>(Pair::load(&sent[2 * pair]));
    for (unsigned i = pair + 1; i < pair + count; ++i) any |= bitsOf<Mask>(Pair::load(&sent[2 * i]));
    return (any[0] | any[1]) != 0;
  }
};

// Joins the lists of workers; of more spikes than slots those that the fair rule prefers, at the slots of their ranks.
class JoinSpikes : public poplar::MultiVertex {
 public:
  In<unsigned> rows;          // [workers, 1 + slots], of ListSpikes
  In<float> membranes;        // [workers, slots]
  Out<unsigned> joined_rows;  // [1 + capacity]
  Out<float> joined;          // [capacity]
  unsigned slots, capacity, columns;

  void compute(unsigned worker) {
    const SpikeLists from = lists();
    const unsigned first = from.countOf(0, worker), total = first + from.countOf(worker, numWorkers());
    if (worker == 0) joined_rows[0] = smaller(total, capacity);
    for (unsigned k = 0; k < from.count(worker); ++k) {
      const unsigned slot = total <= capacity ? first + k : from.rankOf(worker, k).of_all;
      if (slot >= capacity) continue;
      joined_rows[1 + slot] = from.row(worker, k);
      joined[slot] = from.membrane(worker, k);
    }
  }

  SpikeLists lists() const { return {&rows[0], &membranes[0], numWorkers(), slots, columns}; }
};

// Of the spikes of a part those that are among the first `limit` of all parts, by the fair rule. What is kept comes
// first, and kNoRow ends it.
class RankSpikes : public poplar::MultiVertex {
 public:
  In<unsigned> rows;    // [parts, 1 + slots], of JoinSpikes
  In<float> membranes;  // [parts, slots]
  Out<unsigned> list;   // [1 + slots]
  unsigned parts, own, slots, limit, columns;

  void compute(unsigned worker) {
    const SpikeLists all = lists();
    const unsigned count = all.count(own);
    const bool fits = all.countOf(0, parts) <= limit;
    const Range share = quickShareOf(count, worker);
    if (worker == 0) list[count] = kNoRow;
    for (unsigned k = share.first; k < share.last; ++k) {
      if (fits) {
        list[k] = all.row(own, k);
      } else {  // the kept ones of a part are its own first ones
        const SpikeLists::Rank rank = all.rankOf(own, k);
        list[rank.of_own] = rank.of_all < limit ? all.row(own, k) : kNoRow;
      }
    }
  }

  SpikeLists lists() const { return {&rows[0], &membranes[0], parts, slots, columns}; }
};

// The lists of all parts in one, for all tiles of a sample: those of JoinSpikes, if they are not too many, or what
// RankSpikes kept.
template <bool ranked>
class MergeSpikes : public poplar::MultiVertex {
 public:
  In<unsigned> rows;                    // [parts, 1 + slots]
  Out<unsigned> list;                   // [limit + 1], kNoRow ends it
  If<!ranked, Out<unsigned>> too_many;  // [1], whether there are more than `limit`
  unsigned parts, slots, limit;

  void compute(unsigned worker) {
    if constexpr (ranked) {
      if (worker == 0) mergeRanked();
    } else {
      const Range own = quickShareOf(parts, worker);
      unsigned end = countOf(own.first);
      for (unsigned part = own.first; part < own.last; ++part) {
        const unsigned* const from = &rows[part * (1 + slots)];
        const unsigned last = smaller(end + from[0], limit);
        for (unsigned k = 1; end < last; ++k) list[end++] = from[k];
      }
      if (worker > 0) return;
      const unsigned all = countOf(parts);
      list[smaller(all, limit)] = kNoRow;
      too_many[0] = all > limit ? 1 : 0;
    }
  }
  unsigned countOf(unsigned last) const {
    unsigned all = 0;
    for (unsigned part = 0; part < last; ++part) all += rows[part * (1 + slots)];
    return all;
  }

 private:
  void mergeRanked() {
    unsigned end = 0;
    for (unsigned part = 0; part < parts; ++part) {
      for (const unsigned* row = &rows[part * (1 + slots)]; *row != kNoRow && end < limit; ++row) list[end++] = *row;
    }
    list[end] = kNoRow;
  }
};

using namespace cycles;

Slots keptSpikes(const KeptSpikes& list) {
  const Slots more = list.offered > list.limit ? list.offered - list.limit : 0,
              replaced = more > 0 ? list.searches - 1 : 0;
  return list.offered * kOfferedSpike + (list.offered - more + replaced) * kPlacedSpike + more * kComparedSpike +
         list.searches * (kSearchedList + (list.limit - 1) * kSearchedSpike);
}

template <class W, bool has_second, bool selects, bool counted>
std::uint64_t workerCycles(const LifRecurrentStep<W, has_second, selects, counted>& vertex, unsigned worker) {
  const unsigned iteration = vertex.iterations[worker] - 1;
  if (iteration >= vertex.num_steps) return kIdle + kCounted;
  const unsigned t = *vertex.block * vertex.num_steps + iteration;
  Slots number = kRecurrentNumber + (selects ? 1 : kSentNumber) + (counted ? kCountsOfRun : 0), inside = kAdvanceOnce;
  if constexpr (has_second) {
    number += kRunSecond;
    inside += advanceSecond(vertex.raises);
  }
  unsigned selected = vertex.batch;
  const Slots lists = vertex.parts / 4 * kFourLists + vertex.parts % 4 * kOneList;
  return entry((has_second ? 29 : 25) + (selects ? 1 : 0) + (counted ? 1 : 0), false) + kCounted +
         ownPairs(vertex, worker, [&](unsigned b, unsigned) -> Slots {
           if (t >= vertex.lengths[b]) return number + kFrozenStep + (has_second ? kFreezeSecond : 0);
           if (t == 0) return number + inside;
           const unsigned listed = vertex.listed(b);
           if constexpr (selects) {
             std::vector<unsigned> words(wordsOfKept(vertex.limit));
             const Slots selection =
                 kSelect + lists + listed * kSelectedRow + keptSpikes(vertex.select(b, words.data()));
             return number + inside + kSummedList + smaller(listed, vertex.limit) * kSummedRow +
                    (std::exchange(selected, b) == b ? 0 : selection);
           } else {
             return number + inside + kLists + lists + listed * kSummedRow;
           }
         });
}

std::uint64_t workerCycles(const ListBlock& vertex, unsigned worker) {
  const unsigned iteration = vertex.iterations[worker] - 1, pairs = vertex.neurons / 2;
  if (iteration >= vertex.num_steps) return kIdle + kCounted;
  Slots slots = entry(10, false) + kCounted;
  std::vector<unsigned> words(wordsOfKept(vertex.slots));
  for (unsigned b = worker; b < vertex.batch; b += vertex.numWorkers()) {
    const KeptSpikes list = vertex.list(b * vertex.num_steps + iteration, words.data());
    slots += kBlockRow + (pairs + 1) / 2 * kMarksOfTwo + markWords(vertex.neurons) * kFiredWord +
             list.offered * kFiredSpike + keptSpikes(list);
  }
  return slots;
}

std::uint64_t workerCycles(const ListSpikes& vertex, unsigned worker) {
  const Range own = quickShareOf(vertex.pairs, worker);
  Slots slots = entry(7, false) + 10;
  for (unsigned pair = own.first; pair < own.last; pair += 2) {
    const unsigned count = smaller(own.last - pair, 2);
    slots += count == 2 ? kFiredPairs : kFiredPair;
    if (!vertex.fired(pair, count)) continue;
    slots += count * kOfferedPair;
    for (unsigned i = 2 * pair; i < 2 * (pair + count); ++i) slots += isSent(vertex.sent[i]) ? kListedSpike : 0;
  }
  return slots;
}

Slots rank(const SpikeLists& lists) {
  Slots slots = kRank;
  for (unsigned list = 0; list < lists.lists; ++list) {
    slots += kRankedList + (lists.count(list) + 1) / 2 * kRankedPair;
  }
  return slots;
}

std::uint64_t workerCycles(const JoinSpikes& vertex, unsigned worker) {
  const SpikeLists lists = vertex.lists();
  const Slots each = lists.countOf(0, lists.lists) <= vertex.capacity ? kCopiedSpike : kCopiedSpike + rank(lists);
  return entry(7, false) + lists.lists * kCountOfList + 8 + lists.count(worker) * each;
}

std::uint64_t workerCycles(const RankSpikes& vertex, unsigned worker) {
  const SpikeLists lists = vertex.lists();
  const Range own = quickShareOf(lists.count(vertex.own), worker);
  const Slots each = lists.countOf(0, lists.lists) <= vertex.limit ? kCopiedSpike : kCopiedSpike + rank(lists);
  return entry(8, false) + lists.lists * kCountOfList + 8 + own.count() * each;
}

// Of ranked lists one worker copies all.
template <bool ranked>
std::uint64_t workerCycles(const MergeSpikes<ranked>& vertex, unsigned worker) {
  const Range own = ranked ? Range{0, worker == 0 ? vertex.parts : 0} : quickShareOf(vertex.parts, worker);
  Slots rows = 0, counts = ranked ? 0 : worker == 0 ? vertex.parts : own.first;
  for (unsigned part = own.first; part < own.last; ++part) {
    const unsigned* const from = &vertex.rows[part * (1 + vertex.slots)];
    if constexpr (ranked) {
      for (const unsigned* row = from; *row != kNoRow; ++row) ++rows;
    } else {
      rows += from[0];
    }
  }
  return entry(ranked ? 5 : 6, false) + 14 + counts * kCountOfList + own.count() * kMergedPart +
         rows * (kMergedRow + (ranked ? kTestsOfRanked : 0));
}

SNNJAX_INSTANCES_OF_CHOICES(MergeSpikes)
#define SNNJAX_RECURRENT_STEP(W)                                 \
  SNNJAX_INSTANCES_OF_CHOICES(LifRecurrentStep, W, false, false) \
  SNNJAX_INSTANCES_OF_CHOICES(LifRecurrentStep, W, false, true)  \
  SNNJAX_INSTANCES_OF_CHOICES(LifRecurrentStep, W, true, false)  \
  SNNJAX_INSTANCES_OF_CHOICES(LifRecurrentStep, W, true, true)
SNNJAX_RECURRENT_STEP(float)
SNNJAX_RECURRENT_STEP(half)
#undef SNNJAX_RECURRENT_STEP

}  // namespace snnjax
