// lif_network, backward: from lists, at their homes, to the neurons below that fired.
#include "../lists/listed_rows.hpp"
#include "../words.hpp"
#include "cycles.hpp"

namespace snnjax {

// a / b for numbers of neurons, at most 16 bits: a half more than `a` is so far from a multiple of `b` that rounding
// does not reach it. A tile has a division of integers only in software.
inline unsigned quotient(unsigned a, float inverse) {
  return static_cast<unsigned>((static_cast<float>(a) + 0.5f) * inverse);
}

// Calls body(k, block, column) for the ids of an ascending group that lie in `own`, the first of which is found by
// bisection; blocks have so many columns.
inline void forEachPlace(const unsigned short* ids, unsigned count, Range own, unsigned columns, auto&& body) {
  const float inverse = 1.0f / static_cast<float>(columns);
  for (unsigned k = numBelow(ids, count, own.first); k < count; ++k) {
    const auto id = static_cast<unsigned>(ids[k]);
    if (!own.contains(id)) return;  // of the next worker, or in disorder
    const unsigned block = quotient(id, inverse);
    body(k, block, id - block * columns);
  }
}

// The dense form of lists and their values, at the home of the lists: 0 except at the listed ids. Rows are laid out in
// blocks, one for each tile that takes them. Both groups of a list ascend, so that each worker finds the ids of its
// blocks.
class ScatterList : public poplar::MultiVertex {
 public:
  In<unsigned short> list;                                // [rows, stride], records
  In<float> values;                                       // [rows, capacity]
  Out<float> row;                                         // [blocks, rows, columns]: id i lies in block i / columns
  unsigned rows, stride, capacity, columns, num_neurons;  // num_neurons: blocks * columns

  void compute(unsigned worker) {
    const unsigned block_size = rows * columns;
    const Range blocks = shareOf(num_neurons / columns, worker, block_size % 2 == 0 ? 1 : 2);
    fillRows(&row[blocks.first * block_size], 0.0f, blocks.count() * block_size, 2);  // from 64 bits on
    const Range own = {blocks.first * columns, blocks.last * columns};
    for (unsigned b = 0; b < rows; ++b) {
      const List<unsigned short> from = {&list[b * stride], capacity};
      const unsigned spikes = from.spikes();
      const auto place = [&](unsigned group, unsigned count) {
        forEachPlace(from.ids() + group, count, own, columns, [&](unsigned k, unsigned block, unsigned column) {
          row[(block * rows + b) * columns + column] = values[b * capacity + group + k];
        });
      };
      place(0, spikes);
      place(spikes, from.listed() - spikes);
    }
  }
};

// The masks of lists, in blocks as above.
class MaskLists : public poplar::MultiVertex {
 public:
  In<unsigned short> list;  // [rows, stride], records
  Out<unsigned> masks;      // [blocks, markWords(columns), rows]
  unsigned rows, stride, capacity, columns, blocks;
  unsigned num_neurons;  // at most blocks * columns

  void compute(unsigned worker) {
    const Range own = quickShareOf(blocks, worker), neurons = neuronsOf(own);
    const unsigned of_block = markWords(columns) * rows;
    unsigned i = own.first * of_block;
    for (; i + 4 <= own.last * of_block; i += 4) {  // four a turn
      for (unsigned k = 0; k < 4; ++k) masks[i + k] = 0;
    }
    for (; i < own.last * of_block; ++i) masks[i] = 0;
    columns <= kNeuronsOfMark ? markRows<true>(neurons) : markRows<false>(neurons);
  }

  Range neuronsOf(Range of_blocks) const {
    return {smaller(of_blocks.first * columns, num_neurons), smaller(of_blocks.last * columns, num_neurons)};
  }

 private:
  template <bool kOneWord>
  void markRows(Range own) {
    constexpr unsigned kListedMark = kFirstMark >> kNeuronsOfMark;
    for (unsigned b = 0; b < rows; ++b) {
      const List<unsigned short> from = {&list[b * stride], capacity};
      const unsigned spikes = from.spikes();
      mark<kOneWord>(b, from.ids(), spikes, own, kFirstMark | kListedMark);
      mark<kOneWord>(b, from.ids() + spikes, from.listed() - spikes, own, kListedMark);
    }
  }

  // The ids of one ascending group that lie in `own`; a block of few columns has one word.
  template <bool kOneWord>
  void mark(unsigned b, const unsigned short* ids, unsigned count, Range own, unsigned bits) {
    forEachPlace(ids, count, own, columns, [&](unsigned, unsigned block, unsigned column) {
      const unsigned word = kOneWord ? block : block * markWords(columns) + column / kNeuronsOfMark;
      masks[word * rows + b] |= bits >> (kOneWord ? column : column % kNeuronsOfMark);
    });
  }
};

using namespace cycles;

// A row: its record, both groups with their searches, an id that is too large.
template <class V>
Slots placesOfRow(const V& vertex, unsigned b, Range own, Slots each) {
  const List<unsigned short> list = {&vertex.list[b * vertex.stride], vertex.capacity};
  const unsigned spikes = list.spikes(), near = list.listed() - spikes;
  const Range first = entriesWithin(list.ids(), spikes, own), second = entriesWithin(list.ids() + spikes, near, own);
  return 10 + kRecordHeader + numBelow(spikes) + numBelow(near) + 2 * 6 + (first.count() + second.count()) * each;
}

std::uint64_t workerCycles(const ScatterList& vertex, unsigned worker) {
  const unsigned columns = vertex.columns, block_size = vertex.rows * columns;
  const Range blocks = shareOf(vertex.num_neurons / columns, worker, block_size % 2 == 0 ? 1 : 2);
  const Range own = {blocks.first * columns, blocks.last * columns};
  Slots slots = entry(8, true) + kDivision + kInverse + kToRows + filled(Slots{blocks.count()} * block_size, 4, 2);
  for (unsigned b = 0; b < vertex.rows; ++b) slots += placesOfRow(vertex, b, own, kScatterEntry);
  return slots;
}

// Zeros, four words a turn and a word each.
std::uint64_t workerCycles(const MaskLists& vertex, unsigned worker) {
  const Range blocks = quickShareOf(vertex.blocks, worker);
  const Range own = vertex.neuronsOf(blocks);
  const Slots words = Slots{blocks.count()} * markWords(vertex.columns) * vertex.rows;
  Slots slots = entry(8, false) + kInverse + 6 + words / 4 * 5 + words % 4 * 2;
  for (unsigned b = 0; b < vertex.rows; ++b) slots += placesOfRow(vertex, b, own, maskEntry(vertex.columns));
  return slots;
}

}  // namespace snnjax
