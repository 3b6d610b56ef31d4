#include <algorithm>

#include "lif_layer.hpp"

namespace snnjax {
namespace {

// Up to this share of listed neurons, their cotangents are computed one by one; above it a dense product of all of
// them is faster: measured by tests/benchmarks, see xla_ext/README.md.
constexpr double kDotShare = 0.2;

struct Patch {
  Index first_column, columns, first_sample, samples;
};

// What a thread needs for a patch, kept for its next one.
struct Scratch {
  PackedWeights above, above_rows, recurrent, sums, g_v;
};

// Sums over all steps of each block of samples, in float64. Blocks are added in their order at last, so the result does
// not depend on which thread had which samples.
class Sums {
 public:
  enum Kind { kMembrane, kDecay, kThreshold, kKinds };

  Sums(Index batch, Index neurons)
      : blocks_((batch + kBlockRows - 1) / kBlockRows), neurons_(neurons), memory_(blocks_ * kKinds * neurons) {}

  double* of(Index block, Kind kind) const { return memory_.data() + (block * kKinds + kind) * neurons_; }

  double total(Kind kind, Index neuron) const {
    double sum = 0.0;
    for (Index block = 0; block < blocks_; ++block) sum += of(block, kind)[neuron];
    return sum;
  }

 private:
  Index blocks_, neurons_;
  Buffer<double> memory_;
};

Rows<const float> asConst(Rows<float> rows) { return {rows.data, rows.stride}; }

WeightGradient weightGradientOf(const LayerBackward& pass, const TransposedSpikes& inputs, double* sum_gain) {
  const Weights& weights = pass.layer.weights;
  return {inputs,
          {pass.g_v.data(), pass.g_v_stride},
          weights,
          {pass.g_weights, weights.inputs, weights.outputs},
          pass.layer.constants.gain(),
          pass.g_gain ? sum_gain : nullptr};
}

class PatchRun {
 public:
  PatchRun(LayerBackward& pass, const TransposedSpikes& inputs, const Patch& patch, Scratch& scratch, const Sums& sums,
           double* sum_gain)
      : pass_(pass),
        inputs_(inputs),
        layer_(pass.layer),
        patch_(patch),
        scratch_(scratch),
        sums_(sums),
        sum_gain_(sum_gain),
        width_(roundUp(patch.columns, kernels().lanes)),
        chunk_steps_(inputs.chunking().steps),
        g_s_(kBlockRows * width_),
        g_u_(kBlockRows * width_),
        carried_(kBlockRows * width_),
        g_counts_(pass.g_counts ? kBlockRows * width_ : 0),
        g_last_(kBlockRows * width_),
        v_(2 * kBlockRows * width_),
        step_sums_(2 * width_) {}

  void run() {
    pack();
    for (Index first = 0; first < patch_.samples; first += kBlockRows) {
      first_sample_ = patch_.first_sample + first;
      samples_ = std::min(kBlockRows, patch_.samples - first);
      runBlock();
    }
    if (sumsWeights()) {
      finishWeightGradient(scratch_.sums, patch_.first_column, patch_.columns,
                           weightGradientOf(pass_, inputs_, sum_gain_));
    }
  }

 private:
  Index neurons() const { return layer_.neurons(); }
  Index firstRow(Index step) const { return step * pass_.extent.batch + first_sample_; }
  Index place(Index r) const { return (first_sample_ + r) * neurons() + patch_.first_column; }
  Rows<float> rowsOf(const Buffer<float>& memory) const { return {memory.data(), width_}; }
  // The weight gradient of a recurrent layer waits for the samples of all threads.
  bool sumsWeights() const { return !layer_.isRecurrent() && (pass_.g_weights || pass_.g_gain); }

  // The cotangents of the membranes of a step: those of a chunk of steps lie behind one another.
  Rows<float> g_v(Index step) const {
    const Index place = sumsWeights() ? std::max<Index>(step, 0) % chunk_steps_ : 0;
    return {scratch_.g_v.rows().row(place * samples_), width_};
  }

  void runBlock() {
    begin();
    for (Index step = pass_.extent.steps; step-- > 0;) {
      gather(step);
      advance(step);
      if (layer_.isRecurrent()) sendBack(step);
      if (!sumsWeights() || step % chunk_steps_ != 0) continue;
      inputs_.accumulate(inputs_.chunking().indexOf(step, first_sample_), scratch_.sums.rows(), width_,
                         asConst(g_v(step)));
    }
    end();
  }

  void pack() {
    const Above& above = pass_.above;
    scratch_.g_v.resize((sumsWeights() ? chunk_steps_ : 1) * kBlockRows, width_);
    if (above.g_v.data != nullptr) {
      scratch_.above.resize(above.weights.outputs, width_);
      packTransposed(above.weights, patch_.first_column, patch_.columns, above.gain, scratch_.above);
      if (pass_.listed) packAboveRows();
    }
    if (layer_.isRecurrent()) {
      scratch_.recurrent.resize(neurons(), width_);
      packTransposed(layer_.recurrent, 0, neurons(), layer_.constants.gain(), scratch_.recurrent);
    }
    if (sumsWeights()) {
      scratch_.sums.resize(layer_.weights.inputs, width_);
      scratch_.sums.clear(layer_.weights.inputs);
    }
  }

  // The rows of the weights above that belong to the patch, for products with single neurons.
  void packAboveRows() {
    const Above& above = pass_.above;
    const Index outputs = above.weights.outputs;
    scratch_.above_rows.resize(patch_.columns, outputs);
    for (Index k = 0; k < patch_.columns; ++k) {
      float* row = scratch_.above_rows.rows().row(k);
      above.weights.numbers.read((patch_.first_column + k) * outputs, outputs, row);
      for (Index n = 0; n < outputs; ++n) row[n] *= above.gain[n];
    }
  }

  // The cotangents of the state behind the last step.
  void begin() {
    std::fill_n(g_u_.data(), samples_ * width_, 0.0F);
    read(pass_.g_last_v, g_last_);
    if (pass_.g_counts) read(pass_.g_counts, g_counts_);
    if (layer_.isRecurrent()) read(pass_.g_last_spikes, carried_);
  }

  // The block of an array [batch, neurons].
  void read(const Numbers& from, const Buffer<float>& to) const {
    for (Index r = 0; r < samples_; ++r) from.read(place(r), patch_.columns, to.data() + r * width_);
  }

  // The cotangents of the listed spikes of a step.
  void gather(Index step) {
    const Above& above = pass_.above;
    const Rows<float> g_s = rowsOf(g_s_);
    if (above.g_v.data == nullptr) {
      std::fill_n(g_s.data, samples_ * width_, 0.0F);
    } else if (pass_.listed && isShort(firstRow(step))) {
      gatherListed(firstRow(step));
    } else {
      kernels().multiplyRows({above.g_v.row(firstRow(step)), above.g_v.stride}, samples_, above.weights.outputs,
                             asConst(scratch_.above.rows()), width_, {nullptr, 0}, g_s);
    }
    for (const Numbers& more : pass_.g_spikes) add(more, step);
    if (layer_.isRecurrent()) carry(step);
  }

  // Whether so few neurons of the block are listed that single products pay.
  bool isShort(Index row) const {
    Index listed = 0;
    const Index first = patch_.first_column / 64, words = (patch_.columns + 63) / 64;
    for (Index r = 0; r < samples_; ++r) listed += countBits(pass_.listed.row(row + r) + first, words);
    return static_cast<double>(listed) < kDotShare * static_cast<double>(samples_ * patch_.columns);
  }

  void gatherListed(Index row) {
    const Index first = patch_.first_column / 64, outputs = pass_.above.weights.outputs;
    ids_.resize(static_cast<std::size_t>(roundUp(patch_.columns, 64)) + kListSlack);
    dots_.resize(ids_.size());
    for (Index r = 0; r < samples_; ++r) {
      float* out = g_s_.data() + r * width_;
      std::fill_n(out, width_, 0.0F);
      const std::uint32_t count = kernels().listBits(pass_.listed.row(row + r) + first, patch_.columns, ids_.data());
      kernels().dotRows(ids_.data(), count, asConst(scratch_.above_rows.rows()), outputs,
                        pass_.above.g_v.row(row + r), dots_.data());
      for (std::uint32_t k = 0; k < count; ++k) out[ids_[k]] = dots_[k];
    }
  }

  void add(const Numbers& more, Index step) {
    std::vector<float> row(static_cast<std::size_t>(patch_.columns));
    for (Index r = 0; r < samples_; ++r) {
      more.read((firstRow(step) + r) * neurons() + patch_.first_column, patch_.columns, row.data());
      for (Index c = 0; c < patch_.columns; ++c) g_s_[r * width_ + c] += row[static_cast<std::size_t>(c)];
    }
  }

  // What the next step's recurrent currents send back: in the beginning, and behind the end of a sample, that of the
  // state, which `carried_` holds until the sample's last step has used it.
  void carry(Index step) {
    for (Index r = 0; r < samples_; ++r) {
      if (step >= pass_.extent.ends[first_sample_ + r]) continue;
      for (Index c = 0; c < width_; ++c) g_s_[r * width_ + c] += carried_[r * width_ + c];
    }
  }

  // The time step of the neurons, and the sums that go with it; step -1 is the reset of the state before the first step.
  void advance(Index step) {
    const Index word = patch_.first_column / 64, row = firstRow(step);
    const bool is_step = step >= 0, needs_before = is_step && pass_.g_decay;
    const auto own = [&](const Buffer<float>& memory) { return asConst(rowsOf(memory)); };
    std::fill_n(step_sums_.data(), 2 * width_, 0.0F);
    kernels().stepBackward({
        .rows = samples_,
        .columns = patch_.columns,
        .constants = layer_.constants.from(patch_.first_column),
        .reset = layer_.reset,
        .detach_reset = layer_.detach_reset,
        .surrogate = layer_.surrogate,
        .step = step,
        .ends = pass_.extent.ends + first_sample_,
        .g_spikes = own(g_s_),
        .listed = {is_step && pass_.listed ? pass_.listed.row(row) + word : nullptr, pass_.listed.words()},
        .g_counts = is_step && pass_.g_counts ? own(g_counts_) : Rows<const float>{nullptr, 0},
        .g_last = own(g_last_),
        .v = is_step ? membranes(pass_.record, row, 0) : membranes(pass_.first_v, first_sample_, 0),
        .v_before = !needs_before ? Rows<const float>{nullptr, 0}
                    : step > 0    ? membranes(pass_.record, row - pass_.extent.batch, 1)
                                  : membranes(pass_.first_v, first_sample_, 1),
        .ahead = ahead(step - 1),
        .g_u = rowsOf(g_u_),
        .g_v = g_v(step),
        .sum_decay = needs_before ? step_sums_.data() : nullptr,
        .sum_threshold = pass_.g_threshold ? step_sums_.data() + width_ : nullptr,
    });
    addStepSums(step);
    if (!is_step || pass_.g_v.data() == nullptr) return;
    for (Index r = 0; r < samples_; ++r) {
      float* to = pass_.g_v.data() + (row + r) * pass_.g_v_stride + patch_.first_column;
      std::copy_n(g_v(step).row(r), patch_.columns, to);
    }
  }

  // The membranes that the next call needs, to be fetched meanwhile.
  Rows<const float> ahead(Index step) const {
    if (pass_.record.is_bfloat16 || step < 0) return {nullptr, 0};
    return {pass_.record.float32() + firstRow(step) * neurons() + patch_.first_column, neurons()};
  }

  void addStepSums(Index step) {
    const Index block = first_sample_ / kBlockRows;
    const bool needs_g_v = step >= 0 && (pass_.g_bias || pass_.g_gain);
    for (Index c = 0; c < patch_.columns; ++c) {
      const Index neuron = patch_.first_column + c;
      if (pass_.g_decay) sums_.of(block, Sums::kDecay)[neuron] += double{step_sums_[c]};
      if (pass_.g_threshold) sums_.of(block, Sums::kThreshold)[neuron] += double{step_sums_[width_ + c]};
      for (Index r = 0; needs_g_v && r < samples_; ++r) {
        sums_.of(block, Sums::kMembrane)[neuron] += double{g_v(step).row(r)[c]};
      }
    }
  }

  // The block's membranes in the rows from `first` of an array [rows, neurons]; `half` of the scratch serves bfloat16.
  Rows<const float> membranes(const Numbers& from, Index first, Index half) {
    if (!from.is_bfloat16) return {from.float32() + first * neurons() + patch_.first_column, neurons()};
    float* out = v_.data() + half * kBlockRows * width_;
    for (Index r = 0; r < samples_; ++r) {
      from.read((first + r) * neurons() + patch_.first_column, patch_.columns, out + r * width_);
    }
    return {out, width_};
  }

  // Where a sample is still running, what it carries is now what this step's recurrent currents send back.
  void sendBack(Index step) {
    sent_.resize(static_cast<std::size_t>(kBlockRows * width_));
    kernels().multiplyRows(asConst(g_v(step)), samples_, neurons(), asConst(scratch_.recurrent.rows()), width_,
                           {nullptr, 0}, {sent_.data(), width_});
    for (Index r = 0; r < samples_; ++r) {
      if (step >= pass_.extent.ends[first_sample_ + r]) continue;
      std::copy_n(sent_.data() + r * width_, width_, carried_.data() + r * width_);
    }
  }

  // Through the reset of the first step, to the state before it.
  void end() {
    std::fill_n(g_s_.data(), samples_ * width_, 0.0F);
    advance(-1);
    for (Index r = 0; r < samples_; ++r) {
      pass_.g_first_v.write(place(r), patch_.columns, g_v(-1).row(r));
      if (pass_.g_first_spikes) pass_.g_first_spikes.write(place(r), patch_.columns, carried_.data() + r * width_);
    }
  }

  LayerBackward& pass_;
  const TransposedSpikes& inputs_;
  const Layer& layer_;
  const Patch patch_;
  Scratch& scratch_;
  const Sums& sums_;
  double* sum_gain_;
  const Index width_;
  const Index chunk_steps_;
  Index first_sample_ = 0, samples_ = 0;  // of the block
  Buffer<float> g_s_, g_u_, carried_, g_counts_, g_last_;  // [samples of a block, width]
  Buffer<float> v_;                                        // two blocks
  Buffer<float> step_sums_;  // [2, width]
  std::vector<std::uint32_t> ids_;
  std::vector<float> dots_, sent_;
};

std::vector<Patch> patchesOf(const LayerBackward& pass, const Threads& threads) {
  const Index neurons = pass.layer.neurons(), batch = pass.extent.batch;
  std::vector<Patch> patches;
  if (pass.layer.isRecurrent()) {
    const Index share = std::max<Index>((batch + threads.count() - 1) / threads.count(), 1);
    const Index samples = roundUp(share, kBlockRows);
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
  if (!pass.g_recurrent && !pass.g_gain) return;
  // A step's recurrent currents come from the spikes of the step before: of the first step from the state.
  Bits before(rows, neurons);
  for (Index r = batch; r < rows; ++r) std::copy_n(pass.spikes.row(r - batch), before.words(), before.row(r));
  const DenseSource::Type type =
      pass.first_spikes.is_bfloat16 ? DenseSource::Type::kBfloat16 : DenseSource::Type::kFloat32;
  const DenseSource first(pass.first_spikes.data, type, neurons);
  const BitSource then(before.row(0), neurons);
  const FirstRowsSource source(first, batch, then);
  const SpikeLists spikes(source, rows, neurons, batch, pass.extent.ends, threads);
  const TransposedSpikes transposed(spikes, chunksOf(pass.extent), TransposedSpikes::Layout::kInPlace, threads);
  computeWeightGradient({transposed,
                         {pass.g_v.data(), pass.g_v_stride},
                         layer.recurrent,
                         {pass.g_recurrent, neurons, neurons},
                         layer.constants.gain(),
                         pass.g_gain ? sum_gain : nullptr},
                        threads);
}

void writeSums(const LayerBackward& pass, const Sums& sums, const double* sum_gain) {
  const float* gain = pass.layer.constants.gain();
  const float* bias = pass.layer.constants.bias();
  const auto write = [&](const Numbers& to, Index neuron, double value) {
    const auto rounded = static_cast<float>(value);
    if (to) to.write(neuron, 1, &rounded);
  };
  for (Index neuron = 0; neuron < pass.layer.neurons(); ++neuron) {
    const double g_v = sums.total(Sums::kMembrane, neuron);
    write(pass.g_bias, neuron, double{gain[neuron]} * g_v);
    write(pass.g_decay, neuron, sums.total(Sums::kDecay, neuron));
    write(pass.g_threshold, neuron, sums.total(Sums::kThreshold, neuron));
    // A current is the sum of products and the bias: so is the gradient of the gain.
    write(pass.g_gain, neuron, sum_gain[neuron] + (bias == nullptr ? 0.0 : double{bias[neuron]} * g_v));
  }
}

}  // namespace

void runBackward(LayerBackward& pass, const Threads& threads) {
  const Index neurons = pass.layer.neurons();
  if (pass.keeps_g_v || pass.layer.isRecurrent()) {
    constexpr Index kWidestVector = 16;
    pass.g_v_stride = roundUp(neurons, kWidestVector);
    pass.g_v = Buffer<float>(pass.extent.rows() * pass.g_v_stride);
  }
  const Sums sums(pass.extent.batch, neurons);
  const Buffer<double> sum_gain(neurons);
  const bool needs_weights = pass.g_weights || pass.g_gain;
  Chunking chunking = chunksOf(pass.extent);
  if (!needs_weights) chunking.extent.batch = 0;
  const auto layout =
      pass.layer.isRecurrent() ? TransposedSpikes::Layout::kInPlace : TransposedSpikes::Layout::kPacked;
  const TransposedSpikes inputs(pass.inputs, chunking, layout, threads);
  const std::vector<Patch> patches = patchesOf(pass, threads);
  std::vector<Scratch> scratch(static_cast<std::size_t>(threads.count()));
  threads.run(static_cast<Index>(patches.size()), [&](Index task, Index worker) {
    PatchRun(pass, inputs, patches[static_cast<std::size_t>(task)], scratch[static_cast<std::size_t>(worker)], sums,
             sum_gain.data())
        .run();
  });
  if (pass.layer.isRecurrent()) finishRecurrent(pass, inputs, sum_gain.data(), threads);
  writeSums(pass, sums, sum_gain.data());
}

}  // namespace snnjax
