#include "lif_layer.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace snnjax {

namespace {

constexpr Index kWord = 64;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

// A row of bytes is the beginning of a row of words, on machines that store the lowest byte first.
static_assert(std::endian::native == std::endian::little);

void writeBits(const Bits& from, Index rows, Index neurons, std::uint8_t* to) {
  if (static_cast<const void*>(from.row(0)) == to) return;
  const Index bytes = (neurons + 7) / 8;
  for (Index r = 0; r < rows; ++r) std::memcpy(to + r * bytes, from.row(r), static_cast<std::size_t>(bytes));
}

GivenBits::GivenBits(const std::uint8_t* bytes, Index rows, Index neurons) : words_((neurons + 63) / 64) {
  if (areWords(bytes, neurons)) {
    first_ = reinterpret_cast<const std::uint64_t*>(bytes);
    return;
  }
  copy_ = Bits(rows, neurons);
  first_ = copy_.row(0);
  const Index stride = (neurons + 7) / 8, rest = neurons % 64;
  for (Index r = 0; r < rows; ++r) {
    std::uint64_t* row = copy_.row(r);
    if (rest != 0) row[words_ - 1] = 0;
    std::memcpy(row, bytes + r * stride, static_cast<std::size_t>(stride));
    // Bits behind the last neuron name none: they are dropped, whoever wrote them.
    if (rest != 0) row[words_ - 1] &= (std::uint64_t{1} << rest) - 1;
  }
}

LayerConstants::LayerConstants(Index neurons, const GivenConstants& given)
    : padded_(roundUp(std::max<Index>(neurons, 1), kWord)),
      has_bias_(given.bias),
      memory_((kCouplings + (given.couplings[0].numbers ? static_cast<Index>(kNumCouplings) : 0)) * padded_) {
  fill(kDecay, neurons, given.decay, 0.0F);
  fill(kGain, neurons, given.gain, 0.0F);
  fill(kThreshold, neurons, given.threshold, kInfinity);
  fill(kSecondThreshold, neurons, given.second_threshold, kInfinity);
  fill(kBias, neurons, {given.bias, neurons}, 0.0F);
  std::fill_n(row(kOnes), padded_, 1.0F);
  for (std::size_t i = 0; given.couplings[0].numbers && i < kNumCouplings; ++i) {
    has_coupling_[i] = static_cast<bool>(given.couplings[i].numbers);
    fill(kCouplings + static_cast<Index>(i), neurons, given.couplings[i], 0.0F);
  }
}

void LayerConstants::fill(Index index, Index neurons, const ConstantNumbers& given, float padding) {
  std::fill_n(row(index), padded_, padding);
  if (!given.numbers || neurons == 0) return;
  if (given.count == 1) {
    given.numbers.read(0, 1, row(index));
    std::fill_n(row(index), neurons, row(index)[0]);
  } else {
    given.numbers.read(0, neurons, row(index));
  }
}

NeuronConstants LayerConstants::from(Index column) const {
  const auto coupling = [&](Coupling constant) {
    return has(constant) ? row(kCouplings + static_cast<Index>(constant)) + column : nullptr;
  };
  return {
      .decay = row(kDecay) + column,
      .gain = row(kGain) + column,
      .threshold = row(kThreshold) + column,
      .second_threshold = row(kSecondThreshold) + column,
      .w_decay = coupling(Coupling::kWDecay),
      .w_membrane = coupling(Coupling::kWMembrane),
      .w_gain = coupling(Coupling::kWGain),
      .w_jump = coupling(Coupling::kWJump),
      .v_coupling = coupling(Coupling::kVCoupling),
      .threshold_coupling = coupling(Coupling::kThresholdCoupling),
  };
}

Borrowed<float> borrowRows(Index rows, Index neurons, Index stride) {
  Borrowed<float> memory(rows * stride);
  for (Index r = 0; stride > neurons && r < rows; ++r) {
    std::fill(memory.data() + r * stride + neurons, memory.data() + (r + 1) * stride, 0.0F);
  }
  return memory;
}

void finishWeightGradient(const PackedWeights& sums, Index first, Index columns, const WeightGradient& of) {
  std::vector<float> weights(static_cast<std::size_t>(columns)), g(weights.size());
  for (Index k = 0; k < of.weights.inputs; ++k) {
    const float* sum = sums.rows().row(k);
    const Index place = k * of.weights.outputs + first;
    if (of.sum_gain != nullptr) {
      of.weights.numbers.read(place, columns, weights.data());
      for (std::size_t c = 0; c < weights.size(); ++c) {
        if (sum[c] != 0.0F) of.sum_gain[first + static_cast<Index>(c)] += double{weights[c]} * double{sum[c]};
      }
    }
    if (!of.g_weights.numbers) continue;
    for (std::size_t c = 0; c < g.size(); ++c) g[c] = of.gain[first + static_cast<Index>(c)] * sum[c];
    of.g_weights.numbers.write(place, columns, g.data());
  }
}

// Of so many rows that a tile of 64 columns of their cotangents takes half a megabyte of the second-level cache.
Chunking chunksOf(const Extent& extent) {
  constexpr Index kRows = 2048;
  return {extent, kBackwardBlock, std::max<Index>(kRows / kBackwardBlock, 1)};
}

void computeWeightGradient(const WeightGradient& of, const Threads& threads) {
  if (!of.g_weights.numbers && of.sum_gain == nullptr) return;
  const Index neurons = of.weights.outputs, tile = columnsOfTile(neurons, of.weights.inputs);
  std::vector<PackedWeights> scratch(static_cast<std::size_t>(threads.count()));
  threads.run((neurons + tile - 1) / tile, [&](Index task, Index worker) {
    const Index first = task * tile, columns = std::min(tile, neurons - first);
    const Index padded = roundUp(columns, kernels().lanes);
    PackedWeights& sums = scratch[static_cast<std::size_t>(worker)];
    sums.resize(of.weights.inputs, padded);
    sums.clear(of.weights.inputs);
    const Chunking& chunking = of.spikes.chunking();
    for (Index chunk = 0; chunk < chunking.count(); ++chunk) {
      const float* g_v = of.g_v.row(chunking.at(chunk).firstRow(chunking.extent)) + first;
      of.spikes.accumulate(chunk, sums.rows(), padded, {g_v, of.g_v.stride});
    }
    finishWeightGradient(sums, first, columns, of);
  });
}

}  // namespace snnjax
