// lif_network without recurrent layers, forward: neurons over a block of steps at once, from currents of all of them.
// Workers share the numbers of all samples, in pairs; a number's time passes within a worker.
#include "../fields.hpp"
#include "neuron_rows.hpp"

namespace snnjax {

template <bool has_second>
class LifScan : public poplar::MultiVertex {
 public:
  In<float> current;     // [batch, num_steps, neurons], without the bias
  In<float> bias;        // [neurons]
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<float> threshold;   // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  // [all steps + 1, batch, neurons], row 0 before the first step; [batch, neurons] if no history is kept
  InOut<float> membranes;
  InOut<float> counts;  // [batch, neurons], true spikes so far
  Out<float> v;         // [batch, num_steps, neurons], membranes for the selection; -inf past the end of a sequence
  unsigned num_steps, batch, neurons;  // num_steps: of a block
  unsigned char reset;                 // enum Reset
  bool keep_history;
  // Of neurons with a second state.
  If<has_second, In<float>> second;  // [kSecondConstants, neurons], neuron.hpp
  If<has_second, InOut<float>> w;    // as the membranes, but for `keep_second` in place of `keep_history`
  If<has_second, Out<float>> raise;  // as v, threshold_coupling * w; nothing unless it `raises` thresholds
  If<has_second, bool> keep_second, raises;
  static constexpr bool kHasSecond = has_second;

  bool compute(unsigned worker) {
    const unsigned before = *block * num_steps;
    forEachOwnNumber(batch, neurons, worker, [&](unsigned b, unsigned j, auto numbers) {
      for (unsigned t = 0; t < num_steps; ++t) {
        const unsigned row = b * num_steps + t;
        const NeuronRows<LifScan> own(*this, before + t, b, row);
        if (before + t < lengths[b]) {
          own.advance(j, numbers, numbers.load(&current[row * neurons + j]));
        } else {
          own.freeze(j, numbers);
        }
      }
    });
    return true;
  }
};

// The leaky readout.
class LeakyScan : public poplar::MultiVertex {
 public:
  In<float> current;     // [batch, num_steps, neurons], without the bias
  In<float> bias;        // [neurons]
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> block;
  InOut<float> membranes;              // [all steps + 1, batch, neurons], row 0 before the first step
  unsigned num_steps, batch, neurons;  // num_steps: of a block

  bool compute(unsigned worker) {
    const unsigned before = *block * num_steps;
    forEachOwnNumber(batch, neurons, worker, [&](unsigned b, unsigned j, auto numbers) {
      auto v = numbers.load(&membranes[(before * batch + b) * neurons + j]);
      for (unsigned t = 0; t < num_steps; ++t) {
        if (before + t < lengths[b]) {
          const auto sum = numbers.load(&current[(b * num_steps + t) * neurons + j]) + numbers.load(&bias[j]);
          v = numbers.load(&decay[j]) * v + numbers.load(&gain[j]) * sum;
        }
        numbers.store(&membranes[((before + t + 1) * batch + b) * neurons + j], v);
      }
    });
    return true;
  }
};

template class LifScan<false>;
template class LifScan<true>;

}  // namespace snnjax
