#include <algorithm>
#include <functional>

#include "given_currents_backward.hpp"
#include "lif_layer_cotangents.hpp"
#include "lif_layer_sums.hpp"
#include "recurrent_delays.hpp"

namespace snnjax {
namespace {

// Cotangents above this size have left the second-level cache by the time the layer below reads them.
constexpr Index kStreamedBytes = Index{4} << 20;

// What a thread needs for a patch, kept for its next one.
struct PatchScratch {
  SpikeCotangents::Scratch of_spikes;
  ListedCotangents::Scratch of_lists;
  // The cotangents of a chunk of steps and, behind them, the sums of the weights' gradient: in one block they share
  // their huge pages.
  PackedWeights rows;
};

// Whether the sums that make up the weights' gradient are needed.
bool needsWeights(const LayerBackward& pass) { return pass.g_weights || sumsGain(pass) || pass.split != nullptr; }

// By-products of the weights' gradient.
struct SumsOfWeights {
  double* gain;
  DelayGradient delays;
};

WeightGradient weightGradientOf(const LayerBackward& pass, const TransposedSpikes& inputs, SumsOfWeights& sums) {
  return {.spikes = inputs,
          .g_v = pass.g_v.asConst(),
          .weights = pass.layer.weights,
          .g_weights = pass.g_weights,
          .gain = pass.layer.constants.outerGain(),
          .sum_gain = sumsGain(pass) ? sums.gain : nullptr,
          .delays = sums.delays ? &sums.delays : nullptr};
}

class PatchBackward {
 public:
  PatchBackward(LayerBackward& pass, const TransposedSpikes& inputs, const Patch& patch, PatchScratch& scratch,
                Sums& sums, SumsOfWeights& sums_of_weights, float* sum_patches)
      : pass_(pass),
        inputs_(inputs),
        layer_(pass.layer),
        patch_(patch),
        record_(pass, patch),
        of_spikes_(pass, patch, record_, scratch.of_spikes),
        scratch_(scratch),
        sums_(sums),
        sums_of_weights_(sums_of_weights),
        sum_patches_(sum_patches),
        width_(record_.width()),
        block_(backwardBlock(pass)),
        chunk_steps_(inputs.chunking().steps),
        carried_(layer_.isRecurrent() ? block_ * width_ : 0),
        sent_(layer_.isRecurrent() ? block_ * width_ : 0),
        g_counts_(pass.g_counts ? block_ * width_ : 0),
        step_sums_(sums.kinds() * width_) {
    for (unsigned i = 0; i < kNeuronStates; ++i) {
      if (!pass.g_last.at(i)) continue;
      g_state_.at(i) = Buffer<float>(block_ * width_);
      g_last_.at(i) = Buffer<float>(block_ * width_);
    }
    if (pass.g_currents) scaleCurrents();
    if (layer_.recurrent_delays != nullptr) {
      back_ = std::make_unique<RecurrentCotangents>(*layer_.recurrent_delays, recurrentUnderWay(layer_, pass.g_last),
                                                    pass.extent, block_, width_);
    }
    if (pass.synaptic_cotangents != nullptr)
      collector_ = std::make_unique<SynapticCollector>(*pass.synaptic_cotangents, block_, width_);
    if (layer_.convolution != nullptr) {
      convolution_ = std::make_unique<ConvolutionColumns>(*layer_.convolution, patch.first_column, patch.columns);
    }
    scratch_.rows.resize(rowsOfChunk() + (sumsDense() ? inputs_.width() : 0), width_);
  }

  void run() {
    for (Index first = 0; first < patch_.samples; first += block_) {
      record_.begin(patch_.first_sample + first, std::min(block_, patch_.samples - first));
      runBlock();
      if (layer_.isRecurrent()) addSums();
    }
    addSums();
    if (!sumsDense()) return;
    if (!has_sums_) std::fill_n(sums().data, inputs_.width() * width_, 0.0F);
    finishWeightGradient(sums(), patch_.first_column, patch_.columns,
                         weightGradientOf(pass_, inputs_, sums_of_weights_));
  }

 private:
  Index neurons() const { return layer_.neurons(); }
  Index samples() const { return record_.samples(); }
  const std::int32_t* ends() const { return pass_.extent.ends + record_.firstSample(); }
  Rows<float> rowsOf(Buffer<float>& memory) const { return {memory.data(), width_}; }
  // The weight gradient of a recurrent layer waits for the samples of all threads.
  bool sumsWeights() const { return !layer_.isRecurrent() && needsWeights(pass_); }
  bool sumsDense() const { return sumsWeights() && convolution_ == nullptr; }

  Index rowsOfChunk() const { return (sumsWeights() ? chunk_steps_ : 1) * block_; }
  Rows<float> sums() const { return {scratch_.rows.rows().row(rowsOfChunk()), width_}; }
  // The cotangents of a step's membranes: in their final place, or those of a chunk of steps one after another.
  Rows<float> g_v(Index step) const {
    if (layer_.isRecurrent() && step >= 0) {
      return {pass_.g_v.rows().row(record_.firstRow(step)), pass_.g_v.rows().stride};
    }
    const Index place = sumsWeights() ? std::max<Index>(step, 0) % chunk_steps_ : 0;
    return {scratch_.rows.rows().row(place * samples()), width_};
  }

  void runBlock() {
    begin();
    for (Index step = pass_.extent.steps; step-- > 0;) {
      if (back_ != nullptr) back_->gather(step, record_.firstSample(), samples(), rowsOf(carried_));
      advance(step, gather(step));
      if (layer_.isRecurrent()) sendBack(step);
      if (!sumsWeights()) continue;
      if (convolution_ != nullptr) {
        accumulatePatches(step);
        continue;
      }
      if (step % chunk_steps_ != 0) continue;
      inputs_.accumulate(inputs_.chunking().indexOf(step, record_.firstSample()), !has_sums_, sums(), width_,
                         asConst(g_v(step)));
      has_sums_ = true;
    }
    end();
  }

  // Through recurrent weights.
  void sendBack(Index step) {
    if (collector_ != nullptr) return sendBackDelayed(step);
    if (back_ == nullptr) return of_spikes_.sendBack(step, asConst(g_v(step)), rowsOf(carried_), rowsOf(sent_));
    const Rows<float> arrived = rowsOf(sent_);
    of_spikes_.sendBack(asConst(g_v(step)), arrived);
    for (Index r = 0; r < samples(); ++r) {
      if (step >= ends()[r]) std::fill_n(arrived.row(r), width_, 0.0F);  // whatever the weights
      if (pass_.arrived) std::copy_n(arrived.row(r), width_, pass_.arrived.rows().row(record_.firstRow(step) + r));
    }
    back_->put(step, asConst(arrived), samples());
  }

  // Through synapses with delays, from a step and those after it to the spikes of the step before it.
  void sendBackDelayed(Index step) {
    const Rows<float> sent = rowsOf(sent_);
    collector_->collect(step, asConst(g_v(step)), sent);
    for (Index r = 0; r < samples(); ++r) {
      if (step < ends()[r]) std::copy_n(sent.row(r), width_, carried_.data() + r * width_);
    }
  }

  // The gradient of a convolution by the cotangents of a step.
  void accumulatePatches(Index step) {
    for (Index r = 0; r < samples(); ++r) {
      if (step >= ends()[r]) continue;
      convolution_->addGradient(pass_.inputs, record_.firstRow(step) + r, g_v(step).row(r), sum_patches_);
    }
  }

  // The cotangents of the state after the last step.
  void begin() {
    of_spikes_.begin();
    if (collector_ != nullptr) collector_->begin(record_.firstSample(), samples());
    for (unsigned i = 0; i < kNeuronStates; ++i) {
      if (!pass_.g_last.at(i)) continue;
      std::fill_n(g_state_.at(i).data(), samples() * width_, 0.0F);
      read(pass_.g_last.at(i), g_last_.at(i));
    }
    if (pass_.g_counts) read(pass_.g_counts, g_counts_);
    if (layer_.isRecurrent()) read(pass_.g_last.spikes, carried_);
  }

  // The block of an array [batch, neurons].
  void read(const Numbers& from, Buffer<float>& to) const {
    for (Index r = 0; r < samples(); ++r) from.read(record_.place(r), patch_.columns, to.data() + r * width_);
  }

  // The cotangents of the spikes of a step that take any.
  Rows<const float> gather(Index step) {
    if (isReadInPlace()) return record_.inPlace(pass_.g_spikes, step);
    // What the next step's recurrent currents send back; initially, and past the end of a sample, the state's
    // cotangent, which `carried_` holds until the sample's last step uses it.
    const Rows<float> g_s = of_spikes_.gather(step, layer_.isRecurrent() ? asConst(rowsOf(carried_)) : kNoRows);
    for (Index r = 0; pass_.sent && r < samples(); ++r) {
      pass_.sent.addTo(record_.firstRow(step) + r, patch_.first_column, patch_.columns, g_s.row(r));
    }
    if (pass_.g_spikes) add(pass_.g_spikes, step, g_s);
    for (Index r = 0; pass_.g_lists != nullptr && r < samples(); ++r) {
      pass_.g_lists->addTo(record_.firstRow(step) + r, patch_.first_column, patch_.columns, scratch_.of_lists,
                           g_s.row(r));
    }
    return asConst(g_s);
  }

  // Whether the cotangents can be read in place: only those of the output, in whole vectors.
  bool isReadInPlace() const {
    return pass_.above.g_v.data == nullptr && !pass_.sent && !layer_.isRecurrent() && pass_.g_spikes &&
           !pass_.g_spikes.is_bfloat16 && patch_.columns == width_;
  }

  void add(const Numbers& more, Index step, Rows<float> g_s) {
    row_.resize(static_cast<std::size_t>(patch_.columns));
    for (Index r = 0; r < samples(); ++r) {
      const Index place = (record_.firstRow(step) + r) * neurons() + patch_.first_column;
      const float* from = more.is_bfloat16 ? row_.data() : more.float32() + place;
      if (more.is_bfloat16) more.read(place, patch_.columns, row_.data());
      float* to = g_s.row(r);
      for (Index c = 0; c < patch_.columns; ++c) to[c] += from[c];
    }
  }

  // The time step of the neurons, and the sums that go with it; step -1 is the reset of the state before the first
  // step.
  void advance(Index step, Rows<const float> g_spikes) {
    using Place = BlockRecord::Place;
    const Index word = patch_.first_column / 64, row = record_.firstRow(step);
    const bool is_step = step >= 0;
    const auto own = [&](Buffer<float>& memory) { return asConst(rowsOf(memory)); };
    StepBackward call{
        .rows = samples(),
        .columns = patch_.columns,
        .constants = layer_.constants.from(patch_.first_column),
        .reset = layer_.reset,
        .detach_reset = layer_.detach_reset,
        .surrogate = layer_.surrogate,
        .step = step,
        .ends = ends(),
        .g_spikes = g_spikes,
        .listed = {is_step && pass_.listed ? pass_.listed.row(row) + word : nullptr, pass_.listed.words()},
        .g_counts = is_step && pass_.g_counts ? own(g_counts_) : kNoRows,
        .g_last = {},
        .after = record_.states(step),
        .before = is_step ? record_.states(step - 1) : NeuronState<Rows<const float>>{},
        .current = needsCurrents(is_step) ? record_.currents(step) : kNoRows,
        .given = stepSum(kSumGiven, is_step) == nullptr ? kNoRows : record_.given(step),
        .next_v = record_.inPlace(pass_.record, step - 1),
        .next_g_spikes = isReadInPlace() ? record_.inPlace(pass_.g_spikes, step - 1) : kNoRows,
        .g_state = {},
        .g_v = g_v(step),
        .sums = {},
        .sum_current = stepSum(kSumCurrent, is_step),
        .sum_given = stepSum(kSumGiven, is_step),
    };
    call.after.v = record_.membranes(step, Place::kNow, step - 1);
    call.before.v = is_step && needsBefore() ? record_.membranes(step - 1, Place::kBefore, step - 2) : kNoRows;
    for (unsigned i = 0; i < kNeuronStates; ++i) {
      call.g_last.at(i) = own(g_last_.at(i));
      call.g_state.at(i) = rowsOf(g_state_.at(i));
    }
    SecondState<const float*>& second = call.constants.second_state;
    if (!is_step) second.v_coupling = second.w_gain = nullptr;  // those of the first step: it is done
    for (unsigned i = 0; i < kGlifConstants; ++i) call.sums.at(i) = stepSum(i, is_step);
    kernels().stepBackward(call);
    if (is_step && layer_.constants.takesGainInside()) takeGain(g_v(step));
    if (is_step) summed_ += samples();  // the same rows at once, whether the first reset runs or not
    if (summed_ >= kRowsAtOnce) addSums();
    if (is_step && pass_.g_currents) writeCurrents(step);
    if (!is_step || !pass_.g_v || layer_.isRecurrent()) return;
    const Rows<float> to{pass_.g_v.rows().row(row) + patch_.first_column, pass_.g_v.rows().stride};
    if (pass_.extent.rows() * to.stride * 4 > kStreamedBytes) {
      return kernels().streamRows(asConst(g_v(step)), samples(), patch_.columns, nullptr, to);
    }
    for (Index r = 0; r < samples(); ++r) std::copy_n(g_v(step).row(r), patch_.columns, to.row(r));
  }

  // What the cotangents of given currents are multiplied with.
  void scaleCurrents() {
    const float *gain = layer_.constants.outerGain() + patch_.first_column, *factor = layer_.constants.factor();
    scale_.assign(gain, gain + patch_.columns);
    for (Index c = 0; factor != nullptr && c < patch_.columns; ++c) {
      scale_[static_cast<std::size_t>(c)] *= factor[patch_.first_column + c];
    }
  }

  // The cotangents of given currents.
  void writeCurrents(Index step) {
    const WritableNumbers& to = pass_.g_currents;
    const Index first = record_.firstRow(step) * neurons() + patch_.first_column;
    if (!to.is_bfloat16) {
      const Rows<float> out{to.float32() + first, neurons()};
      return kernels().streamRows(asConst(g_v(step)), samples(), patch_.columns, scale_.data(), out);
    }
    row_.resize(static_cast<std::size_t>(patch_.columns));
    for (Index r = 0; r < samples(); ++r) {
      kernels().affine(g_v(step).row(r), scale_.data(), nullptr, patch_.columns, row_.data());
      to.write(first + r * neurons(), patch_.columns, row_.data());
    }
  }

  void takeGain(Rows<float> g) const {
    const float* gain = layer_.constants.from(patch_.first_column).gain;
    for (Index r = 0; r < samples(); ++r) {
      for (Index c = 0; c < patch_.columns; ++c) g.row(r)[c] *= gain[c];
    }
  }

  // Where a step adds to a sum, nullptr if it does not: the reset before the first step involves only the thresholds.
  float* stepSum(unsigned kind, bool is_step) {
    const bool is_threshold = kind == Threshold || kind == ThresholdCoupling;
    const Index place = sums_.place(kind);
    return place >= 0 && (is_step || is_threshold) ? step_sums_.data() + place * width_ : nullptr;
  }

  // Whether a step needs its currents.
  bool needsCurrents(bool is_step) { return stepSum(Gain, is_step) != nullptr || stepSum(WGain, is_step) != nullptr; }

  // Whether a step needs the membranes before it.
  bool needsBefore() const {
    const GLIFConstants<WritableNumbers>& to = pass_.g_constants;
    return to.decay || to.second_state.w_membrane || to.second_state.w_jump;
  }

  // Those of the last rows.
  void addSums() {
    for (unsigned kind = 0; kind < kSums; ++kind) {
      const Index place = sums_.place(kind);
      if (place < 0) continue;
      float* const from = step_sums_.data() + place * width_;
      double* const to = sums_.of(record_.firstSample(), place) + patch_.first_column;
      for (Index c = 0; c < patch_.columns; ++c) to[c] += double{from[c]};
      std::fill_n(from, width_, 0.0F);
    }
    summed_ = 0;
  }

  // Whether anything needs the cotangents behind the reset of the first step.
  bool needsFirst() const {
    const lif_network::LayerState<WritableNumbers>& first = pass_.g_first;
    return first.v || first.w || first.spikes || first.earlier_spikes || sums_.place(Threshold) >= 0 ||
           sums_.place(ThresholdCoupling) >= 0;
  }

  // Through the reset of the first step, to the state before it.
  void end() {
    if (!needsFirst()) return;
    const Buffer<float> none(samples() * width_);
    advance(-1, {none.data(), width_});
    for (Index row = 0; pass_.g_first.earlier_spikes && row < earlierRows(layer_); ++row) writeEarlier(row);
    if (back_ != nullptr) back_->gather(-1, record_.firstSample(), samples(), rowsOf(carried_));
    for (Index r = 0; r < samples(); ++r) {
      const Index place = record_.place(r);
      if (pass_.g_first.v) pass_.g_first.v.write(place, patch_.columns, g_v(-1).row(r));
      if (pass_.g_first.w) pass_.g_first.w.write(place, patch_.columns, g_state_.w.data() + r * width_);
      if (pass_.g_first.spikes) pass_.g_first.spikes.write(place, patch_.columns, carried_.data() + r * width_);
    }
  }

  // The cotangents of recurrent spikes of the state but the last ones.
  void writeEarlier(Index row) {
    back_->gather(row - earlierRows(layer_) - 1, record_.firstSample(), samples(), rowsOf(carried_));
    for (Index r = 0; r < samples(); ++r) {
      const Index place = row * pass_.extent.batch * neurons() + record_.place(r);
      pass_.g_first.earlier_spikes.write(place, neurons(), carried_.data() + r * width_);
    }
  }

  LayerBackward& pass_;
  const TransposedSpikes& inputs_;
  const Layer& layer_;
  const Patch patch_;
  BlockRecord record_;
  SpikeCotangents of_spikes_;
  PatchScratch& scratch_;
  Sums& sums_;
  SumsOfWeights& sums_of_weights_;
  float* sum_patches_;         // the gradient of a convolution, packed
  const Index width_, block_;  // columns of whole vectors, samples of a block, of the last one fewer
  const Index chunk_steps_;
  bool has_sums_ = false;                        // of a chunk of rows at least
  NeuronState<Buffer<float>> g_state_, g_last_;  // [samples of a block, width]
  Buffer<float> carried_, sent_, g_counts_;      // likewise
  // Rows that are summed in float32 before their sums are added in float64.
  static constexpr Index kRowsAtOnce = 64;
  Buffer<float> step_sums_;  // [kinds of sums, width]
  Index summed_ = 0;         // rows in these
  std::vector<float> row_, scale_;
  std::unique_ptr<ConvolutionColumns> convolution_;
  std::unique_ptr<RecurrentCotangents> back_;     // through delays of recurrent spikes
  std::unique_ptr<SynapticCollector> collector_;  // through synapses with delays
};

std::vector<Patch> patchesOf(const LayerBackward& pass, const Threads& threads) {
  const Index neurons = pass.layer.neurons(), batch = pass.extent.batch;
  std::vector<Patch> patches;
  if (pass.layer.isRecurrent()) {
    const Index share = std::max<Index>((batch + threads.count() - 1) / threads.count(), 1);
    const Index samples = roundUp(share, backwardBlock(pass));
    for (Index sample = 0; neurons > 0 && sample < batch; sample += samples) {
      patches.push_back({0, neurons, sample, std::min(samples, batch - sample)});
    }
    return patches;
  }
  // A weight gradient is a sum over all samples: one thread has all of them.
  const Index above = pass.above.g_v.data == nullptr ? 0 : pass.above.weights.outputs;
  constexpr Index kConvolved = 2048;
  Index tile = columnsOfTile(pass.layer, kConvolved, above);
  if (computesAgain(pass)) {  // few enough that the states of all steps stay in the second-level cache
    constexpr Index kNumbers = Index{1} << 16;
    const Index of_column = (pass.extent.steps + 1) * backwardBlock(pass);
    tile = std::min(tile, std::max<Index>(kNumbers / of_column / 64 * 64, 64));
  }
  for (Index column = 0; column < neurons; column += tile) {
    patches.push_back({column, std::min(tile, neurons - column), 0, batch});
  }
  return patches;
}

// The gradients of delayed recurrent weights, and of their delays.
void finishDelayed(const LayerBackward& pass, SumsOfWeights& sums, const Threads& threads) {
  if (!pass.g_recurrent && !pass.g_recurrent_delays && !sumsGain(pass)) return;
  const Layer& layer = pass.layer;
  const Delays& delays = *layer.recurrent_delays;
  const Index batch = pass.extent.batch, rows = pass.extent.rows(), neurons = layer.neurons();
  const bool are_split = static_cast<bool>(pass.g_recurrent_delays);
  const BitSource source(pass.spikes.row(0), neurons);
  const SpikeLists sent(source, rows, neurons, batch, pass.extent.ends, threads);
  const Arrivals arrivals(sent, recurrentUnderWay(layer, pass.first), pass.extent, delays, are_split, threads);
  const float* const gain = layer.constants.outerGain();
  double* const sum_gain = sumsGain(pass) ? sums.gain : nullptr;
  const SplitSource split(arrivals);
  const ArrivingSource arriving(arrivals);
  if (layer.synapses != nullptr) {
    computeSynapseGradient({*layer.synapses, arriving, rows, pass.g_v.asConst(), gain, pass.g_recurrent, sum_gain},
                           threads);
    if (!are_split) return;
    const DelayedCotangents by_arrival(delays, pass.extent, pass.arrived.asConst(),
                                       recurrentUnderWay(layer, pass.g_last));
    return by_arrival.sumDelays(arrivals, pass.g_recurrent_delays, threads);
  }
  const RowSource& fed = are_split ? static_cast<const RowSource&>(split) : arriving;
  const SpikeLists lists(fed, rows, are_split ? 2 * neurons : neurons, batch, nullptr, threads);
  const TransposedSpikes transposed(lists, chunksOf(pass.extent), TransposedSpikes::Layout::kInPlace, threads);
  DelayGradient of_delays = are_split ? DelayGradient(delays, neurons) : DelayGradient();
  computeWeightGradient({transposed, pass.g_v.asConst(), layer.recurrent, pass.g_recurrent, gain, sum_gain,
                         are_split ? &of_delays : nullptr},
                        threads);
  if (are_split) of_delays.write(pass.g_recurrent_delays);
}

// The gradients of the weights of a recurrent layer, whose cotangents are complete only now.
void finishRecurrent(const LayerBackward& pass, const TransposedSpikes& inputs, SumsOfWeights& sums,
                     const Threads& threads) {
  const Layer& layer = pass.layer;
  const Index batch = pass.extent.batch, rows = pass.extent.rows(), neurons = layer.neurons();
  if (!layer.has_currents) computeWeightGradient(weightGradientOf(pass, inputs, sums), threads);
  if (layer.recurrent_delays != nullptr) return finishDelayed(pass, sums, threads);
  if (!pass.g_recurrent && !pass.g_synaptic_delays && !sumsGain(pass)) return;
  // A step's recurrent currents come from the spikes of the previous step; the first step's from the state.
  const DenseSource::Type type =
      pass.first.spikes.is_bfloat16 ? DenseSource::Type::kBfloat16 : DenseSource::Type::kFloat32;
  const DenseSource first(pass.first.spikes.data, type, neurons);
  const BitSource then(pass.spikes.row(0), neurons);
  const ChainedSource source(first, batch, then);
  if (pass.synaptic_cotangents != nullptr)
    return pass.synaptic_cotangents->correlate(source, pass.g_recurrent, pass.g_synaptic_delays, threads);
  const float* const gain = layer.constants.outerGain();
  double* const sum_gain = sumsGain(pass) ? sums.gain : nullptr;
  if (layer.synapses != nullptr) {
    return computeSynapseGradient({*layer.synapses, source, rows, pass.g_v.asConst(), gain, pass.g_recurrent, sum_gain},
                                  threads);
  }
  const SpikeLists spikes(source, rows, neurons, batch, pass.extent.ends, threads);
  const TransposedSpikes transposed(spikes, chunksOf(pass.extent), TransposedSpikes::Layout::kInPlace, threads);
  computeWeightGradient({transposed, pass.g_v.asConst(), layer.recurrent, pass.g_recurrent, gain, sum_gain, nullptr},
                        threads);
}

void writeSums(const LayerBackward& pass, const Sums& sums, const double* sum_gain) {
  const PaddedConstants& constants = pass.layer.constants;
  const float* gain = constants.takesGainInside() ? constants.from(0).gain : constants.outerGain();
  const float* bias = constants.bias();
  const Index neurons = pass.layer.neurons();
  std::vector<float> row(static_cast<std::size_t>(neurons));
  const auto write = [&](const WritableNumbers& to, auto value) {
    if (!to) return;
    for (Index neuron = 0; neuron < neurons; ++neuron) {
      row[static_cast<std::size_t>(neuron)] = static_cast<float>(value(neuron));
    }
    to.write(0, neurons, row.data());
  };
  const auto scaled = [&](unsigned kind) {
    return [&, kind](Index neuron) { return double{gain[neuron]} * sums.total(kind, neuron); };
  };
  write(pass.g_bias, scaled(kSumCurrent));
  write(pass.g_factor, scaled(kSumGiven));
  for (unsigned i = 0; i < kGlifConstants; ++i) {
    const WritableNumbers& to = pass.g_constants.at(i);
    // A current is the sum of products and the bias: so is the gradient of the gain.
    if (i == Gain && sumsGain(pass)) {
      write(to, [&](Index neuron) {
        return sum_gain[neuron] + (bias == nullptr ? 0.0 : double{bias[neuron]} * sums.total(kSumCurrent, neuron));
      });
    } else {
      write(to, [&](Index neuron) { return sums.total(i, neuron); });
    }
  }
}

// A patch begins within a row: where its neurons' recorded membranes do follows from those listed before them.
void countSlots(LayerBackward& pass, const Threads& threads) {
  const Index words = pass.listed.words(), batch = pass.extent.batch, rows = pass.extent.rows();
  pass.slots = Borrowed<std::int32_t>(rows * words);
  threads.run(pass.extent.steps, [&](Index step, Index) {
    for (Index row = step * batch; row < (step + 1) * batch; ++row) {
      Index count = 0;
      for (Index word = 0; word < words; ++word) {
        pass.slots[word * rows + row] = static_cast<std::int32_t>(std::min(count, pass.layer.capacity));
        count += countBits(pass.listed.row(row)[word]);
      }
    }
  });
}

}  // namespace

void runBackward(LayerBackward& pass, const Threads& threads) {
  const Index neurons = pass.layer.neurons();
  if (takesAllSteps(pass)) {
    Sums sums(pass);
    runAllSteps(pass, sums, threads);
    return writeSums(pass, sums, nullptr);
  }
  if (pass.listed_record) countSlots(pass, threads);
  if (pass.layer.synapses != nullptr) {
    pass.collecting =
        std::make_unique<const CollectingSynapses>(*pass.layer.synapses, pass.layer.constants.outerGain());
    if (pass.g_recurrent_delays) pass.arrived = KeptRows(pass.extent.rows(), neurons);
  }
  if (pass.layer.synaptic_delays != nullptr) {
    pass.synaptic_cotangents = std::make_unique<SynapticCotangents>(*pass.layer.synaptic_delays, pass.extent,
                                                                    recurrentArriving(pass.layer, pass.g_last),
                                                                    pass.layer.constants.outerGain());
  }
  if (!pass.g_v && (pass.keeps_g_v || pass.layer.isRecurrent())) pass.g_v = KeptRows(pass.extent.rows(), neurons);
  Sums sums(pass);
  Buffer<double> sum_gain(neurons);
  SumsOfWeights sums_of_weights{sum_gain.data(), {}};
  if (pass.split != nullptr) sums_of_weights.delays = DelayGradient(*pass.split, neurons);
  Chunking chunking = chunksOf(pass.extent);
  const PackedConvolution* convolution = pass.layer.convolution.get();
  if (!needsWeights(pass) || convolution != nullptr) chunking.extent.batch = 0;
  const auto layout = pass.layer.isRecurrent() ? TransposedSpikes::Layout::kInPlace : TransposedSpikes::Layout::kPacked;
  const TransposedSpikes inputs(pass.inputs, chunking, layout, threads);
  const std::vector<Patch> patches = patchesOf(pass, threads);
  // The gradient of a convolution is a sum over all patches, in their order.
  const Index of_patches = convolution == nullptr || !pass.g_weights ? 0 : convolution->layout().size();
  Buffer<float> sum_patches(of_patches * static_cast<Index>(patches.size()));
  std::vector<PatchScratch> scratch(static_cast<std::size_t>(threads.count()));
  threads.run(static_cast<Index>(patches.size()), [&](Index task, Index worker) {
    PatchBackward(pass, inputs, patches[static_cast<std::size_t>(task)], scratch[static_cast<std::size_t>(worker)],
                  sums, sums_of_weights, sum_patches.data() + task * of_patches)
        .run();
  });
  if (pass.layer.isRecurrent()) finishRecurrent(pass, inputs, sums_of_weights, threads);
  if (pass.synaptic_cotangents != nullptr)
    pass.synaptic_cotangents->writeFirst(pass.g_first.arriving ? pass.layer.synaptic_delays->longest() : 0,
                                         pass.g_first.arriving);
  if (pass.split != nullptr) sums_of_weights.delays.write(pass.g_delays);
  for (std::size_t task = 1; task < patches.size(); ++task) {
    const float* from = sum_patches.data() + static_cast<Index>(task) * of_patches;
    for (Index i = 0; i < of_patches; ++i) sum_patches[i] += from[i];
  }
  if (of_patches > 0) convolution->layout().unpack(sum_patches.data(), pass.g_weights);
  writeSums(pass, sums, sum_gain.data());
}

}  // namespace snnjax
