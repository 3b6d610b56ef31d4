#include "readout_backward.hpp"

#include <algorithm>
#include <vector>

namespace snnjax {
namespace {

// One sample backwards through time; adds its sums to those of its membranes and of its decay, [outputs] each.
void runSample(ReadoutBackward& pass, Index sample, double* sum_g_v, double* sum_decay) {
  const Index outputs = pass.layer.neurons(), batch = pass.extent.batch;
  const auto size = static_cast<std::size_t>(outputs);
  std::vector<float> g(size), g_now(size), before(size);
  const float* decay = pass.layer.constants.from(0).decay;
  pass.g_last_v.read(sample * outputs, outputs, g.data());
  for (Index step = pass.extent.steps; step-- > 0;) {
    const Index row = step * batch + sample;
    pass.g_output.read(row * outputs, outputs, g_now.data());
    for (std::size_t n = 0; n < size; ++n) g[n] += g_now[n];
    float* to = pass.g_v.rows().row(row);
    if (step >= pass.extent.ends[sample]) {  // the frozen membrane is that of the last step
      std::fill_n(to, outputs, 0.0F);
      continue;
    }
    std::copy(g.begin(), g.end(), to);
    const Numbers& from = step == 0 ? pass.first_v : pass.output;
    from.read((step == 0 ? sample : row - batch) * outputs, outputs, before.data());
    for (std::size_t n = 0; n < size; ++n) {
      sum_g_v[n] += double{g[n]};
      sum_decay[n] += double{g[n]} * double{before[n]};
      g[n] *= decay[n];
    }
  }
  pass.g_first_v.write(sample * outputs, outputs, g.data());
}

}  // namespace

void runReadoutBackward(ReadoutBackward& pass, const Threads& threads) {
  const Index outputs = pass.layer.neurons(), batch = pass.extent.batch;
  pass.g_v = KeptRows(pass.extent.rows(), outputs);
  Buffer<double> sums(2 * batch * outputs);  // of each sample, added up in their order below
  threads.run(batch, [&](Index sample, Index) {
    double* own = sums.data() + 2 * sample * outputs;
    runSample(pass, sample, own, own + outputs);
  });
  Buffer<double> sum_gain(outputs);
  const Weights& weights = pass.layer.weights;
  const TransposedSpikes inputs(pass.inputs, chunksOf(pass.extent), TransposedSpikes::Layout::kInPlace, threads);
  computeWeightGradient({inputs, pass.g_v.asConst(), weights, pass.g_weights, pass.layer.constants.outerGain(),
                         pass.g_gain ? sum_gain.data() : nullptr, nullptr},
                        threads);
  for (Index n = 0; n < outputs; ++n) {
    double g_v = 0.0, decay = 0.0;
    for (Index sample = 0; sample < batch; ++sample) {
      g_v += sums[2 * sample * outputs + n];
      decay += sums[(2 * sample + 1) * outputs + n];
    }
    const float* bias = pass.layer.constants.bias();
    const float of_bias = static_cast<float>(double{pass.layer.constants.outerGain()[n]} * g_v);
    const float of_decay = static_cast<float>(decay);
    const float of_gain = static_cast<float>(sum_gain[n] + (bias == nullptr ? 0.0 : double{bias[n]} * g_v));
    if (pass.g_bias) pass.g_bias.write(n, 1, &of_bias);
    if (pass.g_decay) pass.g_decay.write(n, 1, &of_decay);
    if (pass.g_gain) pass.g_gain.write(n, 1, &of_gain);
  }
}

}  // namespace snnjax
