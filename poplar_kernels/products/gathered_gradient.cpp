// lif_network, backward: the gradient of weights gathered by input. Lists become bits, which are turned so that each
// input has one for each row, and then the rows in which it fires, or their bits where there is no room for more rows.
// A tile adds up the rows of the currents' gradients in registers.
#include "../lists/listed_rows.hpp"
#include "cycles.hpp"

namespace snnjax {

constexpr unsigned kBits = 32;  // of a word; the first one is the highest

// The spikes of lists as bits. A list may name an input several times: those that it has named `level` times before are
// marked. Workers share words; the last one, whose share is the smallest, says whether any comes again.
class MaskSpikes : public poplar::MultiVertex {
 public:
  In<unsigned short> list;  // [rows, stride], records, ids of spikes ascending
  Out<unsigned> masks;      // [words, rows], a word for 32 inputs
  poplar::Output<unsigned> more;
  poplar::Input<unsigned> level;
  unsigned rows, stride, capacity, words, num_inputs;

  void compute(unsigned worker) {
    const Range own = quickShareOf(words, worker);
    for (unsigned i = own.first * rows; i < own.last * rows; ++i) masks[i] = 0;
    for (unsigned b = 0; b < rows; ++b) mark(b, inputsOf(own));
    if (worker + 1 == numWorkers()) *more = comesAgain() ? 1 : 0;
  }
  Range inputsOf(Range of_words) const {
    return {smaller(of_words.first * kBits, num_inputs), smaller(of_words.last * kBits, num_inputs)};
  }

 private:
  List<unsigned short> listOf(unsigned b) const { return {&list[b * stride], capacity}; }

  void mark(unsigned b, Range own) {
    const unsigned short* const ids = listOf(b).ids();
    unsigned before = ~0U, times = 0;
    const unsigned count = listOf(b).spikes();
    for (unsigned k = numBelow(ids, count, own.first); k < count; ++k) {
      const auto id = static_cast<unsigned>(ids[k]);
      if (!own.contains(id)) break;  // of the next worker, or in disorder
      times = id == before ? times + 1 : 0;
      before = id;
      if (times == *level) masks[id / kBits * rows + b] |= kFirstMark >> id % kBits;
    }
  }

  bool comesAgain() const {
    const unsigned back = *level + 1;
    bool found = false;
    for (unsigned b = 0; b < rows; ++b) {
      const unsigned short* const ids = listOf(b).ids();
      for (unsigned k = back; k < listOf(b).spikes(); ++k) found |= ids[k] == ids[k - back];
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

  void compute() {
    unsigned all = 0;
    for (unsigned i = 0; i < count; ++i) all |= in[i];
    *any = all != 0;
  }
};

// Of 32 inputs, their bits for up to 32 rows. Workers share inputs.
class TurnMasks : public poplar::MultiVertex {
 public:
  In<unsigned> masks;    // [rows]
  Out<unsigned> turned;  // [32]
  unsigned rows;

  void compute(unsigned worker) {
    const Range own = ownInputs(worker);
    for (const unsigned i : own) turned[i] = 0;
    const unsigned wanted =
        static_cast<unsigned>((std::uint64_t{1} << (kBits - own.first)) - (std::uint64_t{1} << (kBits - own.last)));
    for (unsigned row = 0; row < rows; ++row) {
      forEachMark(masks[row] & wanted, [&](unsigned i) { turned[i] |= kFirstMark >> row; });
    }
  }
  Range ownInputs(unsigned worker) const { return quickShareOf(kBits, worker); }
};

// Of each input, the number of its rows, and the rows, 16 bits each; if there is no room for these, their bits.
// Workers share inputs.
class ListRows : public poplar::MultiVertex {
 public:
  In<unsigned> turned;           // [inputs, words]
  Out<unsigned> records;         // [inputs, 1 + room]
  unsigned inputs, words, room;  // room: at least that of the bits

  void compute(unsigned worker) {
    for (unsigned input = worker; input < inputs; input += numWorkers()) {
      const unsigned* const bits = &turned[input * words];
      unsigned* const record = &records[input * (1 + room)];
      if (!list(bits, record)) copy(bits, record);
    }
  }

 private:
  bool list(const unsigned* bits, unsigned* record) {
    auto* const rows = reinterpret_cast<unsigned short*>(record + 1);
    unsigned count = 0;
    for (unsigned w = 0; w < words; ++w) {
      for (unsigned mask = bits[w]; mask != 0; ++count) {
        if (count == 2 * room) return false;
        rows[count] = static_cast<unsigned short>(kBits * w + takeFirstMark(mask));
      }
    }
    record[0] = count;
    return true;
  }
  void copy(const unsigned* bits, unsigned* record) {
    record[0] = 0;
    for (unsigned w = 0; w < words; ++w) {
      record[0] += static_cast<unsigned>(std::popcount(bits[w]));
      record[1 + w] = bits[w];
    }
  }
};

// g_weights[i] = the sum of g_current over the rows of input i; it is added where others came before, in blocks of
// steps or at lower levels. Workers share inputs. One of very many rows would keep all waiting: each worker lays aside
// the bits of the first of these, whose rows all tiles of the block then share.
class GatherGradient : public poplar::MultiVertex {
 public:
  In<unsigned> records;         // [inputs, 1 + room], of ListRows
  In<float> g_current;          // [rows, neurons]
  InOut<float> g_weights;       // [inputs, neurons]
  Out<unsigned> shared;         // [workers, 1 + kSharedInputs]: how many inputs, and which
  Out<unsigned> shared_bits;    // [words, workers, kSharedInputs]
  poplar::InOut<unsigned> any;  // becomes 1 if any input is shared; workers write nothing else
  poplar::Input<unsigned> level;
  unsigned inputs, words, room, rows, neurons;
  unsigned longest;  // rows of an input that one worker adds up
  bool always_adds;

  void compute(unsigned worker) { adds() ? gather<true>(worker) : gather<false>(worker); }
  bool adds() const { return always_adds || *level > 0; }

 private:
  template <bool kAdds>
  void gather(unsigned worker) {
    unsigned* const own = &shared[worker * (1 + kSharedInputs)];
    own[0] = 0;
    const unsigned* record = &records[worker * (1 + room)];
    float* to = &g_weights[worker * neurons];
    const unsigned next_record = numWorkers() * (1 + room), next = numWorkers() * neurons;
    for (unsigned input = worker; input < inputs; input += numWorkers(), record += next_record, to += next) {
      const auto use = [&](unsigned j, auto numbers, auto sum) {
        numbers.store(to + j, kAdds ? numbers.load(to + j) + sum : sum);
      };
      if (record[0] <= 2 * room) {
        sumListedRows(from(), reinterpret_cast<const unsigned short*>(record + 1), record[0], Ones{}, use);
      } else if (record[0] <= longest || own[0] == kSharedInputs) {
        sumMarkedRows(from(), Marks{record + 1, 1, 0, rows}, use);
      } else {
        sumMarkedRows(from(), Marks{record + 1, 1, 0, 0}, use);
        share(record + 1, worker * kSharedInputs + own[0]);
        own[++own[0]] = input;
      }
    }
  }
  MadeRows<const float> from() const { return {&g_current[0], neurons}; }
  void share(const unsigned* bits, unsigned slot) {
    for (unsigned w = 0; w < words; ++w) shared_bits[w * kSharedOfTile + slot] = bits[w];
    *any = 1;
  }
};

// Of the inputs that the tiles of a block lay aside, the sums over the rows of one group. Workers share inputs.
class SumShared : public poplar::MultiVertex {
 public:
  In<unsigned> shared;       // [tiles, workers, 1 + kSharedInputs], of GatherGradient, and the words with these rows of
  In<unsigned> shared_bits;  // [tiles, words, workers, kSharedInputs]
  In<float> g_current;       // [rows, neurons]
  Out<float> sums;           // [tiles, workers, kSharedInputs, neurons]; what is not shared is not written
  unsigned tiles, words, first, rows, neurons;  // the first row is that of so many bits

  void compute(unsigned worker) {
    unsigned of = worker;  // another worker's inputs of each tile
    for (unsigned tile = 0; tile < tiles; ++tile, of = of + 1 < numWorkers() ? of + 1 : 0) {
      for (unsigned k = 0; k < count(tile, of); ++k) {
        const unsigned slot = of * kSharedInputs + k;
        float* const to = &sums[(tile * kSharedOfTile + slot) * neurons];
        sumMarkedRows(MadeRows<const float>{&g_current[0], neurons}, marks(tile, slot),
                      [&](unsigned j, auto numbers, auto sum) { numbers.store(to + j, sum); });
      }
    }
  }
  unsigned count(unsigned tile, unsigned of) const { return shared[(tile * kShares + of) * (1 + kSharedInputs)]; }
  Marks marks(unsigned tile, unsigned slot) const {
    return {&shared_bits[tile * words * kSharedOfTile + slot], kSharedOfTile, first, first + rows};
  }
};

// Adds them up over the groups, at the tile that laid them aside; the next ones are not there yet.
class AddShared : public poplar::MultiVertex {
 public:
  In<unsigned> shared;     // [workers, 1 + kSharedInputs]
  In<float> sums;          // [groups, workers, kSharedInputs, neurons]
  InOut<float> g_weights;  // [inputs, neurons]
  poplar::Output<unsigned> any;
  unsigned groups, neurons;

  void compute(unsigned worker) {
    if (worker == 0) *any = 0;
    const unsigned* const own = &shared[worker * (1 + kSharedInputs)];
    for (unsigned k = 0; k < own[0]; ++k) {
      float* const to = &g_weights[own[1 + k] * neurons];
      const float* const from = &sums[(worker * kSharedInputs + k) * neurons];
      for (unsigned j = 0; j < neurons; j += 2) {
        using Of = Numbers<float2>;
        float2 sum = Of::load(to + j);
        for (unsigned g = 0; g < groups; ++g) sum += Of::load(from + g * kSharedOfTile * neurons + j);
        Of::store(to + j, sum);
      }
    }
  }
};

using namespace cycles;

inline Slots bitsOfMask(unsigned mask) { return static_cast<Slots>(std::popcount(mask)); }

inline MarkedRows markedRows(const Marks& marks) {
  MarkedRows rows;
  marks.forEachWord([&](unsigned, unsigned mask) {
    ++rows.words;
    rows.all += bitsOfMask(mask);
    rows.in_whole_words += mask == ~0U ? Marks::kBits : 0;
  });
  return rows;
}

// Zeros, a word each; a row: its record, the search, an id that is too large 5; an id: its load, range 3, how often it
// came before 3, the comparison 2, its word and bit 4, load, or, store, the loop. Whether any comes again: two loads,
// the comparison, or and branch for each.
std::uint64_t workerCycles(const MaskSpikes& vertex, unsigned worker) {
  const Range words = quickShareOf(vertex.words, worker), own = vertex.inputsOf(words);
  const bool is_last = worker + 1 == vertex.numWorkers();
  Slots slots = entry(9, false) + 6 + Slots{words.count()} * vertex.rows * 2;
  for (unsigned b = 0; b < vertex.rows; ++b) {
    const List<unsigned short> list = {&vertex.list[b * vertex.stride], vertex.capacity};
    const Range found = entriesWithin(list.ids(), list.spikes(), own);
    slots += 8 + kRecordHeader + numBelow(list.spikes()) + 5 + Slots{found.count()} * 17 +
             (is_last ? 6 + Slots{list.spikes()} * 5 : 0);
  }
  return slots;
}

// A load, or and branch for each; a byte is stored by its word.
template <class T>
std::uint64_t workerCycles(const AnyWord<T>& vertex, unsigned) {
  return entry(3, false) + 3 * Slots{vertex.count} + 2 + store(sizeof(T));
}

// Own inputs 8, zeros; a row: load, mask, test, its bit and the branch; an input: address, load, or, store.
std::uint64_t workerCycles(const TurnMasks& vertex, unsigned worker) {
  const Range own = vertex.ownInputs(worker);
  Slots slots = entry(3, false) + 8 + 2 * Slots{own.count()} + 5 * Slots{vertex.rows};
  for (const unsigned i : own) slots += bitsOfMask(vertex.turned[i]) * (kBit + 4);
  return slots;
}

// An input: addresses 6, the header, the loop; a word: load, test, its first row, loop 5; a row: the test for room 2, a
// sum, the store of 16 bits, the count. Where there is no room for all, as many as there is and then the bits: a load,
// the count 2, a store and a branch for each word.
std::uint64_t workerCycles(const ListRows& vertex, unsigned worker) {
  Slots slots = entry(5, false);
  const Slots words = vertex.words, room = vertex.room;
  for (unsigned input = worker; input < vertex.inputs; input += vertex.numWorkers()) {
    const Slots count = vertex.records[input * (1 + room)], listed = count < 2 * room ? count : 2 * room;
    slots += 9 + 5 * words + listed * (kBit + 4 + kShortStore) + (count > listed ? 5 * words : 0);
  }
  return slots;
}

// Which loop 4, the first input and the way to the next 8. An input: both pointers move on 2, the header, the test 2,
// the loop; a store for each pair, a load and a sum where it is added. Where it is long, two tests more; where it is
// shared, its place 4, a load, a store, a pointer and a branch for each word, its number, and that there is one 4.
std::uint64_t workerCycles(const GatherGradient& vertex, unsigned worker) {
  const Slots stores = (vertex.adds() ? 3 : 1) * numbersOf(vertex.neurons);
  Slots slots = entry(14, false) + 4 + 8, shared = 0;
  for (unsigned input = worker; input < vertex.inputs; input += vertex.numWorkers()) {
    const Slots count = vertex.records[input * (1 + vertex.room)], words = vertex.words, listed = 2 * vertex.room;
    const bool is_shared = count > listed && count > vertex.longest && shared < kSharedInputs;
    slots += 6 + stores + (count > listed ? 4 : 0);
    if (count <= listed) {
      slots += sumListedRows(count, vertex.neurons, 4, false, true);
    } else if (is_shared) {
      slots += sumMarkedRows({}, vertex.neurons) + 12 + 4 * words;
      ++shared;
    } else {
      const Marks marks = {&vertex.records[input * (1 + vertex.room) + 1], 1, 0, vertex.rows};
      slots += sumMarkedRows(markedRows(marks), vertex.neurons);
    }
  }
  return slots;
}

// Another worker of a tile: 3, where its inputs are 4, their number, the loop; an input: addresses 8, the loop, a store
// for each pair.
std::uint64_t workerCycles(const SumShared& vertex, unsigned worker) {
  Slots slots = entry(9, false);
  unsigned of = worker;
  for (unsigned tile = 0; tile < vertex.tiles; ++tile, of = of + 1 < vertex.numWorkers() ? of + 1 : 0) {
    slots += 9;
    for (unsigned k = 0; k < vertex.count(tile, of); ++k) {
      slots += 9 + sumMarkedRows(markedRows(vertex.marks(tile, of * kSharedInputs + k)), vertex.neurons) +
               numbersOf(vertex.neurons) + 2;
    }
  }
  return slots;
}

// An input: addresses 6, its number, the loop; a pair: its load, store and loop, and of a group the load with the sum
// before, the pointer, the loop.
std::uint64_t workerCycles(const AddShared& vertex, unsigned worker) {
  const Slots inputs = vertex.shared[worker * (1 + kSharedInputs)];
  return entry(6, false) + 6 + inputs * (8 + numbersOf(vertex.neurons) * (6 + 3 * Slots{vertex.groups}));
}

SNNJAX_INSTANCES(AnyWord, unsigned, bool)

}  // namespace snnjax
