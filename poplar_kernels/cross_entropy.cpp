// The cross-entropy of a readout over time, with its gradient: snnjax.losses.cross_entropy_sum and _max, and the
// mean.
#include "conventions.hpp"
#include "fields.hpp"
#include "numbers.hpp"
#include "workers.hpp"

namespace snnjax {

// loss[b] = -log softmax(z[b])[label[b]] / batch, z[b, c] the pooled outputs of the steps before lengths[b]. Workers
// share samples. A label out of range makes its loss and gradient NaN, as in snnjax.losses.
class CrossEntropy : public poplar::MultiVertex {
 public:
  In<float> outputs;     // [num_steps, rows, classes]
  In<unsigned> labels;   // [rows]
  In<unsigned> lengths;  // [rows], steps of each sequence
  Out<float> g_output;   // [num_steps, rows, classes], 0 past the end
  Out<float> loss;       // [rows], this sample's part of the mean over the batch
  unsigned num_steps, rows, classes;
  unsigned batch;      // samples of all tiles
  unsigned char over;  // enum Pooling

  bool compute(unsigned worker) {
    for (unsigned b = worker; b < rows; b += numWorkers()) {
      const unsigned steps = smaller(lengths[b], num_steps);
      float total = 0.0f, at_label = __builtin_nanf("");
      const float largest = largestLogit(b, steps);
      for (unsigned c = 0; c < classes; ++c) {
        const float z = pooled(b, c, steps) - largest;
        total += exponential(z);
        if (c == labels[b]) at_label = z;
      }
      loss[b] = (std::log(total) - at_label) / static_cast<float>(batch);
      for (unsigned c = 0; c < classes; ++c) spread(b, c, steps, largest, total);
    }
    return true;
  }

 private:
  unsigned at(unsigned t, unsigned b, unsigned c) const { return (t * rows + b) * classes + c; }

  float pooled(unsigned b, unsigned c, unsigned steps) const {
    float sum = 0.0f, largest = -__builtin_inff();
    for (unsigned t = 0; t < steps; ++t) {
      const float output = outputs[at(t, b, c)];
      sum += output;
      largest = output > largest ? output : largest;
    }
    if (over == MaxOverTime) return steps > 0 ? largest : 0.0f;
    return over == MeanOverTime ? sum / static_cast<float>(larger(steps, 1)) : sum;
  }

  float largestLogit(unsigned b, unsigned steps) const {
    float largest = -__builtin_inff();
    for (unsigned c = 0; c < classes; ++c) {
      const float z = pooled(b, c, steps);
      largest = z > largest ? z : largest;
    }
    return largest;
  }

  // The gradient of class c in every step: that of its logit, shared equally among the steps that reach the maximum.
  void spread(unsigned b, unsigned c, unsigned steps, float largest, float total) {
    const float z = pooled(b, c, steps);
    const float target = labels[b] >= classes ? __builtin_nanf("") : c == labels[b] ? 1.0f : 0.0f;
    float g = (exponential(z - largest) / total - target) / static_cast<float>(batch);
    if (over == MeanOverTime) g /= static_cast<float>(larger(steps, 1));
    if (over == MaxOverTime) {
      float ties = 0.0f;
      for (unsigned t = 0; t < steps; ++t) ties += outputs[at(t, b, c)] == z ? 1.0f : 0.0f;
      g /= ties > 0.0f ? ties : 1.0f;
    }
    for (unsigned t = 0; t < num_steps; ++t) {
      const bool takes = t < steps && (over != MaxOverTime || outputs[at(t, b, c)] == z);
      g_output[at(t, b, c)] = takes ? g : 0.0f;
    }
  }
};

}  // namespace snnjax
