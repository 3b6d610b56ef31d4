// lif_network, recurrent layers, forward: a step of the neurons of a tile, and the lists of what they fire, which the
// next step reads.
#include "fields.hpp"
#include "listed_rows.hpp"
#include "neuron_rows.hpp"

namespace snnjax {

// A step of own neurons, from the currents of all steps and the spikes of the step before. Workers share the numbers of
// all samples, in pairs.
template <class W, bool has_second>
class LifRecurrentStep : public poplar::MultiVertex {
 public:
  In<unsigned short> lists;  // [batch, stride], the layer's own records of the step before (lists.hpp)
  In<W> weights;             // [num_inputs + 1, neurons], recurrent ones, last row zeros
  In<float> current;         // [batch, num_steps, neurons], without the bias
  In<float> first;           // [batch, neurons], what the spikes before the first step add to it in that step
  In<float> bias;            // [neurons]
  In<float> decay;           // [neurons]
  In<float> gain;            // [neurons]
  In<float> threshold;       // [neurons]
  In<unsigned> lengths;      // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  // [num_steps + 1, batch, neurons], row 0 before the first step; [batch, neurons] if no history is kept
  InOut<float> membranes;
  InOut<float> counts;   // [batch, neurons], true spikes so far
  Out<float> v;          // [batch, num_steps, neurons], membranes for the selection; -inf past the end of a sequence
  Out<unsigned> spikes;  // [batch, pairs of neurons], a bit for each that fires, from the last one on
  // [batch, masks + neurons], behind `masks` words that PackSpikes writes: the membranes' bits, if `sends_membranes`
  InOut<unsigned> sent;
  unsigned num_steps, batch, stride, capacity, num_inputs, neurons, masks;
  unsigned char reset;  // enum Reset
  bool keep_history, sends_membranes;
  // Of neurons with a second state.
  If<has_second, In<float>> second;  // [kSecondConstants, neurons], neuron.hpp
  If<has_second, InOut<float>> w;    // as the membranes, but for `keep_second` in place of `keep_history`
  If<has_second, Out<float>> raise;  // as v, threshold_coupling * w; nothing unless it `raises` thresholds
  If<has_second, bool> keep_second, raises;
  static constexpr bool kHasSecond = has_second;

  bool compute(unsigned worker) {
    const unsigned t = *iteration;
    if (t >= num_steps) return true;
    forEachOwnNumber(batch, neurons, worker, [&](unsigned b, unsigned j, auto numbers) {
      const unsigned row = b * num_steps + t;
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
    const List<unsigned short> list = {&lists[b * stride], capacity};
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    auto sum = numbers.fill(0.0f);
    for (unsigned k = 0; k < list.spikes(); ++k) sum += numbers.load(rows.row(list.ids()[k]) + j);
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

// At the home of a sample: what all blocks of its layer sent, as a record with membranes for each worker. Ids ascend
// from record to record.
class ListSpikes : public poplar::MultiVertex {
 public:
  static constexpr unsigned kParts = 6;
  In<unsigned> sent;          // [blocks, masks (+ columns)]
  Out<unsigned short> lists;  // [parts, stride], records (lists.hpp)
  Out<float> membranes;       // [parts, slots], of the listed ids, if they were sent
  unsigned blocks, columns, masks, slots, stride;
  bool sends_membranes;

  bool compute(unsigned worker) {
    const unsigned width = masks + (sends_membranes ? columns : 0);
    const Range own = shareOf(blocks, worker);
    unsigned short* const record = &lists[worker * stride];
    unsigned found = 0;
    for (unsigned block = own.first; block < own.last; ++block) {
      for (unsigned word = 0; word < masks; ++word) {
        for (unsigned mask = sent[block * width + word]; mask != 0 && found < slots; mask &= mask - 1) {
          const unsigned j = word * 32 + static_cast<unsigned>(__builtin_ctz(mask));
          record[kListHeader + found] = static_cast<unsigned short>(block * columns + j);
          if (sends_membranes) {
            std::memcpy(&membranes[worker * slots + found], &sent[block * width + masks + j], sizeof(float));
          }
          ++found;
        }
      }
    }
    record[kKept] = record[kListed] = record[kTrueSpikes] = static_cast<unsigned short>(found);
    record[kListHeader - 1] = 0;
    return true;
  }
};

template class LifRecurrentStep<float, false>;
template class LifRecurrentStep<float, true>;
template class LifRecurrentStep<half, false>;
template class LifRecurrentStep<half, true>;

}  // namespace snnjax
