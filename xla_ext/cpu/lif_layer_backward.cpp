#include <algorithm>

#include "patch_backward.hpp"

namespace snnjax {
namespace {

std::vector<Patch> patchesOf(const LayerBackward& pass, const Threads& threads) {
  const Index neurons = pass.layer.neurons(), batch = pass.extent.batch;
  std::vector<Patch> patches;
  if (pass.layer.isRecurrent()) {
    const Index share = std::max<Index>((batch + threads.count() - 1) / threads.count(), 1);
    const Index samples = roundUp(share, kBackwardBlock);
    for (Index sample = 0; neurons > 0 && sample < batch; sample += samples) {
      patches.push_back({0, neurons, sample, std::min(samples, batch - sample)});
    }
    return patches;
  }
  // A weight gradient is a sum over all samples: one thread has all of them.
  const Index above = pass.above.g_v.data == nullptr ? 0 : pass.above.weights.outputs;
  const Index tile = columnsOfTile(neurons, pass.layer.weights.inputs + above);
  for (Index column = 0; column < neurons; column += tile) {
    patches.push_back({column, std::min(tile, neurons - column), 0, batch});
  }
  return patches;
}

// The gradients of the weights of a recurrent layer, whose cotangents are complete only now.
void finishRecurrent(const LayerBackward& pass, const TransposedSpikes& inputs, double* sum_gain,
                     const Threads& threads) {
  const Layer& layer = pass.layer;
  const Index batch = pass.extent.batch, rows = pass.extent.rows(), neurons = layer.neurons();
  computeWeightGradient(weightGradientOf(pass, inputs, sum_gain), threads);
  if (!pass.g_recurrent && !sumsGain(pass)) return;
  // A step's recurrent currents come from the spikes of the step before: of the first step from the state.
  const DenseSource::Type type =
      pass.first_spikes.is_bfloat16 ? DenseSource::Type::kBfloat16 : DenseSource::Type::kFloat32;
  const DenseSource first(pass.first_spikes.data, type, neurons);
  const BitSource then(pass.spikes.row(0), neurons);
  const ChainedSource source(first, batch, then);
  const SpikeLists spikes(source, rows, neurons, batch, pass.extent.ends, threads);
  const TransposedSpikes transposed(spikes, chunksOf(pass.extent), TransposedSpikes::Layout::kInPlace, threads);
  computeWeightGradient({transposed,
                         {pass.g_v.data(), pass.g_v_stride},
                         layer.recurrent,
                         {pass.g_recurrent, neurons, neurons},
                         layer.constants.outerGain(),
                         sumsGain(pass) ? sum_gain : nullptr},
                        threads);
}

void writeSums(const LayerBackward& pass, const Sums& sums, const double* sum_gain) {
  const float* gain = pass.layer.constants.outerGain();
  const float* bias = pass.layer.constants.bias();
  const auto write = [&](const Numbers& to, Index neuron, double value) {
    const auto rounded = static_cast<float>(value);
    if (to) to.write(neuron, 1, &rounded);
  };
  for (Index neuron = 0; neuron < pass.layer.neurons(); ++neuron) {
    const double g_v = sums.total(Sums::kCurrent, neuron);
    write(pass.g_bias, neuron, double{gain[neuron]} * g_v);
    for (Index i = 0; i < kNumSummed; ++i) {
      const Numbers& to = pass.g_constants[static_cast<std::size_t>(i)];
      // A current is the sum of products and the bias: so is the gradient of the gain.
      if (i == static_cast<Index>(Summed::kGain) && sumsGain(pass)) {
        write(to, neuron, sum_gain[neuron] + (bias == nullptr ? 0.0 : double{bias[neuron]} * g_v));
      } else {
        write(to, neuron, sums.total(i, neuron));
      }
    }
  }
}

}  // namespace

void runBackward(LayerBackward& pass, const Threads& threads) {
  const Index neurons = pass.layer.neurons();
  if (pass.keeps_g_v || pass.layer.isRecurrent()) {
    pass.g_v_stride = strideOf(neurons);
    pass.g_v = borrowRows(pass.extent.rows(), neurons, pass.g_v_stride);
  }
  const Sums sums(pass.extent.batch, neurons);
  const Buffer<double> sum_gain(neurons);
  const bool needs_weights = pass.g_weights || sumsGain(pass);
  Chunking chunking = chunksOf(pass.extent);
  if (!needs_weights) chunking.extent.batch = 0;
  const auto layout = pass.layer.isRecurrent() ? TransposedSpikes::Layout::kInPlace : TransposedSpikes::Layout::kPacked;
  const TransposedSpikes inputs(pass.inputs, chunking, layout, threads);
  const std::vector<Patch> patches = patchesOf(pass, threads);
  std::vector<PatchScratch> scratch(static_cast<std::size_t>(threads.count()));
  threads.run(static_cast<Index>(patches.size()), [&](Index task, Index worker) {
    PatchBackward(pass, inputs, patches[static_cast<std::size_t>(task)], scratch[static_cast<std::size_t>(worker)],
                  sums, sum_gain.data())
        .run();
  });
  if (pass.layer.isRecurrent()) finishRecurrent(pass, inputs, sum_gain.data(), threads);
  writeSums(pass, sums, sum_gain.data());
}

}  // namespace snnjax
