// From marks to the candidates of capped lists: neurons mark whom a list may name (conventions.hpp), so that a list's
// home passes over all others, sixteen at a time.

#include "../numbers.hpp"
#include "candidates.hpp"
#include "cycles.hpp"
#include "listed_rows.hpp"

namespace snnjax {

// Joins the marks of pairs of neurons, behind the membranes that their tile offers. Workers share rows.
class PackMarks : public poplar::MultiVertex {
 public:
  In<unsigned> marks;              // [rows, pairs], of NeuronRun (network/neuron_rows.hpp)
  InOut<float> offered;            // [rows, stride], membranes of the neurons; the words behind them are written
  unsigned rows, neurons, stride;  // neurons: even

  void compute(unsigned worker) {
    const unsigned pairs = neurons / 2;
    if (pairs > kNeuronsOfMark / 2) return packAll(worker, pairs);
    useBlock<kNeuronsOfMark / 2>(0, pairs, [&](unsigned, auto of_word) { pack<of_word>(worker); });
  }

 private:
  // The pairs of a word without a loop over them.
  template <unsigned kPairs>
  void pack(unsigned worker) {
    for (unsigned row = worker; row < rows; row += numWorkers()) {
      unsigned word = 0;
      for (unsigned pair = 0; pair < kPairs; ++pair) word |= marks[row * kPairs + pair];
      store(row, 0, word);
    }
  }

  void packAll(unsigned worker, unsigned pairs) {
    for (unsigned row = worker; row < rows; row += numWorkers()) {
      for (unsigned word = 0; word < markWords(neurons); ++word) {
        store(row, word, marksOfWord(&marks[row * pairs], pairs, word));
      }
    }
  }

  void store(unsigned row, unsigned k, unsigned word) { offered[row * stride + neurons + k] = bitsOf<float>(word); }
};

// The candidates of rows at their home, from what tiles offer. Each worker lists its share of the neurons.
class SelectMarked : public poplar::MultiVertex {
 public:
  In<float> offered;          // [blocks, rows, stride], of PackMarks
  Out<unsigned short> lists;  // [rows, workers, listStride(slots)], of Part; the slots are those of a share
  Out<float> membranes;       // [rows, workers, slots], of Part
  unsigned rows, neurons;
  unsigned blocks, columns, stride;  // the last block may hold more than `neurons`
  // A share of the neurons is so many whole blocks, and so many columns of one more.
  unsigned share_blocks, share_columns;

  void compute(unsigned worker) {
    for (unsigned row = 0; row < rows; ++row) {
      PartWriter<unsigned short> part(&lists[0], &membranes[0], neuronsOfShare(neurons), row, worker);
      forEachWord(row, worker, [&](unsigned word, unsigned first, const float* v, Range own) {
        forEachMark((word | word << kNeuronsOfMark) & kMarksOfSpikes, [&](unsigned i) {
          if (own.contains(first + i))
            part.add(first + i, v[i], (word << i & kFirstMark) != 0);  // else of another share
        });
      });
      part.finish();
    }
  }

  // Calls body(word, first neuron, its membrane, own neurons) for the words that mark any neuron.
  template <class Body>
  void forEachWord(unsigned row, unsigned worker, Body&& body) const {
    const Range own = neuronsOfWorker(neurons, worker);
    unsigned block = worker * share_blocks, before = worker * share_columns;
    for (; before >= columns; before -= columns) ++block;
    const float* at = &offered[(block * rows + row) * stride];
    const unsigned count = ownBlocks(block, before), start = own.first - before;
    for (unsigned i = 0; i < count; ++i, at += rows * stride) {
      const unsigned first = start + i * columns;
      if (columns <= kNeuronsOfMark) {  // no loop over words
        const auto word = bitsOf<unsigned>(at[columns]);
        if (word != 0) body(word, first, at, own);
        continue;
      }
      for (unsigned k = 0; k < columns; k += kNeuronsOfMark) {
        const auto word = bitsOf<unsigned>(at[columns + k / kNeuronsOfMark]);
        if (word != 0) body(word, first + k, at + k, own);
      }
    }
  }
  // Blocks that hold a share, from this one on, of which so many columns are another's.
  unsigned ownBlocks(unsigned block, unsigned before) const {
    const unsigned behind = before + share_columns;
    return smaller(share_blocks + (behind > 0 ? 1 : 0) + (behind > columns ? 1 : 0), blocks - smaller(block, blocks));
  }
};

using namespace cycles;

std::uint64_t workerCycles(const PackMarks& vertex, unsigned worker) {
  const unsigned rows = vertex.rows > worker ? (vertex.rows - worker - 1) / vertex.numWorkers() + 1 : 0;
  return entry(5, false) + 6 + rows * packedRow(vertex.neurons / 2);
}

std::uint64_t workerCycles(const SelectMarked& vertex, unsigned worker) {
  const Range own = neuronsOfWorker(vertex.neurons, worker);
  const unsigned before = worker * vertex.share_columns, columns = vertex.columns;
  const Slots blocks = vertex.ownBlocks(worker * vertex.share_blocks + before / columns, before % columns);
  Slots slots = entry(10, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    Slots found = 0, words = 0, passed = 0;
    vertex.forEachWord(row, worker, [&](unsigned word, unsigned first, const float*, Range) {
      ++words;
      const unsigned marked = (word | word << kNeuronsOfMark) & kMarksOfSpikes;
      passed += static_cast<Slots>(std::popcount(marked));
      forEachMark(marked, [&](unsigned i) { found += own.contains(first + i) ? 1 : 0; });
    });
    slots += kFirstBlock + before / columns * kNextBlock + blocksOfRow(blocks, columns) + words * kMarkedWord +
             passed * kMarkedCandidate + partOf(found, sizeof(unsigned short));
  }
  return slots;
}

}  // namespace snnjax
