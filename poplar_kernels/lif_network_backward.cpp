// lif_network, backward: back-propagation of one step through the neurons of a tile.
//
// In an iteration a layer's own time is t = num_steps - 1 - (iteration - delay); its vertices do nothing before its
// last step and after its first. One compute set computes the membrane gradient and the partial dot products for the
// layer below; the next adds to the weight gradient while the partial products are summed elsewhere.
#include "fields.hpp"
#include "listed_rows.hpp"
#include "membrane_gradient.hpp"

namespace snnjax {

// Membrane gradient of own neurons, and its partial dot products with the rows that the list below names.
template <class W, class Id, bool has_second>
class LifBackward : public poplar::MultiVertex {
 public:
  In<Id> lists;                // [batch, stride], records of the layer below at time t (lists.hpp)
  In<W> weights;               // [num_inputs + 1, neurons], last row zeros
  In<float> g_spikes;          // [batch, neurons], gradient of own listed spikes, 0 where not listed
  In<float> g_counts;          // [batch, neurons], gradient of the true spike counts
  In<float> decay;             // [neurons]
  In<float> gain;              // [neurons]
  In<float> threshold;         // [neurons]
  In<float> second_threshold;  // [neurons]
  In<unsigned> lengths;        // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  In<float> membranes;   // [num_steps + 1, batch, neurons], row t + 1 after step t
  InOut<float> g_v;      // [batch, neurons], gradient of the membrane after its reset, of the step after
  InOut<float> g_last;   // [batch, neurons], gradient of the last membrane; zeroed once added
  Out<float> g_current;  // [batch, neurons], gradient of the current: gain * g_v, 0 past the end
  InOut<float> g_bias;   // [batch, neurons], sum of g_current over time
  Out<float> dots;       // [batch, capacity], <weights[id, own], g_current> of each listed id, 0 past them
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;
  unsigned char reset, surrogate;  // enum Reset, enum Surrogate
  bool detach_reset;
  float slope;
  // Of neurons with a second state.
  If<has_second, In<float>> second;       // [kSecondConstants, neurons], neuron.hpp
  If<has_second, In<float>> w;            // as the membranes; nothing unless it `raises` thresholds
  If<has_second, InOut<float>> g_w;       // [batch, neurons], gradient of the second state of the step after
  If<has_second, InOut<float>> g_last_w;  // [batch, neurons], gradient of the last one; zeroed once added
  If<has_second, bool> raises;
  static constexpr bool kHasSecond = has_second;

  bool compute(unsigned worker) {
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    const auto inside = [&](unsigned t, unsigned b) {
      membraneGradients(*this, t, b);
      writeDots(rows, List<Id>{&lists[b * stride], capacity}, &g_current[b * neurons], &dots[b * capacity]);
    };
    const auto behind = [&](unsigned b) { fillZeros(&dots[0], b * capacity, (b + 1) * capacity); };
    forEachSampleBackward(*this, worker, inside, behind);
    return true;
  }
};

// The membrane gradient alone: for the first layer, whose inputs need no gradient.
template <bool has_second>
class LifMembraneGradient : public poplar::MultiVertex {
 public:
  In<float> g_spikes;          // [batch, neurons], gradient of own listed spikes, 0 where not listed
  In<float> g_counts;          // [batch, neurons], gradient of the true spike counts
  In<float> decay;             // [neurons]
  In<float> gain;              // [neurons]
  In<float> threshold;         // [neurons]
  In<float> second_threshold;  // [neurons]
  In<unsigned> lengths;        // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  In<float> membranes;   // [num_steps + 1, batch, neurons], row t + 1 after step t
  InOut<float> g_v;      // [batch, neurons], gradient of the membrane after its reset, of the step after
  InOut<float> g_last;   // [batch, neurons], gradient of the last membrane; zeroed once added
  Out<float> g_current;  // [batch, neurons], gradient of the current: gain * g_v, 0 past the end
  InOut<float> g_bias;   // [batch, neurons], sum of g_current over time
  unsigned num_steps, delay, batch, neurons;
  unsigned char reset, surrogate;  // enum Reset, enum Surrogate
  bool detach_reset;
  float slope;
  // Of neurons with a second state.
  If<has_second, In<float>> second;       // [kSecondConstants, neurons], neuron.hpp
  If<has_second, In<float>> w;            // as the membranes; nothing unless it `raises` thresholds
  If<has_second, InOut<float>> g_w;       // [batch, neurons], gradient of the second state of the step after
  If<has_second, InOut<float>> g_last_w;  // [batch, neurons], gradient of the last one; zeroed once added
  If<has_second, bool> raises;
  static constexpr bool kHasSecond = has_second;

  bool compute(unsigned worker) {
    const auto inside = [&](unsigned t, unsigned b) { membraneGradients(*this, t, b); };
    forEachSampleBackward(*this, worker, inside, [](unsigned) {});
    return true;
  }
};

// The leaky readout: g_v = g_output + decay * g_v of the step after, and the partial dot products.
template <class W, class Id>
class LeakyBackward : public poplar::MultiVertex {
 public:
  In<Id> lists;          // [batch, stride], records of the last layer at time t
  In<W> weights;         // [num_inputs + 1, neurons], last row zeros
  In<float> g_output;    // [num_steps, batch, neurons], gradient of the readout's membranes
  In<float> decay;       // [neurons]
  In<float> gain;        // [neurons]
  In<unsigned> lengths;  // [batch], steps of each sequence
  poplar::Input<unsigned> iteration;
  InOut<float> g_v;      // [batch, neurons], decay * gradient of the membrane of the step after
  Out<float> g_current;  // [batch, neurons], gain * g_v, 0 past the end
  InOut<float> g_bias;   // [batch, neurons], sum of g_current over time
  Out<float> dots;       // [batch, capacity], <weights[id, own], g_current> of each listed id, 0 past them
  unsigned num_steps, delay, batch, stride, capacity, num_inputs, neurons;

  bool compute(unsigned worker) {
    const unsigned t = num_steps - 1 - (*iteration - delay);
    if (t >= num_steps) return true;
    const ListedRows<const W> rows = {&weights[0], num_inputs, neurons};
    const float* const g_now = &g_output[t * batch * neurons];
    for (unsigned b = worker; b < batch; b += numWorkers()) {
      const bool inside = t < lengths[b];
      forEachNumber(neurons, [&](unsigned j, auto numbers) {
        const unsigned i = b * neurons + j;
        const auto g = numbers.load(&g_v[i]) + numbers.load(g_now + i);  // padded outputs repeat the last membrane
        const auto current = inside ? numbers.load(&gain[j]) * g : numbers.fill(0.0f);
        numbers.store(&g_v[i], inside ? numbers.load(&decay[j]) * g : g);
        numbers.store(&g_current[i], current);
        numbers.store(&g_bias[i], numbers.load(&g_bias[i]) + current);
      });
      if (inside) {
        writeDots(rows, List<Id>{&lists[b * stride], capacity}, &g_current[b * neurons], &dots[b * capacity]);
      } else {
        fillZeros(&dots[0], b * capacity, (b + 1) * capacity);
      }
    }
    return true;
  }
};

template class LifBackward<float, unsigned short, false>;
template class LifBackward<float, unsigned short, true>;
template class LifBackward<float, int, false>;
template class LifBackward<float, int, true>;
template class LifBackward<half, unsigned short, false>;
template class LifBackward<half, unsigned short, true>;
template class LifBackward<half, int, false>;
template class LifBackward<half, int, true>;
template class LifMembraneGradient<false>;
template class LifMembraneGradient<true>;
template class LeakyBackward<float, unsigned short>;
template class LeakyBackward<float, int>;
template class LeakyBackward<half, unsigned short>;
template class LeakyBackward<half, int>;

}  // namespace snnjax
