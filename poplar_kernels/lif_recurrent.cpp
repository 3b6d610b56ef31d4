// lif_network, recurrent layers, forward: a step of the neurons of a tile, and the lists of what they fire, which the
// next step reads.
#include "fields.hpp"
#include "listed_rows.hpp"
#include "neuron_rows.hpp"
#include "selection.hpp"

namespace snnjax {

// A step of own neurons, from the currents of a block of steps and the spikes of the step before. Workers share the
// numbers of all samples, in pairs.
template <class W, bool has_second>
class LifRecurrentStep : public poplar::MultiVertex {
 public:
  In<unsigned> lists;    // [batch, stride], own lists of the step before, of JoinSpikes
  In<W> weights;         // [rows, neurons], recurrent ones
  In<float> current;     // [batch, num_steps, neurons], without the bias
  In<float> first;       // [batch, neurons], what the spikes before the first step add to it in that step
  In<float> bias;        // [neurons]
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<float> threshold;   // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> block, iteration;
  // [all steps + 1, batch, neurons], row 0 before the first step; [batch, neurons] if no history is kept
  InOut<float> membranes;
  InOut<float> counts;   // [batch, neurons], true spikes so far
  Out<float> v;          // [batch, num_steps, neurons], membranes for the selection; -inf past the end of a sequence
  Out<unsigned> spikes;  // [batch, pairs of neurons], a bit for each that fires, from the last one on
  // [batch, masks + neurons], behind `masks` words that PackSpikes writes: the membranes' bits, if `sends_membranes`
  InOut<unsigned> sent;
  unsigned num_steps, batch, stride, neurons, masks;  // num_steps: of a block
  unsigned char reset;                                // enum Reset
  bool keep_history, sends_membranes;
  // Of neurons with a second state.
  If<has_second, In<float>> second;  // [kSecondConstants, neurons], neuron.hpp
  If<has_second, InOut<float>> w;    // as the membranes, but for `keep_second` in place of `keep_history`
  If<has_second, Out<float>> raise;  // as v, threshold_coupling * w; nothing unless it `raises` thresholds
  If<has_second, bool> keep_second, raises;
  static constexpr bool kHasSecond = has_second;

  bool compute(unsigned worker) {
    if (*iteration >= num_steps) return true;
    const unsigned t = *block * num_steps + *iteration;
    forEachOwnNumber(batch, neurons, worker, [&](unsigned b, unsigned j, auto numbers) {
      const unsigned row = b * num_steps + *iteration;
      const NeuronRows<LifRecurrentStep> own(*this, t, b, row);
      if (t < lengths[b]) {
        const auto fired =
            own.advance(j, numbers, numbers.load(&current[row * neurons + j]) + recurrent(t, b, j, numbers));
        send(b, j, row, fired, numbers);
      } else {
        own.freeze(j, numbers);
        send(b, j, row, numbers.fill(0.0f), numbers);
      }
    });
    return true;
  }

 private:
  template <class Of>
  auto recurrent(unsigned t, unsigned b, unsigned j, Of numbers) const {
    if (t == 0) return numbers.load(&first[b * neurons + j]);
    const unsigned* const list = &lists[b * stride];
    auto sum = numbers.fill(0.0f);
    for (unsigned k = 1; k <= list[0]; ++k) sum += numbers.load(&weights[list[k] + j]);
    return sum;
  }

  template <class Of>
  void send(unsigned b, unsigned j, unsigned row, float fired, Of) {
    unsigned& pair = spikes[b * (neurons / 2) + j / 2];
    pair = (j % 2 == 0 ? 0U : pair) | (fired != 0.0f ? 1U : 0U) << j % 2;
    if (sends_membranes) std::memcpy(&sent[b * (masks + neurons) + masks + j], &v[row * neurons + j], sizeof(float));
  }
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
  template <class Of>
  void send(unsigned b, unsigned j, unsigned row, float2 fired, Of) {
    spikes[b * (neurons / 2) + j / 2] = (fired[0] != 0.0f ? 1U : 0U) | (fired[1] != 0.0f ? 2U : 0U);
    if (!sends_membranes) return;
    std::memcpy(&sent[b * (masks + neurons) + masks + j], &v[row * neurons + j], 2 * sizeof(float));
  }
#endif
};

// What workers left for each pair becomes bits of words, the first neuron's the lowest.
class PackSpikes : public poplar::MultiVertex {
 public:
  In<unsigned> spikes;   // [batch, pairs]
  InOut<unsigned> sent;  // [batch, width], the first `masks` words of each
  unsigned batch, pairs, masks, width;

  bool compute(unsigned worker) {
    constexpr unsigned kPairs = 16;  // of a word
    for (unsigned i = worker; i < batch * masks; i += numWorkers()) {
      const unsigned b = i / masks, word = i - b * masks;
      unsigned mask = 0;
      for (unsigned pair = word * kPairs; pair < smaller((word + 1) * kPairs, pairs); ++pair) {
        mask |= spikes[b * pairs + pair] << 2 * (pair - word * kPairs);
      }
      sent[b * width + word] = mask;
    }
    return true;
  }
};

// At the home of a sample: what all blocks of its layer sent, listed in parts, one for each worker. Such a list is a
// count, then where the rows of its neurons begin in a tile's weights: the ids times the columns of a block, ascending.
class ListSpikes : public poplar::MultiVertex {
 public:
  In<unsigned> sent;     // [blocks, masks (+ columns)]
  Out<unsigned> parts;   // [workers, 1 + slots]
  Out<float> membranes;  // [workers, slots], of the listed neurons, if they were sent
  unsigned blocks, columns, masks, slots;
  bool sends_membranes;

  bool compute(unsigned worker) {
    const unsigned width = masks + (sends_membranes ? columns : 0);
    const Range own = quickShareOf(blocks, worker);
    unsigned* const part = &parts[worker * (1 + slots)];
    unsigned found = 0;
    for (unsigned block = own.first; block < own.last; ++block) {
      for (unsigned word = 0; word < masks; ++word) {
        for (unsigned mask = sent[block * width + word]; mask != 0 && found < slots; mask &= mask - 1) {
          const unsigned j = word * 32 + static_cast<unsigned>(__builtin_ctz(mask));
          if (sends_membranes) {
            std::memcpy(&membranes[worker * slots + found], &sent[block * width + masks + j], sizeof(float));
          }
          part[++found] = (block * columns + j) * columns;
        }
      }
    }
    part[0] = found;
    return true;
  }
};

// Joins the parts of a sample: where there are more spikes than slots, by the fair rule. Of few spikes each finds its
// own rank, which is its slot; among many a cut is searched, and spikes stay in order.
class JoinSpikes : public poplar::MultiVertex {
 public:
  // Spikes on a worker's stack, and those that are ranked.
  static constexpr unsigned kMostGathered = 128, kMostRanked = 48;

  In<unsigned> parts;   // [workers, 1 + slots], of ListSpikes
  In<float> membranes;  // [workers, slots], of the listed neurons; nothing if they fit in any case
  Out<unsigned> list;   // [1 + capacity]
  unsigned slots, capacity, columns;

  bool compute(unsigned worker) {
    const unsigned total = countBefore(numWorkers());
    if (worker == 0) list[0] = smaller(total, capacity);
    if (total <= capacity) {
      const unsigned slot = 1 + countBefore(worker);
      for (unsigned k = 0; k < countOf(worker); ++k) list[slot + k] = partOf(worker)[k];
    } else if (total <= kMostRanked) {
      rank(worker, total);
    } else {
      cut(worker, findCut(total));
    }
    return true;
  }

  unsigned countOf(unsigned part) const { return parts[part * (1 + slots)]; }
  unsigned countBefore(unsigned part) const {
    unsigned count = 0;
    for (unsigned p = 0; p < part; ++p) count += countOf(p);
    return count;
  }

  Cut findCut(unsigned total) const {
    const auto forEach = [&](auto&& body) {
      forEachSpike(0, numWorkers(), [&](float v, unsigned row) { body(v, row / columns); });
    };
    if (total > kMostGathered) {
      const auto above = [&](float bound) {
        unsigned count = 0;
        for (unsigned p = 0; p < numWorkers(); ++p) count += numAbove(&membranes[p * slots], countOf(p), true, bound);
        return count;
      };
      return snnjax::findCut(total, capacity, extremesOf(forEach), above, forEach);
    }
    alignas(8) float v[kMostGathered];
    unsigned gathered = 0;
    forEachSpike(0, numWorkers(), [&](float membrane, unsigned) { v[gathered++] = membrane; });
    return snnjax::findCut(
        total, capacity, extremesOf(forEach), [&](float bound) { return numAbove(v, gathered, true, bound); }, forEach);
  }

 private:
  const unsigned* partOf(unsigned part) const { return &parts[part * (1 + slots) + 1]; }

  // body(v, row) for the spikes of parts.
  template <class Body>
  void forEachSpike(unsigned first, unsigned last, Body&& body) const {
    for (unsigned p = first; p < last; ++p) {
      for (unsigned k = 0; k < countOf(p); ++k) body(membranes[p * slots + k], partOf(p)[k]);
    }
  }

  // Workers share the spikes.
  void rank(unsigned worker, unsigned total) {
    alignas(8) float v[kMostRanked];
    unsigned gathered = 0;
    forEachSpike(0, numWorkers(), [&](float membrane, unsigned) { v[gathered++] = membrane; });
    const Range own = quickShareOf(total, worker);
    unsigned first = 0;  // of a part
    for (unsigned p = 0; p < numWorkers() && first < own.last; first += countOf(p++)) {
      const unsigned last = smaller(first + countOf(p), own.last);
      for (unsigned k = larger(first, own.first); k < last; ++k) place(v, total, k, partOf(p)[k - first]);
    }
  }

  // The k-th of all spikes goes to the slot of its rank.
  void place(const float* v, unsigned total, unsigned k, unsigned row) {
    unsigned before = 0, equal = 0;
    for (unsigned other = 0; other < total; ++other) {
      before += v[other] > v[k] ? 1 : 0;
      equal += v[other] == v[k] ? 1 : 0;
    }
    if (equal > 1) {
      forEachSpike(0, numWorkers(), [&](float membrane, unsigned another) {
        before += membrane == v[k] && hashOf(another / columns) < hashOf(row / columns) ? 1 : 0;
      });
    }
    if (before < capacity) list[1 + before] = row;
  }

  void cut(unsigned worker, Cut found) {
    unsigned slot = 1;
    forEachSpike(0, worker, [&](float v, unsigned row) { slot += found.keeps(v, row / columns) ? 1 : 0; });
    forEachSpike(worker, worker + 1, [&](float v, unsigned row) {
      if (found.keeps(v, row / columns)) list[slot++] = row;
    });
  }
};

template class LifRecurrentStep<float, false>;
template class LifRecurrentStep<float, true>;
template class LifRecurrentStep<half, false>;
template class LifRecurrentStep<half, true>;

}  // namespace snnjax
