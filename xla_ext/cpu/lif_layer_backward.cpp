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
  PackedWeights above, above_rows, recurrent, sums;
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

WeightGradient weightGradientOf(const LayerBackward& pass, double* sum_gain) {
  const Weights& weights = pass.layer.weights;
  return {pass.inputs,
          pass.extent.rows(),
          {pass.g_v.data(), pass.g_v_stride},
          weights,
          {pass.g_weights, weights.inputs, weights.outputs},
          pass.layer.constants.gain(),
          pass.g_gain ? sum_gain : nullptr};
}

class PatchRun {
 public:
  PatchRun(LayerBackward& pass, const Patch& patch, Scratch& scratch, const Sums& sums, double* sum_gain)
      : pass_(pass),
        layer_(pass.layer),
        patch_(patch),
        scratch_(scratch),
        sums_(sums),
        sum_gain_(sum_gain),
        width_(roundUp(patch.columns, kernels().lanes)),
        g_s_(patch.samples * width_),
        g_u_(patch.samples * width_),
        g_v_(patch.samples * width_),
        carried_(patch.samples * width_),
        v_(2 * kBlockRows * width_),
        g_counts_(copy(pass.g_counts)),
        g_last_(copy(pass.g_last_v)),
        step_sums_(2 * width_) {}

  void run() {
    begin();
    for (Index step = pass_.extent.steps; step-- > 0;) {
      gather(step);
      advance(step);
    }
    end();
  }

 private:
  Index neurons() const { return layer_.neurons(); }
  Index firstRow(Index step) const { return step * pass_.extent.batch + patch_.first_sample; }
  Index place(Index r) const { return (patch_.first_sample + r) * neurons() + patch_.first_column; }
  Rows<float> g_s() const { return {g_s_.data(), width_}; }
  Rows<float> g_v() const { return {g_v_.data(), width_}; }
  bool sumsWeights() const { return !layer_.isRecurrent() && (pass_.g_weights || pass_.g_gain); }

  // The patch of an array [batch, neurons], empty if it is absent.
  Buffer<float> copy(const Numbers& numbers) const {
    if (!numbers) return {};
    Buffer<float> own(patch_.samples * width_);
    for (Index r = 0; r < patch_.samples; ++r) numbers.read(place(r), patch_.columns, own.data() + r * width_);
    return own;
  }

  void begin() {
    const Above& above = pass_.above;
    if (above.g_v.data != nullptr) {
      scratch_.above.resize(above.weights.outputs, width_);
      packTransposed(above.weights, patch_.first_column, patch_.columns, above.gain, scratch_.above);
      if (pass_.listed) packAboveRows();
    }
    if (layer_.isRecurrent()) {
      scratch_.recurrent.resize(neurons(), width_);
      packTransposed(layer_.recurrent, 0, neurons(), layer_.constants.gain(), scratch_.recurrent);
      const Buffer<float> last = copy(pass_.g_last_spikes);
      if (last.data() != nullptr) std::copy_n(last.data(), patch_.samples * width_, carried_.data());
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

  // The cotangents of the listed spikes of a step.
  void gather(Index step) {
    const Above& above = pass_.above;
    for (Index r = 0; r < patch_.samples; r += kBlockRows) {
      const Index count = std::min(kBlockRows, patch_.samples - r), row = firstRow(step) + r;
      if (above.g_v.data == nullptr) {
        std::fill_n(g_s().row(r), count * width_, 0.0F);
      } else if (pass_.listed && isShort(row, count)) {
        gatherListed(row, r, count);
      } else {
        kernels().multiplyRows({above.g_v.row(row), above.g_v.stride}, count, above.weights.outputs,
                               asConst(scratch_.above.rows()), width_, {nullptr, 0}, {g_s().row(r), width_});
      }
    }
    for (const Numbers& more : pass_.g_spikes) add(more, step);
    if (layer_.isRecurrent()) carry(step);
  }

  // Whether so few neurons of some rows are listed that single products pay.
  bool isShort(Index row, Index count) const {
    Index listed = 0;
    const Index first = patch_.first_column / 64, words = (patch_.columns + 63) / 64;
    for (Index r = 0; r < count; ++r) {
      for (Index word = 0; word < words; ++word) listed += __builtin_popcountll(pass_.listed.row(row + r)[first + word]);
    }
    return static_cast<double>(listed) < kDotShare * static_cast<double>(count * patch_.columns);
  }

  void gatherListed(Index row, Index r, Index count) {
    const Index first = patch_.first_column / 64, outputs = pass_.above.weights.outputs;
    ids_.resize(static_cast<std::size_t>(roundUp(patch_.columns, 64)));
    dots_.resize(ids_.size());
    for (Index i = 0; i < count; ++i) {
      float* out = g_s().row(r + i);
      std::fill_n(out, width_, 0.0F);
      bool all_ones = true;
      const BitSource listed(pass_.listed.row(row + i) + first, patch_.columns);
      const std::uint32_t listed_count = listed.list(0, ids_.data(), nullptr, &all_ones);
      kernels().dotRows(ids_.data(), listed_count, asConst(scratch_.above_rows.rows()), outputs,
                        pass_.above.g_v.row(row + i), dots_.data());
      for (std::uint32_t k = 0; k < listed_count; ++k) out[ids_[k]] = dots_[k];
    }
  }

  void add(const Numbers& more, Index step) {
    std::vector<float> row(static_cast<std::size_t>(patch_.columns));
    for (Index r = 0; r < patch_.samples; ++r) {
      more.read((firstRow(step) + r) * neurons() + patch_.first_column, patch_.columns, row.data());
      for (Index c = 0; c < patch_.columns; ++c) g_s().row(r)[c] += row[static_cast<std::size_t>(c)];
    }
  }

  // What the next step's recurrent currents send back: in the beginning, and behind the end of a sample, that of the
  // state, which `carried_` holds until the sample's last step has used it.
  void carry(Index step) {
    for (Index r = 0; r < patch_.samples; ++r) {
      if (step >= pass_.extent.ends[patch_.first_sample + r]) continue;
      for (Index c = 0; c < width_; ++c) g_s().row(r)[c] += carried_[r * width_ + c];
    }
  }

  // The time step of the neurons, and the sums that go with it.
  void advance(Index step) {
    for (Index r = 0; r < patch_.samples; r += kBlockRows) advanceBlock(step, r);
    const Index first = firstRow(step);
    if (sumsWeights()) accumulate(pass_.inputs, first, patch_.samples, scratch_.sums.rows(), width_, asConst(g_v()));
    if (pass_.g_v.data() != nullptr) {
      for (Index r = 0; r < patch_.samples; ++r) {
        std::copy_n(g_v().row(r), patch_.columns,
                    pass_.g_v.data() + (first + r) * pass_.g_v_stride + patch_.first_column);
      }
    }
    if (layer_.isRecurrent()) sendBack(step);
  }

  // Samples [r, r + kBlockRows) of the patch; step -1 is the reset of the state before the first step.
  void advanceBlock(Index step, Index r) {
    const Index rows = std::min(kBlockRows, patch_.samples - r), sample = patch_.first_sample + r;
    const Index word = patch_.first_column / 64, row = step * pass_.extent.batch + sample;
    const bool is_step = step >= 0, needs_before = is_step && pass_.g_decay;
    std::fill_n(step_sums_.data(), 2 * width_, 0.0F);
    const auto own = [&](const Buffer<float>& memory) {
      return Rows<float>{memory.data() == nullptr ? nullptr : memory.data() + r * width_, width_};
    };
    kernels().stepBackward({
        .rows = rows,
        .columns = patch_.columns,
        .constants = layer_.constants.from(patch_.first_column),
        .reset = layer_.reset,
        .detach_reset = layer_.detach_reset,
        .surrogate = layer_.surrogate,
        .step = step,
        .ends = pass_.extent.ends + sample,
        .g_spikes = asConst(own(g_s_)),
        .listed = {is_step && pass_.listed ? pass_.listed.row(row) + word : nullptr, pass_.listed.words()},
        .g_counts = is_step ? asConst(own(g_counts_)) : Rows<const float>{nullptr, 0},
        .g_last = asConst(own(g_last_)),
        .v = is_step ? membranes(pass_.record, row, rows, 0) : membranes(pass_.first_v, sample, rows, 0),
        .v_before = !needs_before ? Rows<const float>{nullptr, 0}
                    : step > 0    ? membranes(pass_.record, row - pass_.extent.batch, rows, 1)
                                  : membranes(pass_.first_v, sample, rows, 1),
        .g_u = own(g_u_),
        .g_v = own(g_v_),
        .sum_decay = needs_before ? step_sums_.data() : nullptr,
        .sum_threshold = pass_.g_threshold ? step_sums_.data() + width_ : nullptr,
    });
    addStepSums(sample / kBlockRows, is_step ? own(g_v_) : own({}), rows);
  }

  void addStepSums(Index block, Rows<float> g_v, Index rows) {
    for (Index c = 0; c < patch_.columns; ++c) {
      const Index neuron = patch_.first_column + c;
      if (pass_.g_decay) sums_.of(block, Sums::kDecay)[neuron] += double{step_sums_[c]};
      if (pass_.g_threshold) sums_.of(block, Sums::kThreshold)[neuron] += double{step_sums_[width_ + c]};
      if (g_v.data == nullptr || (!pass_.g_bias && !pass_.g_gain)) continue;
      for (Index r = 0; r < rows; ++r) sums_.of(block, Sums::kMembrane)[neuron] += double{g_v.row(r)[c]};
    }
  }

  // The patch's membranes in rows [first, first + count) of an array [rows, neurons]; `half` of the scratch serves
  // bfloat16.
  Rows<const float> membranes(const Numbers& from, Index first, Index count, Index half) {
    if (!from.is_bfloat16) return {from.float32() + first * neurons() + patch_.first_column, neurons()};
    float* out = v_.data() + half * kBlockRows * width_;
    for (Index r = 0; r < count; ++r) {
      from.read((first + r) * neurons() + patch_.first_column, patch_.columns, out + r * width_);
    }
    return {out, width_};
  }

  // Where a sample is still running, what it carries is now what this step's recurrent currents send back.
  void sendBack(Index step) {
    sent_.resize(static_cast<std::size_t>(kBlockRows * width_));
    for (Index r = 0; r < patch_.samples; r += kBlockRows) {
      const Index count = std::min(kBlockRows, patch_.samples - r);
      kernels().multiplyRows({g_v().row(r), width_}, count, neurons(), asConst(scratch_.recurrent.rows()), width_,
                             {nullptr, 0}, {sent_.data(), width_});
      for (Index i = 0; i < count; ++i) {
        if (step >= pass_.extent.ends[patch_.first_sample + r + i]) continue;
        std::copy_n(sent_.data() + i * width_, width_, carried_.data() + (r + i) * width_);
      }
    }
  }

  // Through the reset of the first step, to the state before it.
  void end() {
    std::fill_n(g_s_.data(), patch_.samples * width_, 0.0F);
    for (Index r = 0; r < patch_.samples; r += kBlockRows) advanceBlock(-1, r);
    for (Index r = 0; r < patch_.samples; ++r) {
      pass_.g_first_v.write(place(r), patch_.columns, g_v().row(r));
      if (pass_.g_first_spikes) pass_.g_first_spikes.write(place(r), patch_.columns, carried_.data() + r * width_);
    }
    if (sumsWeights()) {
      finishWeightGradient(scratch_.sums, patch_.first_column, patch_.columns, weightGradientOf(pass_, sum_gain_));
    }
  }

 private:
  LayerBackward& pass_;
  const Layer& layer_;
  const Patch patch_;
  Scratch& scratch_;
  const Sums& sums_;
  double* sum_gain_;
  const Index width_;
  Buffer<float> g_s_, g_u_, g_v_, carried_;  // [samples, width]
  Buffer<float> v_;                          // two blocks of samples
  Buffer<float> g_counts_, g_last_;
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
void finishRecurrent(const LayerBackward& pass, double* sum_gain, const Threads& threads) {
  const Layer& layer = pass.layer;
  const Index batch = pass.extent.batch, rows = pass.extent.rows(), neurons = layer.neurons();
  computeWeightGradient(weightGradientOf(pass, sum_gain), threads);
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
  computeWeightGradient({spikes,
                         rows,
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
  Buffer<double> sum_gain(neurons);
  const std::vector<Patch> patches = patchesOf(pass, threads);
  std::vector<Scratch> scratch(static_cast<std::size_t>(threads.count()));
  threads.run(static_cast<Index>(patches.size()), [&](Index task, Index worker) {
    PatchRun(pass, patches[static_cast<std::size_t>(task)], scratch[static_cast<std::size_t>(worker)], sums,
             sum_gain.data())
        .run();
  });
  if (pass.layer.isRecurrent()) finishRecurrent(pass, sum_gain.data(), threads);
  writeSums(pass, sums, sum_gain.data());
}

}  // namespace snnjax
