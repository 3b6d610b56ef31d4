// select_spikes: the candidates of capped lists, which join_candidates.cpp joins; their values, and their gradient.
#include "../surrogates.hpp"
#include "../words.hpp"
#include "candidates.hpp"
#include "cycles.hpp"

namespace snnjax {

// Candidates of rows: neurons above the least of both thresholds; those above the threshold are spikes. Each worker
// lists its share of the neurons.
template <class Id>
class SelectCandidates : public poplar::MultiVertex {
 public:
  In<float> v;           // [rows, neurons], membranes; a NaN is never listed
  In<float> threshold;   // [neurons]
  In<float> least;       // [neurons], the smaller of both thresholds
  Out<Id> lists;         // [rows, workers, listStride(slots)], of Part; the slots are those of a share
  Out<float> membranes;  // [rows, workers, slots], of Part
  unsigned rows, neurons;

  void compute(unsigned worker) {
    for (unsigned row = 0; row < rows; ++row) {
      PartWriter<Id> part(&lists[0], &membranes[0], neuronsOfShare(neurons), row, worker);
      forEachCandidate(row, worker, [&](unsigned j, float v, bool is_spike) { part.add(j, v, is_spike); });
      part.finish();
    }
  }

  // Calls body(j, v, is_spike) for the candidates of a worker in a row: those above the least threshold.
  template <class Body>
  void forEachCandidate(unsigned row, unsigned worker, Body&& body) const {
    const Range own = neuronsOfWorker(neurons, worker);
    const float* const of_row = &v[row * neurons];
    const auto offer = [&](unsigned j) {
      if (of_row[j] > least[j]) body(j, of_row[j], of_row[j] > threshold[j]);
    };
    unsigned j = own.first;
    for (; j + 2 <= own.last; j += 2) {
      using Of = Numbers<float2>;
      // Pairs begin at 64 bits.
      if (neurons % 2 == 0 && !anyAbove(Of::load(of_row + j), Of::load(&least[j]))) continue;
      offer(j);
      offer(j + 1);
    }
    if (j < own.last) offer(j);
  }
};

// The values of lists: 1 for spikes, 0 for the rest.
template <class W, class Id>
class ListValues : public poplar::MultiVertex {
 public:
  In<Id> lists;   // [rows, stride], records
  Out<W> values;  // [rows, capacity]
  unsigned rows, stride, capacity;

  void compute(unsigned worker) {
    for (const unsigned b : shareOf(rows, worker, rowsPerUnit<W>(capacity))) {
      const unsigned spikes = List<Id>{&lists[b * stride], capacity}.spikes();
      for (unsigned k = 0; k < capacity; ++k) values[b * capacity + k] = static_cast<W>(k < spikes ? 1.0f : 0.0f);
    }
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

  void compute(unsigned worker) {
    for (const unsigned b : shareOf(rows, worker, rowsPerUnit<T>(neurons))) {
      T* const row = &g_v[b * neurons];
      fillRows(row, static_cast<T>(0.0f), neurons, neurons);
      for (unsigned k = 0; k < capacity; ++k) {
        const unsigned j = static_cast<unsigned>(ids[b * capacity + k]);
        if (j >= neurons) continue;
        const float x = toFloat(v[b * neurons + j]) - threshold[j];
        const float g = maskedProduct(toFloat(g_values[b * capacity + k]), surrogateDerivative(x, surrogate, slope));
        row[j] = static_cast<T>(toFloat(row[j]) + g);
      }
    }
  }
};

using namespace cycles;

template <class Id>
std::uint64_t workerCycles(const SelectCandidates<Id>& vertex, unsigned worker) {
  const Range own = neuronsOfWorker(vertex.neurons, worker);
  const unsigned neurons = own.count();
  Slots slots = entry(7, false);
  for (unsigned row = 0; row < vertex.rows; ++row) {
    Slots found = 0, near_pairs = 0;
    unsigned last_pair = ~0U;
    vertex.forEachCandidate(row, worker, [&](unsigned j, float, bool) {
      ++found;
      near_pairs += j / 2 != last_pair ? 1 : 0;
      last_pair = j / 2;
    });
    const Walk in_pairs = {neurons / 2, near_pairs, neurons % 2}, single = {0, 0, neurons};
    slots += partOf(found, sizeof(Id)) + found * kWhichKind + walkOf(vertex.neurons % 2 == 0 ? in_pairs : single);
  }
  return slots;
}

// Slot by slot: comparison, choice, store, loop.
template <class W, class Id>
std::uint64_t workerCycles(const ListValues<W, Id>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<W>(vertex.capacity));
  return entry(5, true) + Slots{own.count()} * (10 + vertex.capacity * (3 + store(sizeof(W))));
}

// Zeros, then for each id: load, range 3, branch; of those in range: loads of membrane, threshold and gradient, the
// slope, masked product 4, sum with what is there 2 and its store.
template <class T, class Id>
std::uint64_t workerCycles(const SelectSpikesBackward<T, Id>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.rows, worker, rowsPerUnit<T>(vertex.neurons));
  Slots slots = entry(11, true);
  for (unsigned i = own.first * vertex.capacity; i < own.last * vertex.capacity; ++i) {
    const bool is_listed = static_cast<unsigned>(vertex.ids[i]) < vertex.neurons;
    slots += 5 + (is_listed ? 9 + surrogate(vertex.surrogate) + store(sizeof(T)) : 0);
  }
  return slots + Slots{own.count()} * (10 + kToRows + filled(vertex.neurons, sizeof(T), vertex.neurons));
}

SNNJAX_INSTANCES_OF_IDS(SelectCandidates)
SNNJAX_INSTANCES_OF_IDS(ListValues, float)
SNNJAX_INSTANCES_OF_IDS(ListValues, half)
SNNJAX_INSTANCES_OF_IDS(SelectSpikesBackward, float)
SNNJAX_INSTANCES_OF_IDS(SelectSpikesBackward, half)

}  // namespace snnjax
