// lif_network, backward: a narrow readout on the tiles of the neurons that it reads. Masks (conventions.hpp) say who is
// listed, and who is kept, in each row; the gradients of the readout's currents come in parts of its columns.
#include "../lists/lists.hpp"
#include "../numbers.hpp"
#include "cycles.hpp"

namespace snnjax {

// g_spikes[row, j] = <weights[j], g_current[row]> where neuron j is listed, else 0; and g_weights[j] += g_current[row]
// where it is kept. Workers share rows, and have sums of their own.
template <class W>
class ReadoutGradient : public poplar::MultiVertex {
 public:
  In<unsigned> masks;       // [markWords(neurons), rows]
  In<W> weights;            // [parts, readable, columns], of own neurons
  In<float> g_current;      // [parts, rows, columns]
  Out<float> g_spikes;      // [rows, neurons]
  InOut<float> g_weights;   // [workers, parts, readable, columns]
  bool starts;              // these sums are 0, which nobody has stored
  unsigned rows, neurons;   // neurons: even, the last ones may be to spare:
  unsigned readable;        // only these have weights
  unsigned parts, columns;  // columns: even

  void compute(unsigned worker) {
    if (starts) clear(worker);
    switch (columns) {  // few without a loop
      case 2: return addRows<2>(worker);
      case 4: return addRows<4>(worker);
      default: return addRows<0>(worker);
    }
  }

 private:
  using Of = Numbers<float2>;

  unsigned sums() const { return parts * readable * columns; }

  template <unsigned kColumns>
  void addRows(unsigned worker) {
    for (unsigned row = worker; row < rows; row += numWorkers()) {
      float* const to = &g_spikes[row * neurons];
      for (unsigned j = 0; j < neurons; j += 2) Of::store(to + j, float2{});
      for (unsigned word = 0; word < markWords(neurons); ++word) {
        const unsigned mask = masks[word * rows + row], first = word * kNeuronsOfMark;
        if (mask == 0) continue;
        const unsigned kept = keptOf(mask, readable, word);
        forEachMark(kept, [&](unsigned i) { to[first + i] = dot<true, kColumns>(row, first + i, worker); });
        forEachMark(listedOf(mask, readable, word) & ~kept,
                    [&](unsigned i) { to[first + i] = dot<false, kColumns>(row, first + i, worker); });
      }
    }
  }

  // Eight numbers a turn.
  void clear(unsigned worker) {
    float* const to = &g_weights[worker * sums()];
    unsigned i = 0;
    for (; i + 8 <= sums(); i += 8) {
      for (unsigned k = 0; k < 8; k += 2) Of::store(to + i + k, Of::fill(0.0f));
    }
    for (; i < sums(); ++i) to[i] = 0.0f;
  }

  // Even and odd columns are summed apart and added at the end.
  template <bool kIsKept, unsigned kColumns>
  float dot(unsigned row, unsigned j, unsigned worker) {
    const W* own = &weights[j * columns];
    const float* other = &g_current[row * columns];
    float* to = &g_weights[(worker * parts * readable + j) * columns];
    const unsigned of_part = readable * columns;
    float2 sums = {};
    for (unsigned p = 0, at = 0; p < parts; ++p, at += of_part, other += rows * columns) {
      for (unsigned i = 0; i < (kColumns > 0 ? kColumns : columns); i += 2) {
        const float2 g = Of::load(other + i);
        sums += Of::load(own + at + i) * g;
        if (kIsKept) Of::store(to + at + i, Of::load(to + at + i) + g);
      }
    }
    return sums[0] + sums[1];
  }
};

// A row: its addresses 4, zeros, the loop 2; a word: load, test, loop and its address 5; one that lists any: masks 7.
template <class W>
std::uint64_t workerCycles(const ReadoutGradient<W>& vertex, unsigned worker) {
  using namespace cycles;
  const auto dot = [&](bool is_kept) { return kMark + readoutDot(vertex.parts, vertex.columns, sizeof(W), is_kept); };
  Slots slots =
      entry(11, false) + 1 + (vertex.starts ? clearedSums(vertex.parts * vertex.readable, vertex.columns) : 0);
  for (unsigned row = worker; row < vertex.rows; row += vertex.numWorkers()) {
    slots += 6 + 2 * numbersOf(vertex.neurons);
    for (unsigned word = 0; word < markWords(vertex.neurons); ++word) {
      const unsigned mask = vertex.masks[word * vertex.rows + row];
      const unsigned kept = keptOf(mask, vertex.readable, word);
      slots += 5 + (mask != 0 ? 7 : 0);
      forEachMark(kept, [&](unsigned) { slots += dot(true); });
      forEachMark(listedOf(mask, vertex.readable, word) & ~kept, [&](unsigned) { slots += dot(false); });
    }
  }
  return slots;
}

SNNJAX_INSTANCES_OF_FLOATS(ReadoutGradient)

}  // namespace snnjax
