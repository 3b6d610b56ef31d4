// lif_network, backward: the gradient of weights gathered by input. Lists become bits, which are turned so that each
// input has one for each row, and then the rows in which it fires, or their bits where these are shorter: no input
// needs more. A tile adds up the rows of the currents' gradients in registers.
#include "../fields.hpp"
#include "../lists/listed_rows.hpp"
#include "../lists/masks.hpp"

namespace snnjax {

constexpr unsigned kBits = 32;  // of a word; the first one is the highest

// The spikes of lists as bits. A list may name an input several times: those that it has named `level` times before are
// marked. Workers share words; the last one, whose share is the smallest, says whether any comes again.
template <class Id>
class MaskSpikes : public poplar::MultiVertex {
 public:
  In<Id> list;          // [rows, stride], records, ids of spikes ascending
  Out<unsigned> masks;  // [words, rows], a word for 32 inputs
  poplar::Output<unsigned> more;
  poplar::Input<unsigned> level;
  unsigned rows, stride, capacity, words, num_inputs;

  bool compute(unsigned worker) {
    const Range own = quickShareOf(words, worker);
    for (unsigned i = own.first * rows; i < own.last * rows; ++i) masks[i] = 0;
    for (unsigned b = 0; b < rows; ++b) mark(b, spikesOf(b), inputsOf(own));
    if (worker + 1 == numWorkers()) *more = comesAgain() ? 1 : 0;
    return true;
  }
  Range inputsOf(Range of_words) const {
    return {smaller(of_words.first * kBits, num_inputs), smaller(of_words.last * kBits, num_inputs)};
  }

 private:
  struct Spikes {
    const Id* ids;
    unsigned count;
  };
  Spikes spikesOf(unsigned b) const {
    const List<Id> from = {&list[b * stride], capacity};
    return {from.ids(), from.spikes()};
  }

  void mark(unsigned b, Spikes spikes, Range own) {
    unsigned before = ~0U, times = 0;
    for (unsigned k = numBelow(spikes.ids, spikes.count, own.first); k < spikes.count; ++k) {
      const auto id = static_cast<unsigned>(spikes.ids[k]);
      if (id - own.first >= own.last - own.first) break;  // of the next worker, or in disorder
      times = id == before ? times + 1 : 0;
      before = id;
      if (times == *level) masks[id / kBits * rows + b] |= kFirstMark >> id % kBits;
    }
  }

  bool comesAgain() const {
    const unsigned back = *level + 1;
    bool found = false;
    for (unsigned b = 0; b < rows; ++b) {
      const Spikes spikes = spikesOf(b);
      for (unsigned k = back; k < spikes.count; ++k) found |= spikes.ids[k] == spikes.ids[k - back];
    }
    return found;
  }
};

// Whether any word is not 0.
template <class T>
class AnyWord : public poplar::Vertex {
 public:
  In<unsigned> in;  // [count]
  poplar::Output<T> any;
  unsigned count;

  bool compute() {
    unsigned all = 0;
    for (unsigned i = 0; i < count; ++i) all |= in[i];
    *any = all != 0;
    return true;
  }
};

// Of 32 inputs, their bits for up to 32 rows. Workers share inputs.
class TurnMasks : public poplar::MultiVertex {
 public:
  In<unsigned> masks;    // [rows]
  Out<unsigned> turned;  // [32]
  unsigned rows;

  bool compute(unsigned worker) {
    const Range own = ownInputs(worker);
    for (unsigned i = own.first; i < own.last; ++i) turned[i] = 0;
    const unsigned wanted =
        static_cast<unsigned>((std::uint64_t{1} << (kBits - own.first)) - (std::uint64_t{1} << (kBits - own.last)));
    for (unsigned row = 0; row < rows; ++row) {
      forEachMark(masks[row] & wanted, [&](unsigned i) { turned[i] |= kFirstMark >> row; });
    }
    return true;
  }
  Range ownInputs(unsigned worker) const { return quickShareOf(kBits, worker); }
};

// Of each input, the number of its rows, and the rows, 16 bits each; if these were more than its bits, the bits.
// Workers share inputs.
class ListRows : public poplar::MultiVertex {
 public:
  In<unsigned> turned;    // [inputs, words]
  Out<unsigned> records;  // [inputs, 1 + words]
  unsigned inputs, words;

  bool compute(unsigned worker) {
    for (unsigned input = worker; input < inputs; input += numWorkers()) {
      const unsigned* const bits = &turned[input * words];
      unsigned* const record = &records[input * (1 + words)];
      auto* const rows = reinterpret_cast<unsigned short*>(record + 1);
      unsigned count = 0;
      for (unsigned w = 0; w < words; ++w) {
        forEachMark(bits[w], [&](unsigned i) {
          if (count < 2 * words) rows[count] = static_cast<unsigned short>(kBits * w + i);
          ++count;
        });
      }
      record[0] = count;
      for (unsigned w = 0; count > 2 * words && w < words; ++w) record[1 + w] = bits[w];
    }
    return true;
  }
};

// g_weights[i] = the sum of g_current over the rows of input i; it is added where others came before, in blocks of
// steps or at lower levels. Workers share inputs.
class GatherGradient : public poplar::MultiVertex {
 public:
  In<unsigned> records;    // [inputs, 1 + words], of ListRows
  In<float> g_current;     // [rows, neurons]
  InOut<float> g_weights;  // [inputs, neurons]
  poplar::Input<unsigned> level;
  unsigned inputs, words, rows, neurons;
  bool always_adds;

  bool compute(unsigned worker) {
    const bool adds = always_adds || *level > 0;
    for (unsigned input = worker; input < inputs; input += numWorkers()) {
      const unsigned* const record = &records[input * (1 + words)];
      float* const to = &g_weights[input * neurons];
      if (record[0] <= 2 * words) {
        add(to, reinterpret_cast<const unsigned short*>(record + 1), record[0], adds);
        continue;
      }
      for (unsigned w = 0; w < words; ++w) {
        unsigned short of_word[kBits];
        unsigned count = 0;
        forEachMark(record[1 + w], [&](unsigned i) { of_word[count++] = static_cast<unsigned short>(kBits * w + i); });
        add(to, of_word, count, adds || w > 0);
      }
    }
    return true;
  }

 private:
  void add(float* to, const unsigned short* own, unsigned count, bool adds) {
    sumListedRows(
        ListedRows<const float>{&g_current[0], rows - 1, neurons}, own, count, Ones{},
        [&](unsigned j, auto numbers, auto sum) { numbers.store(to + j, adds ? numbers.load(to + j) + sum : sum); });
  }
};

template class MaskSpikes<unsigned short>;
template class AnyWord<unsigned>;
template class AnyWord<bool>;

}  // namespace snnjax
