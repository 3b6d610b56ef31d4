// lif_network without recurrent layers, forward: neurons over a block of steps at once, from currents of all of them.
// Workers share the neurons of all samples, in pairs; a pair's time passes within a worker.
#include "cycles.hpp"

namespace snnjax {

template <bool has_second, bool counted>
class LifScan : public poplar::MultiVertex {
 public:
  In<float> current;                                         // [batch, num_steps, neurons], without the bias
  In<float> bias, decay, gain, threshold, second_threshold;  // [neurons]
  In<unsigned> lengths;                                      // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  // [all steps + 1, batch, neurons], row 0 before the first step; [batch, neurons] if no history is kept
  InOut<float> membranes;
  If<counted, InOut<float>> counts;  // [batch, neurons], true spikes so far
  Out<float> offered;   // [batch, num_steps, offered_stride], membranes for the selection; PackMarks adds to it
  Out<unsigned> marks;  // [batch, num_steps, pairs of neurons], none past the end of a sequence
  unsigned num_steps, batch, neurons, offered_stride;  // num_steps: of a block
  unsigned char reset;                                 // enum Reset
  bool keep_history;
  // Of neurons with a second state.
  If<has_second, In<float>> second;  // [kSecondConstants, neurons], neuron.hpp
  If<has_second, InOut<float>> w;    // as the membranes, but for `keep_second` in place of `keep_history`
  If<has_second, bool> keep_second, raises;
  static constexpr bool kHasSecond = has_second, kCounts = counted;

  void compute(unsigned worker) {
    switch (reset) {  // a loop for each
      case Subtract: return advance<Subtract>(worker);
      case Zero: return advance<Zero>(worker);
      default: return advance<None>(worker);
    }
  }

 private:
  template <unsigned char kReset>
  void advance(unsigned worker) {
    const unsigned before = *block * num_steps;
    forEachOwnPair(batch, neurons, worker, [&](unsigned b, unsigned j) {
      NeuronRun run(*this, before, b, j);
      const unsigned first = b * num_steps, inside = stepsInside(lengths[b], before, num_steps);
      const auto step = [&](unsigned t) {
        run.advance(Pair::load(&current[(first + t) * neurons + j]), kReset, first + t);
      };
      unsigned t = 0;
      for (; t + 2 <= inside; t += 2) {  // two a turn
        step(t);
        step(t + 1);
      }
      if (t < inside) step(t++);
      for (; t < num_steps; ++t) run.freeze(first + t);
      run.storeCounts();
    });
  }
};

// The leaky readout.
class LeakyScan : public poplar::MultiVertex {
 public:
  In<float> current;            // [batch, num_steps, neurons], without the bias
  In<float> bias, decay, gain;  // [neurons]
  In<unsigned> lengths;         // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  InOut<float> membranes;              // [all steps + 1, batch, neurons], row 0 before the first step
  unsigned num_steps, batch, neurons;  // num_steps: of a block

  void compute(unsigned worker) {
    const unsigned before = *block * num_steps;
    forEachOwnPair(batch, neurons, worker, [&](unsigned b, unsigned j) {
      const auto of = [&](const In<float>& constants) { return Pair::load(&constants[j]); };
      const auto own_bias = of(bias), own_decay = of(decay), own_gain = of(gain);
      const unsigned inside = stepsInside(lengths[b], before, num_steps);
      const unsigned width = batch * neurons;
      const float* sums = &current[b * num_steps * neurons + j];
      float* at = &membranes[(before * batch + b) * neurons + j];
      auto v = Pair::load(at);
      const auto advance = [&](unsigned k) {
        v = own_decay * v + own_gain * (Pair::load(sums + k * neurons) + own_bias);
        Pair::store(at + (k + 1) * width, v);
      };
      unsigned t = 0;
      for (; t + 4 <= inside; t += 4, sums += 4 * neurons, at += 4 * width) {  // four a turn
        for (unsigned k = 0; k < 4; ++k) advance(k);
      }
      for (; t < inside; ++t, sums += neurons, at += width) advance(0);
      for (; t < num_steps; ++t) Pair::store(at += width, v);
    });
  }
};

using namespace cycles;

template <bool has_second, bool counted>
std::uint64_t workerCycles(const LifScan<has_second, counted>& vertex, unsigned worker) {
  Slots number = kRunNumber + (counted ? kCountsOfRun : 0), second = 0, behind = kFrozenStep;
  if constexpr (has_second) {
    number += kRunSecond;
    second = advanceSecond(vertex.raises);
    behind += kFreezeSecond;
  }
  const Slots one = advance(vertex.reset, counted) + second, two = advanceTwo(vertex.reset, counted) + 2 * second;
  return entry((has_second ? 21 : 17) + (counted ? 1 : 0), false) + ownPairs(vertex, worker, [&](unsigned b, unsigned) {
           const Slots inside = stepsOf(vertex, b);
           return number + inside / 2 * two + inside % 2 * one + (vertex.num_steps - inside) * behind;
         });
}

std::uint64_t workerCycles(const LeakyScan& vertex, unsigned worker) {
  return entry(10, false) + ownPairs(vertex, worker, [&](unsigned b, unsigned) {
           const Slots inside = stepsOf(vertex, b);
           return kReadoutNumber + inside / 4 * kReadoutSteps + inside % 4 * kReadoutStep +
                  (vertex.num_steps - inside) * kReadoutFrozen;
         });
}

SNNJAX_INSTANCES_OF_CHOICES(LifScan, false)
SNNJAX_INSTANCES_OF_CHOICES(LifScan, true)

}  // namespace snnjax
