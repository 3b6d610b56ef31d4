#include <algorithm>

#include "lif_layer.hpp"

namespace snnjax {
namespace {

// Up to this share of listed neurons, their cotangents are computed one by one; above it a dense product of all of
// them is faster: measured by tests/benchmarks, see xla_ext/README.md.
constexpr double kDotShare = 0.2;

// Some columns of some samples.
struct Patch {
  Index first_column, columns, first_sample, samples;
};

// What a thread needs for a patch, kept for its next one.
struct PatchScratch {
  PackedWeights above, above_rows, recurrent, recurrent_rows, sums, g_v;
};

// Sums over all steps of each block of samples, in float64. Blocks are added in their order at last, so the result does
// not depend on which thread had which samples.
class Sums {
 public:
  // Behind the constants: the cotangents of the current, as they are recorded.
  static constexpr Index kCurrent = kNumSummed, kKinds = kNumSummed + 1;

  Sums(Index batch, Index neurons)
      : blocks_((batch + kBackwardBlock - 1) / kBackwardBlock),
        neurons_(neurons),
        memory_(blocks_ * kKinds * neurons) {}

  double* of(Index block, Index kind) { return memory_.data() + (block * kKinds + kind) * neurons_; }
  const double* of(Index block, Index kind) const { return memory_.data() + (block * kKinds + kind) * neurons_; }

  double total(Index kind, Index neuron) const {
    double sum = 0.0;
    for (Index block = 0; block < blocks_; ++block) sum += of(block, kind)[neuron];
    return sum;
  }

 private:
  Index blocks_, neurons_;
  Buffer<double> memory_;
};

constexpr Rows<const float> kNoRows{nullptr, 0};

Rows<const float> asConst(Rows<float> rows) { return {rows.data, rows.stride}; }

WeightGradient weightGradientOf(const LayerBackward& pass, const TransposedSpikes& inputs, double* sum_gain) {
  const Weights& weights = pass.layer.weights;
  return {inputs,         {pass.g_v.data(), pass.g_v_stride}, weights,
          pass.g_weights, pass.layer.constants.outerGain(),   sumsGain(pass) ? sum_gain : nullptr};
}

class PatchBackward {
 public:
  PatchBackward(LayerBackward& pass, const TransposedSpikes& inputs, const Patch& patch, PatchScratch& scratch,
                Sums& sums, double* sum_gain, float* sum_patches)
      : pass_(pass),
        inputs_(inputs),
        layer_(pass.layer),
        patch_(patch),
        scratch_(scratch),
        sums_(sums),
        sum_gain_(sum_gain),
        sum_patches_(sum_patches),
        width_(roundUp(patch.columns, kernels().lanes)),
        block_(std::min(kBackwardBlock, patch.samples)),
        chunk_steps_(inputs.chunking().steps),
        g_s_(kBackwardBlock * width_),
        g_u_(kBackwardBlock * width_),
        carried_(kBackwardBlock * width_),
        sent_(layer_.isRecurrent() ? kBackwardBlock * width_ : 0),
        g_counts_(pass.g_counts ? kBackwardBlock * width_ : 0),
        g_last_(kBackwardBlock * width_),
        g_w_(hasSecondState() ? kBackwardBlock * width_ : 0),
        g_last_w_(hasSecondState() ? kBackwardBlock * width_ : 0),
        v_(2 * kBackwardBlock * width_),
        w_(needsW() ? (pass.extent.steps + 1) * block_ * width_ : 0),
        step_sums_(kNumSummed * width_) {
    if (layer_.convolution == nullptr) return;
    convolution_ = std::make_unique<ConvolutionColumns>(*layer_.convolution, patch.first_column, patch.columns);
  }

  void run() {
    pack();
    for (Index first = 0; first < patch_.samples; first += kBackwardBlock) {
      first_sample_ = patch_.first_sample + first;
      samples_ = std::min(kBackwardBlock, patch_.samples - first);
      runBlock();
    }
    if (sumsWeights() && convolution_ == nullptr) {
      finishWeightGradient(scratch_.sums, patch_.first_column, patch_.columns,
                           weightGradientOf(pass_, inputs_, sum_gain_));
    }
  }

 private:
  Index neurons() const { return layer_.neurons(); }
  Index firstRow(Index step) const { return step * pass_.extent.batch + first_sample_; }
  Index place(Index r) const { return (first_sample_ + r) * neurons() + patch_.first_column; }
  Rows<float> rowsOf(Buffer<float>& memory) const { return {memory.data(), width_}; }
  // The weight gradient of a recurrent layer waits for the samples of all threads.
  bool sumsWeights() const { return !layer_.isRecurrent() && (pass_.g_weights || sumsGain(pass_)); }
  bool hasSecondState() const { return layer_.constants.hasSecondState(); }
  bool needsW() const { return pass_.needs_w && hasSecondState(); }

  // The cotangents of the membranes of a step: where they stay, or those of a chunk of steps behind one another.
  Rows<float> g_v(Index step) const {
    if (layer_.isRecurrent() && step >= 0) {
      return {pass_.g_v.data() + firstRow(step) * pass_.g_v_stride, pass_.g_v_stride};
    }
    const Index place = sumsWeights() ? std::max<Index>(step, 0) % chunk_steps_ : 0;
    return {scratch_.g_v.rows().row(place * samples_), width_};
  }

  void runBlock() {
    begin();
    for (Index step = pass_.extent.steps; step-- > 0;) {
      advance(step, gather(step));
      if (layer_.isRecurrent()) sendBack(step);
      if (!sumsWeights()) continue;
      if (convolution_ != nullptr) {
        accumulatePatches(step);
        continue;
      }
      if (step % chunk_steps_ != 0) continue;
      inputs_.accumulate(inputs_.chunking().indexOf(step, first_sample_), scratch_.sums.rows(), width_,
                         asConst(g_v(step)));
    }
    end();
  }

  // The gradient of a convolution by the cotangents of a step.
  void accumulatePatches(Index step) {
    for (Index r = 0; r < samples_; ++r) {
      if (step >= pass_.extent.ends[first_sample_ + r]) continue;
      convolution_->addGradient(pass_.inputs, firstRow(step) + r, g_v(step).row(r), sum_patches_);
    }
  }

  void pack() {
    const Above& above = pass_.above;
    scratch_.g_v.resize((sumsWeights() ? chunk_steps_ : 1) * kBackwardBlock, width_);
    if (above.g_v.data != nullptr) {
      if (pass_.listed) {
        packRows(above.weights, patch_.first_column, patch_.columns, above.gain, scratch_.above_rows);
      } else {
        packAbove();
      }
    }
    if (layer_.isRecurrent()) {
      scratch_.recurrent.resize(neurons(), width_);
      packPanels(layer_.recurrent, 0, neurons(), layer_.constants.outerGain(), scratch_.recurrent);
      if (pass_.listed) {
        packRows(layer_.recurrent, 0, neurons(), layer_.constants.outerGain(), scratch_.recurrent_rows);
      }
    }
    if (sumsWeights() && convolution_ == nullptr) {
      scratch_.sums.resize(layer_.weights.inputs, width_);
      scratch_.sums.clear(layer_.weights.inputs);
    }
  }

  // The weights above, turned, for products with all neurons of the patch.
  void packAbove() {
    const Above& above = pass_.above;
    scratch_.above.resize(above.weights.outputs, width_);
    packPanels(above.weights, patch_.first_column, patch_.columns, above.gain, scratch_.above);
    has_above_ = true;
  }

  // The cotangents of the state behind the last step.
  void begin() {
    std::fill_n(g_u_.data(), samples_ * width_, 0.0F);
    read(pass_.g_last_v, g_last_);
    if (hasSecondState()) {
      std::fill_n(g_w_.data(), samples_ * width_, 0.0F);
      read(pass_.g_last_w, g_last_w_);
      if (needsW()) computeSecondStates();
    }
    if (pass_.g_counts) read(pass_.g_counts, g_counts_);
    if (layer_.isRecurrent()) read(pass_.g_last_spikes, carried_);
  }

  // The block of an array [batch, neurons].
  void read(const Numbers& from, Buffer<float>& to) const {
    for (Index r = 0; r < samples_; ++r) from.read(place(r), patch_.columns, to.data() + r * width_);
  }

  // The cotangents of the listed spikes of a step.
  Rows<const float> gather(Index step) {
    const Above& above = pass_.above;
    const Rows<float> g_s = rowsOf(g_s_);
    if (isReadInPlace()) {
      return blockOf(pass_.g_spikes[0], step);
    }
    // What the next step's recurrent currents send back: in the beginning, and behind the end of a sample, that of the
    // state, which `carried_` holds until the sample's last step uses it.
    const Rows<const float> start = layer_.isRecurrent() ? asConst(rowsOf(carried_)) : Rows<const float>{nullptr, 0};
    if (above.g_v.data != nullptr && pass_.listed && isShort(firstRow(step))) {
      gatherListed(firstRow(step), start);
    } else if (above.g_v.data != nullptr) {
      if (!has_above_) packAbove();
      kernels().multiplyPanels({above.g_v.row(firstRow(step)), above.g_v.stride}, samples_, above.weights.outputs,
                               scratch_.above.rows().data, width_, start, g_s);
    } else if (start.data != nullptr) {
      std::copy_n(start.data, samples_ * width_, g_s.data);
    } else {
      std::fill_n(g_s.data, samples_ * width_, 0.0F);
    }
    for (Index r = 0; pass_.sent && r < samples_; ++r) {
      pass_.sent.addTo(firstRow(step) + r, patch_.first_column, patch_.columns, g_s.row(r));
    }
    for (const Numbers& more : pass_.g_spikes) add(more, step);
    return asConst(g_s);
  }

  // Whether the cotangents lie in memory as they are needed: those of the output alone, in whole vectors.
  bool isReadInPlace() const {
    return pass_.above.g_v.data == nullptr && !pass_.sent && !layer_.isRecurrent() && pass_.g_spikes.size() == 1 &&
           !pass_.g_spikes[0].is_bfloat16 && patch_.columns == width_;
  }

  // Whether so few neurons of the block are listed that single products pay.
  bool isShort(Index row) const {
    Index listed = 0;
    const Index first = patch_.first_column / 64, words = (patch_.columns + 63) / 64;
    for (Index r = 0; r < samples_; ++r) listed += countBits(pass_.listed.row(row + r) + first, words);
    return static_cast<double>(listed) < kDotShare * static_cast<double>(samples_ * patch_.columns);
  }

  void gatherListed(Index row, Rows<const float> start) {
    for (Index r = 0; r < samples_; ++r) {
      float* out = g_s_.data() + r * width_;
      if (start.data == nullptr) {
        std::fill_n(out, width_, 0.0F);
      } else {
        std::copy_n(start.row(r), width_, out);
      }
      fetchAbove(r + 1 < samples_ ? row + r + 1 : row - pass_.extent.batch);
      addDots(row + r, scratch_.above_rows, pass_.above.g_v.row(row + r), out);
    }
  }

  // out[k] += <weights[k], g> for the neurons of the patch that are listed in a row.
  void addDots(Index row, const PackedWeights& weights, const float* g, float* out) {
    ids_.resize(static_cast<std::size_t>(roundUp(patch_.columns, 64)) + kListSlack);
    dots_.resize(ids_.size());
    const std::uint64_t* listed = pass_.listed.row(row) + patch_.first_column / 64;
    const std::uint32_t count = kernels().listBits(listed, patch_.columns, ids_.data());
    kernels().dotRows(ids_.data(), count, weights.rows(), weights.columns(), g, dots_.data());
    for (std::uint32_t k = 0; k < count; ++k) out[ids_[k]] += dots_[k];
  }

  // Fetches a row of the cotangents above, which lie too far apart for the machine to see them coming.
  void fetchAbove(Index row) const {
    if (row < 0) return;
    constexpr Index kFloatsPerLine = static_cast<Index>(kCacheLine / sizeof(float));
    const float* from = pass_.above.g_v.row(row);
    for (Index n = 0; n < pass_.above.weights.outputs; n += kFloatsPerLine) __builtin_prefetch(from + n);
  }

  void add(const Numbers& more, Index step) {
    row_.resize(static_cast<std::size_t>(patch_.columns));
    for (Index r = 0; r < samples_; ++r) {
      const Index place = (firstRow(step) + r) * neurons() + patch_.first_column;
      const float* from = more.is_bfloat16 ? row_.data() : more.float32() + place;
      if (more.is_bfloat16) more.read(place, patch_.columns, row_.data());
      float* to = g_s_.data() + r * width_;
      for (Index c = 0; c < patch_.columns; ++c) to[c] += from[c];
    }
  }

  // The time step of the neurons, and the sums that go with it; step -1 is the reset of the state before the first
  // step.
  void advance(Index step, Rows<const float> g_spikes) {
    const Index word = patch_.first_column / 64, row = firstRow(step);
    const bool is_step = step >= 0, needs_before = is_step && needsBefore();
    const auto own = [&](Buffer<float>& memory) { return asConst(rowsOf(memory)); };
    std::fill_n(step_sums_.data(), kNumSummed * width_, 0.0F);
    StepBackward call{
        .rows = samples_,
        .columns = patch_.columns,
        .constants = layer_.constants.from(patch_.first_column),
        .reset = layer_.reset,
        .detach_reset = layer_.detach_reset,
        .surrogate = layer_.surrogate,
        .step = step,
        .ends = pass_.extent.ends + first_sample_,
        .g_spikes = g_spikes,
        .listed = {is_step && pass_.listed ? pass_.listed.row(row) + word : nullptr, pass_.listed.words()},
        .g_counts = is_step && pass_.g_counts ? own(g_counts_) : kNoRows,
        .g_last = own(g_last_),
        .g_last_w = hasSecondState() ? own(g_last_w_) : kNoRows,
        .v = is_step ? membranes(pass_.record, row, 0) : membranes(pass_.first_v, first_sample_, 0),
        .v_before = needs_before ? membranesBefore(step, 1) : kNoRows,
        .w = secondStates(step),
        .w_before = is_step ? secondStates(step - 1) : kNoRows,
        .current = is_step ? recorded(pass_.record_current, step) : kNoRows,
        .next_v = blockOf(pass_.record, step - 1),
        .next_g_spikes = isReadInPlace() ? blockOf(pass_.g_spikes[0], step - 1) : kNoRows,
        .g_u = rowsOf(g_u_),
        .g_w = {hasSecondState() ? g_w_.data() : nullptr, width_},
        .g_v = g_v(step),
        .sums = {},
    };
    if (!is_step) call.constants.v_coupling = call.constants.w_gain = nullptr;  // those of the first step: it is done
    for (Index i = 0; i < kNumSummed; ++i)
      call.sums[i] = isSummed(i, is_step) ? step_sums_.data() + i * width_ : nullptr;
    kernels().stepBackward(call);
    if (is_step && layer_.constants.takesGainInside()) takeGain(g_v(step));
    addStepSums(step);
    if (!is_step || pass_.g_v.data() == nullptr || layer_.isRecurrent()) return;
    for (Index r = 0; r < samples_; ++r) {
      float* to = pass_.g_v.data() + (row + r) * pass_.g_v_stride + patch_.first_column;
      std::copy_n(g_v(step).row(r), patch_.columns, to);
    }
  }

  void takeGain(Rows<float> g) const {
    const float* gain = layer_.constants.from(patch_.first_column).gain;
    for (Index r = 0; r < samples_; ++r) {
      for (Index c = 0; c < patch_.columns; ++c) g.row(r)[c] *= gain[c];
    }
  }

  // Whether a step adds to the cotangent of a constant: the reset before the first step knows the thresholds alone.
  bool isSummed(Index constant, bool is_step) const {
    const auto kind = static_cast<Summed>(constant);
    if (!pass_.g_constants[static_cast<std::size_t>(constant)]) return false;
    if (kind == Summed::kGain && sumsGain(pass_)) return false;
    return is_step || kind == Summed::kThreshold || kind == Summed::kThresholdCoupling;
  }

  // Whether a step asks for the membranes before it.
  bool needsBefore() const {
    constexpr std::array kConstants{Summed::kDecay, Summed::kWMembrane, Summed::kWJump};
    return std::any_of(kConstants.begin(), kConstants.end(),
                       [&](Summed constant) { return static_cast<bool>(cotangentOf(pass_, constant)); });
  }

  // The block in a step of an array [steps, batch, neurons] that the forward pass may have recorded.
  Rows<const float> recorded(const float* all, Index step) const {
    if (all == nullptr) return kNoRows;
    return {all + firstRow(step) * neurons() + patch_.first_column, neurons()};
  }

  // The second states of the block after all steps, forward from the first.
  void computeSecondStates() {
    std::fill_n(w_.data(), samples_ * width_, 0.0F);
    for (Index r = 0; r < samples_; ++r) pass_.first_w.read(place(r), patch_.columns, w_.data() + r * width_);
    for (Index step = 0; step < pass_.extent.steps; ++step) {
      kernels().stepSecondState({
          .rows = samples_,
          .columns = patch_.columns,
          .constants = layer_.constants.from(patch_.first_column),
          .step = step,
          .ends = pass_.extent.ends + first_sample_,
          .v_before = membranesBefore(step, 0),
          .w_before = secondStates(step - 1),
          .current = recorded(pass_.record_current, step),
          .w = {w_.data() + (step + 1) * block_ * width_, width_},
      });
    }
  }

  // The second states after a step, -1 for the first of all, where they are needed.
  Rows<const float> secondStates(Index step) const {
    return needsW() ? Rows<const float>{w_.data() + (step + 1) * block_ * width_, width_} : kNoRows;
  }

  // The membranes before a step; `half` as below.
  Rows<const float> membranesBefore(Index step, Index half) {
    return step > 0 ? membranes(pass_.record, firstRow(step - 1), half) : membranes(pass_.first_v, first_sample_, half);
  }

  // The block in a step of an array [steps, batch, neurons] of float32.
  Rows<const float> blockOf(const Numbers& from, Index step) const {
    if (from.is_bfloat16 || step < 0) return {nullptr, 0};
    return {from.float32() + firstRow(step) * neurons() + patch_.first_column, neurons()};
  }

  void addStepSums(Index step) {
    const Index block = first_sample_ / kBackwardBlock;
    for (Index i = 0; i < kNumSummed; ++i) {
      if (!isSummed(i, step >= 0)) continue;
      double* to = sums_.of(block, i) + patch_.first_column;
      for (Index c = 0; c < patch_.columns; ++c) to[c] += double{step_sums_[i * width_ + c]};
    }
    if (step < 0 || !(pass_.g_bias || sumsGain(pass_))) return;
    double* to = sums_.of(block, Sums::kCurrent) + patch_.first_column;
    for (Index r = 0; r < samples_; ++r) {
      const float* from = g_v(step).row(r);
      for (Index c = 0; c < patch_.columns; ++c) to[c] += double{from[c]};
    }
  }

  // The block's membranes in the rows from `first` of an array [rows, neurons]; `half` of the scratch serves a record
  // in bfloat16.
  Rows<const float> membranes(const Numbers& from, Index first, Index half) {
    if (!from.is_bfloat16) return {from.float32() + first * neurons() + patch_.first_column, neurons()};
    const float* threshold = layer_.constants.from(patch_.first_column).threshold;
    float* out = v_.data() + half * kBackwardBlock * width_;
    for (Index r = 0; r < samples_; ++r) {
      float* row = out + r * width_;
      from.read((first + r) * neurons() + patch_.first_column, patch_.columns, row);
      for (Index c = 0; c < patch_.columns; ++c) row[c] += originOf(threshold[c]);
    }
    return {out, width_};
  }

  // Where a sample is still running, what it carries is now what this step's recurrent currents send back.
  void sendBack(Index step) {
    const std::int32_t* ends = pass_.extent.ends + first_sample_;
    if (step > 0 && pass_.listed && isShort(firstRow(step - 1))) return sendBackListed(step, ends);
    const bool all_run = std::all_of(ends, ends + samples_, [&](std::int32_t end) { return step < end; });
    const Rows<float> sent = rowsOf(all_run ? carried_ : sent_);
    kernels().multiplyPanels(asConst(g_v(step)), samples_, neurons(), scratch_.recurrent.rows().data, width_,
                             {nullptr, 0}, sent);
    for (Index r = 0; !all_run && r < samples_; ++r) {
      if (step < ends[r]) std::copy_n(sent.row(r), width_, carried_.data() + r * width_);
    }
  }

  // The same where few neurons of the step before are listed: no others take anything.
  void sendBackListed(Index step, const std::int32_t* ends) {
    for (Index r = 0; r < samples_; ++r) {
      if (step >= ends[r]) continue;
      float* carried = carried_.data() + r * width_;
      std::fill_n(carried, width_, 0.0F);
      addDots(firstRow(step - 1) + r, scratch_.recurrent_rows, g_v(step).row(r), carried);
    }
  }

  // Through the reset of the first step, to the state before it.
  void end() {
    std::fill_n(g_s_.data(), samples_ * width_, 0.0F);
    advance(-1, asConst(rowsOf(g_s_)));
    for (Index r = 0; r < samples_; ++r) {
      pass_.g_first_v.write(place(r), patch_.columns, g_v(-1).row(r));
      if (pass_.g_first_w) pass_.g_first_w.write(place(r), patch_.columns, g_w_.data() + r * width_);
      if (pass_.g_first_spikes) pass_.g_first_spikes.write(place(r), patch_.columns, carried_.data() + r * width_);
    }
  }

  LayerBackward& pass_;
  const TransposedSpikes& inputs_;
  const Layer& layer_;
  const Patch patch_;
  PatchScratch& scratch_;
  Sums& sums_;
  double* sum_gain_;
  float* sum_patches_;  // the gradient of a convolution, packed
  const Index width_;
  const Index block_;  // samples of a block, of the last one fewer
  const Index chunk_steps_;
  Index first_sample_ = 0, samples_ = 0;  // of the block
  bool has_above_ = false;
  Buffer<float> g_s_, g_u_, carried_, sent_, g_counts_, g_last_;  // [samples of a block, width]
  Buffer<float> g_w_, g_last_w_;                                  // likewise, of layers with a second state
  Buffer<float> v_;                                               // two blocks
  Borrowed<float> w_;        // second states [steps + 1, block, width], first that before the first step
  Buffer<float> step_sums_;  // [kNumSummed, width]
  std::vector<std::uint32_t> ids_;
  std::vector<float> dots_, row_;
  std::unique_ptr<ConvolutionColumns> convolution_;
};

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
  const Index tile = columnsOfTile(pass.layer, above);
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
                         pass.g_recurrent,
                         layer.constants.outerGain(),
                         sumsGain(pass) ? sum_gain : nullptr},
                        threads);
}

void writeSums(const LayerBackward& pass, const Sums& sums, const double* sum_gain) {
  const float* gain = pass.layer.constants.outerGain();
  const float* bias = pass.layer.constants.bias();
  const auto write = [&](const WritableNumbers& to, Index neuron, double value) {
    const auto rounded = static_cast<float>(value);
    if (to) to.write(neuron, 1, &rounded);
  };
  for (Index neuron = 0; neuron < pass.layer.neurons(); ++neuron) {
    const double g_v = sums.total(Sums::kCurrent, neuron);
    write(pass.g_bias, neuron, double{gain[neuron]} * g_v);
    for (Index i = 0; i < kNumSummed; ++i) {
      const WritableNumbers& to = pass.g_constants[static_cast<std::size_t>(i)];
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
  Sums sums(pass.extent.batch, neurons);
  Buffer<double> sum_gain(neurons);
  const bool needs_weights = pass.g_weights || sumsGain(pass);
  Chunking chunking = chunksOf(pass.extent);
  const PackedConvolution* convolution = pass.layer.convolution.get();
  if (!needs_weights || convolution != nullptr) chunking.extent.batch = 0;
  const auto layout = pass.layer.isRecurrent() ? TransposedSpikes::Layout::kInPlace : TransposedSpikes::Layout::kPacked;
  const TransposedSpikes inputs(pass.inputs, chunking, layout, threads);
  const std::vector<Patch> patches = patchesOf(pass, threads);
  // The gradient of a convolution is a sum over all patches, in their order.
  const Index of_patches = convolution == nullptr || !pass.g_weights ? 0 : convolution->layout().size();
  Buffer<float> sum_patches(of_patches * static_cast<Index>(patches.size()));
  std::vector<PatchScratch> scratch(static_cast<std::size_t>(threads.count()));
  threads.run(static_cast<Index>(patches.size()), [&](Index task, Index worker) {
    PatchBackward(pass, inputs, patches[static_cast<std::size_t>(task)], scratch[static_cast<std::size_t>(worker)],
                  sums, sum_gain.data(), sum_patches.data() + task * of_patches)
        .run();
  });
  if (pass.layer.isRecurrent()) finishRecurrent(pass, inputs, sum_gain.data(), threads);
  for (std::size_t task = 1; task < patches.size(); ++task) {
    const float* from = sum_patches.data() + static_cast<Index>(task) * of_patches;
    for (Index i = 0; i < of_patches; ++i) sum_patches[i] += from[i];
  }
  if (of_patches > 0) convolution->layout().unpack(sum_patches.data(), pass.g_weights);
  writeSums(pass, sums, sum_gain.data());
}

}  // namespace snnjax
