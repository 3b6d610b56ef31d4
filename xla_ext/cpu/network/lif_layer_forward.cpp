#include <algorithm>
#include <memory>
#include <optional>

#include "lif_layer_lists.hpp"
#include "recurrent_delays.hpp"

namespace snnjax {
namespace {

// A record above this size has left the caches by the time the backward pass reads it.
constexpr Index kStreamBytes = Index{16} << 20;

struct Patch {
  Index first_column, columns, first_sample, samples;
};

// What a thread needs for a patch, kept for its next one.
struct Scratch {
  WeightTile weights, recurrent;
  std::vector<float> dense, sums;
  std::vector<float> v;  // of all steps of a sample
};

class PatchForward {
 public:
  // `uses`, of each row of the weights, is that of `usesOfWeights`.
  PatchForward(LayerForward& pass, double uses, ReachedMembranes& reached, const Patch& patch, Scratch& scratch)
      : pass_(pass),
        layer_(pass.layer),
        uses_(uses * static_cast<double>(patch.samples) / static_cast<double>(pass.extent.batch)),
        reached_(reached),
        near_(pass.near),
        patch_(patch),
        scratch_(scratch),
        width_(roundUp(patch.columns, kernels().lanes)),
        block_(std::min(kForwardBlock, patch.samples)),
        counts_(pass.counts == nullptr ? 0 : block_ * width_),
        current_(block_ * width_),
        state_spikes_(layer_.isRecurrent() ? block_ : 0, layer_.neurons()) {
    for (unsigned i = 0; i < kNeuronStates; ++i) {
      if (pass.first.at(i)) state_.at(i) = Buffer<float>(block_ * width_);
    }
    if (layer_.isRecurrent()) lister_ = std::make_unique<RowLister>(pass, reached);
    if (layer_.recurrent_delays != nullptr) {
      line_ = std::make_unique<DelayLine>(*layer_.recurrent_delays, pass.extent.steps, block_);
    }
    if (pass.shares != nullptr) arriving_ = std::make_unique<ArrivingPairs>(*pass.shares, block_);
    if (layer_.convolution == nullptr) return;
    convolution_ = std::make_unique<ConvolutionColumns>(*layer_.convolution, patch.first_column, patch.columns);
  }

  void run() {
    const auto takeInto = [&](WeightTile& tile, const Weights& weights, double uses) {
      tile.take(weights, patch_.first_column, patch_.columns, width_, uses);
    };
    if (convolution_ == nullptr && !layer_.has_currents) takeInto(scratch_.weights, layer_.weights, uses_);
    if (layer_.recurrent.numbers) takeInto(scratch_.recurrent, layer_.recurrent, 0.0);  // as often as neurons fire
    for (Index first = 0; first < patch_.samples; first += kForwardBlock) {
      first_sample_ = patch_.first_sample + first;
      samples_ = std::min(kForwardBlock, patch_.samples - first);
      runBlock();
    }
  }

 private:
  void runBlock() {
    begin();
    for (Index r = 0; takesAllSteps() && r < samples_; ++r) advanceAll(r);
    for (Index step = takesAllSteps() ? pass_.extent.steps : 0; step < pass_.extent.steps; ++step) {
      advance(step, drive(step));
      if (layer_.isRecurrent()) list(step);
    }
    end();
  }

  Index neurons() const { return layer_.neurons(); }
  // Of the neurons, one row for each sample; data nullptr where there is none.
  NeuronState<Rows<float>> state() {
    NeuronState<Rows<float>> rows;
    for (unsigned i = 0; i < kNeuronStates; ++i) rows.at(i) = {state_.at(i).data(), width_};
    return rows;
  }
  Rows<float> current() { return {current_.data(), width_}; }
  Index place(Index r) const { return (first_sample_ + r) * neurons() + patch_.first_column; }

  void begin() {
    if (pass_.counts != nullptr) std::fill_n(counts_.data(), samples_ * width_, 0.0F);
    std::vector<float> dense(static_cast<std::size_t>(layer_.isRecurrent() ? neurons() : 0));
    for (Index r = 0; r < samples_; ++r) {
      for (unsigned i = 0; i < kNeuronStates; ++i) {
        if (pass_.first.at(i)) pass_.first.at(i).read(place(r), patch_.columns, state().at(i).row(r));
      }
      if (!layer_.isRecurrent()) continue;
      pass_.first.spikes.read(place(r), neurons(), dense.data());
      state_spikes_.set(r, dense.data());
    }
    if (line_ != nullptr)
      line_->begin(recurrentUnderWay(layer_, pass_.first), pass_.extent.batch, first_sample_, samples_);
    if (arriving_ != nullptr) {
      arriving_->begin(recurrentArriving(layer_, pass_.first), pass_.extent.batch, first_sample_, samples_);
    }
  }

  // The currents of a step.
  Rows<const float> drive(Index step) {
    const float* bias = layer_.constants.bias();
    const Rows<const float> start{bias == nullptr ? nullptr : bias + patch_.first_column, 0};
    const Index row = step * pass_.extent.batch + first_sample_;
    if (layer_.has_currents) {
      if (isReadInPlace()) return {pass_.currents.float32() + row * neurons() + patch_.first_column, neurons()};
      for (Index r = 0; r < samples_; ++r) {
        const Index place = (row + r) * neurons() + patch_.first_column;
        readCurrents(layer_, pass_.currents, place, patch_.first_column, patch_.columns, current().row(r));
      }
    } else if (convolution_ != nullptr) {
      convolve(row, start.data);
    } else {
      scratch_.weights.multiply(*pass_.inputs, row, samples_, start, current(), scratch_.dense);
    }
    if (layer_.isRecurrent()) feedBack(step);
    return asConst(current());
  }

  // Adds the recurrent currents of a step.
  void feedBack(Index step) {
    const auto add = [&](const SpikeRows& spikes, Index first) {
      if (layer_.synapses != nullptr) return addSynapses(spikes, first);
      if (arriving_ != nullptr) return sendDelayed(spikes, first, step);
      scratch_.recurrent.multiply(spikes, first, samples_, asConst(current()), current(), scratch_.dense);
    };
    if (line_ != nullptr) {
      line_->arrive(step);
      add(*line_, 0);
    } else if (step == 0) {
      add(state_spikes_, 0);
    } else {
      add(*pass_.lists, (step - 1) * pass_.extent.batch + first_sample_);
    }
  }

  // What spikes send through the synapses that exist.
  void addSynapses(const SpikeRows& spikes, Index first) {
    const auto& [all, weights] = *layer_.synapses;
    for (Index r = 0; r < samples_; ++r) {
      addSent(ListedRow(spikes, first + r).row(), all, weights, current().row(r), scratch_.sums);
    }
  }

  // What they send through synapses with delays, and adds what arrives.
  void sendDelayed(const SpikeRows& spikes, Index first, Index step) {
    reach(step);
    for (Index r = 0; r < samples_; ++r) {
      arriving_->send(r, ListedRow(spikes, first + r).row());
      arriving_->addTo(r, current().row(r));
    }
  }

  // Goes on to a step, at which the state of some samples is the last one.
  void reach(Index step) {
    if (step > 0) arriving_->advance();
    for (Index r = 0; pass_.last.arriving && r < samples_; ++r) {
      if (pass_.extent.ends[first_sample_ + r] == step) arriving_->write(r, pass_.extent.batch, pass_.last.arriving);
    }
  }

  // Whether currents are those given, but for the layer's factor and bias.
  bool isReadInPlace() const {
    return layer_.has_currents && !layer_.isRecurrent() && areReadInPlace(pass_.currents, patch_.columns);
  }

  void convolve(Index row, const float* bias) {
    for (Index r = 0; r < samples_; ++r) {
      float* out = current().row(r);
      if (bias == nullptr) {
        std::fill_n(out, width_, 0.0F);
      } else {
        std::copy_n(bias, patch_.columns, out);
      }
      convolution_->add(*pass_.inputs, row + r, out);
    }
  }

  // The membranes and the true spikes of a step.
  void advance(Index step, Rows<const float> currents) {
    const Index row = step * pass_.extent.batch + first_sample_;
    const Index word = patch_.first_column / 64, words = pass_.spikes.words();
    const Index place = row * neurons() + patch_.first_column;
    const WritableNumbers record = pass_.record.from(place);
    const auto blockOf = [&](float* all) { return Rows<float>{all == nullptr ? nullptr : all + place, neurons()}; };
    const auto ownOf = [&](const float* all) {
      return all == nullptr || !isReadInPlace() ? nullptr : all + patch_.first_column;
    };
    kernels().stepForward({
        .rows = samples_,
        .columns = patch_.columns,
        .constants = layer_.constants.from(patch_.first_column),
        .reset = layer_.reset,
        .step = step,
        .ends = pass_.extent.ends + first_sample_,
        .current = currents,
        .factor = ownOf(layer_.constants.factor()),
        .term = ownOf(layer_.constants.bias()),
        .before = {},
        .state = state(),
        .counts = {counts_.data(), width_},
        .spikes = {pass_.spikes.row(row) + word, words},
        .near = {near_ ? near_.row(row) + word : nullptr, words},
        .record = {record.is_bfloat16 ? nullptr : record.float32(), neurons()},
        .record_bfloat16 = {record.is_bfloat16 ? record.bfloat16() : nullptr, neurons()},
        .record_current = blockOf(pass_.record_current),
        .record_streams = pass_.extent.rows() * neurons() * 4 > kStreamBytes,
    });
    for (Index r = 0; reached_ && r < samples_; ++r) keepReached(row + r, state().v.row(r));
  }

  // Whether the steps of a sample can be taken at once: given currents whose membranes are not recorded, of neurons
  // without other states.
  bool takesAllSteps() const {
    const bool is_plain = state_.w.data() == nullptr && state_.remaining.data() == nullptr;
    const bool records = pass_.record || pass_.record_current != nullptr;
    return isReadInPlace() && is_plain && !records && takesStepsAtOnce(pass_.extent.steps);
  }

  // The membranes and the true spikes of all steps of a sample.
  void advanceAll(Index r) {
    const Index batch = pass_.extent.batch, steps = pass_.extent.steps, sample = first_sample_ + r;
    const Index word = patch_.first_column / 64, words = batch * pass_.spikes.words();
    const auto own = [&](const float* all) { return all == nullptr ? nullptr : all + patch_.first_column; };
    if (reached_) scratch_.v.resize(static_cast<std::size_t>(steps * width_));
    kernels().stepsForward({
        .steps = steps,
        .columns = patch_.columns,
        .constants = layer_.constants.from(patch_.first_column),
        .reset = layer_.reset,
        .end = pass_.extent.ends[sample],
        .current = {pass_.currents.float32() + place(r), batch * neurons()},
        .next = sample + 1 < batch ? neurons() : 0,
        .factor = own(layer_.constants.factor()),
        .term = own(layer_.constants.bias()),
        .state = state().v.row(r),
        .counts = pass_.counts == nullptr ? nullptr : counts_.data() + r * width_,
        .spikes = {pass_.spikes.row(sample) + word, words},
        .near = {near_ ? near_.row(sample) + word : nullptr, words},
        .v = {reached_ ? scratch_.v.data() : nullptr, width_},
    });
    for (Index step = 0; reached_ && step < steps; ++step) {
      keepReached(step * batch + sample, scratch_.v.data() + step * width_);
    }
  }

  void keepReached(Index row, const float* v) {
    const Index word = patch_.first_column / 64;
    marks_.resize(static_cast<std::size_t>(wordsOf(patch_.columns)));
    const std::uint64_t *spikes = pass_.spikes.row(row) + word, *near = near_.row(row) + word;
    for (std::size_t i = 0; i < marks_.size(); ++i) marks_[i] = spikes[i] | near[i];
    reached_.put(row, patch_.first_column, patch_.columns, marks_.data(), v);
  }

  // The spikes of a recurrent layer that the next step sees.
  void list(Index step) {
    for (Index r = 0; r < samples_; ++r) {
      const Index row = step * pass_.extent.batch + first_sample_ + r;
      lister_->list(row, state().v.row(r));
      pass_.lists->list(first_sample_ / kForwardBlock, row);
      if (line_ == nullptr) continue;
      const SpikeRow& sent = *pass_.lists->row(row);
      line_->send(step, r, sent.is_dense ? ListedRow(*pass_.lists, row).row() : sent);
    }
  }

  void end() {
    if (arriving_ != nullptr) reach(pass_.extent.steps);
    for (Index r = 0; r < samples_; ++r) {
      for (unsigned i = 0; i < kNeuronStates; ++i) {
        if (pass_.last.at(i)) pass_.last.at(i).write(place(r), patch_.columns, state().at(i).row(r));
      }
      if (pass_.counts != nullptr) std::copy_n(counts_.data() + r * width_, patch_.columns, pass_.counts + place(r));
      if (!pass_.last.spikes) continue;
      std::vector<float> dense(static_cast<std::size_t>(neurons()));
      const Index end = pass_.extent.ends[first_sample_ + r];
      if (end == 0) {
        state_spikes_.expand(r, 1, dense.data());
      } else {
        pass_.lists->expand((end - 1) * pass_.extent.batch + first_sample_ + r, 1, dense.data());
      }
      pass_.last.spikes.write(place(r), neurons(), dense.data());
    }
  }

  static Rows<const float> asConst(Rows<float> rows) { return {rows.data, rows.stride}; }

  LayerForward& pass_;
  const Layer& layer_;
  const double uses_;          // of each row of the weights by the patch
  ReachedMembranes& reached_;  // may be absent
  Bits& near_;
  const Patch patch_;
  Scratch& scratch_;
  const Index width_, block_;                // columns of whole vectors, samples of a block, of the last one fewer
  Index first_sample_ = 0, samples_ = 0;     // of the block
  NeuronState<Buffer<float>> state_;         // [samples of a block, width]
  Buffer<float> counts_, current_;           // likewise
  std::vector<std::uint64_t> marks_;         // of a row's neurons
  StepSpikes state_spikes_;                  // of the state before the first step
  std::unique_ptr<RowLister> lister_;        // of a recurrent layer
  std::unique_ptr<DelayLine> line_;          // of delayed recurrent spikes
  std::unique_ptr<ArrivingPairs> arriving_;  // through synapses with delays
  std::unique_ptr<ConvolutionColumns> convolution_;
};

// The columns of a patch; `uses` as of `usesOfWeights`. Weights that are read in place take no cache: the wider, the
// fewer patches.
Index tileOf(const Layer& layer, double uses) {
  constexpr Index kConvolved = 4096, kInPlace = 1024;
  if (layer.isRecurrent()) return std::max<Index>(layer.neurons(), 1);
  const bool is_read_in_place = layer.convolution == nullptr && !layer.has_currents && uses < WeightTile::kUsesToPack;
  return is_read_in_place ? evenTile(layer.neurons(), 64, kInPlace) : columnsOfTile(layer, kConvolved);
}

// The patches of a layer. Samples are cut at whole blocks of rows.
std::vector<Patch> patchesOf(const LayerForward& pass, Index tile, const Threads& threads) {
  const Index neurons = pass.layer.neurons(), batch = pass.extent.batch;
  const Index tiles = std::max<Index>((neurons + tile - 1) / tile, 1);
  const Index shares = std::max<Index>(threads.count() / tiles, 1);
  const Index samples = roundUp(std::max<Index>((batch + shares - 1) / shares, 1), kForwardBlock);
  std::vector<Patch> patches;
  for (Index column = 0; column < neurons; column += tile) {
    for (Index sample = 0; sample < batch; sample += samples) {
      patches.push_back({column, std::min(tile, neurons - column), sample, std::min(samples, batch - sample)});
    }
  }
  return patches;
}

// How often the inputs use each row of the weights on average; counted until tiles are packed at once, for any number
// of samples of a patch.
double usesOfWeights(const LayerForward& pass) {
  if (pass.layer.has_currents) return 0.0;
  const double inputs = static_cast<double>(std::max<Index>(pass.layer.weights.inputs, 1));
  const double enough = WeightTile::kUsesToPack * inputs * static_cast<double>(forwardBlocks(pass.extent.batch));
  double entries = 0.0;
  for (Index row = 0; row < pass.extent.rows() && entries < enough; ++row) entries += pass.inputs->row(row)->count;
  return entries / inputs;
}

// The lists of a feed-forward layer: a row is whole only when all its columns are done.
void listRows(LayerForward& pass, const ReachedMembranes& reached, const Threads& threads) {
  constexpr Index kRowsPerTask = 8;  // some rows overflow their lists, which takes much longer, often those of one step
  const Index rows = pass.extent.rows(), neurons = pass.layer.neurons();
  const bool are_recorded = pass.layer.hasLists() && !reached;
  std::vector<std::optional<RowLister>> listers(static_cast<std::size_t>(threads.count()));
  threads.run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](Index task, Index worker) {
    std::optional<RowLister>& lister = listers[static_cast<std::size_t>(worker)];
    if (!lister) lister.emplace(pass, reached);
    const Index end = std::min((task + 1) * kRowsPerTask, rows);
    for (Index row = task * kRowsPerTask; row < end; ++row) {
      if (reached && row + 1 < end) reached.fetch(row + 1);
      lister->list(row, are_recorded ? pass.record.float32() + row * neurons : nullptr);
    }
  });
}

}  // namespace

void runForward(LayerForward& pass, const Threads& threads) {
  const Layer& layer = pass.layer;
  const double uses = usesOfWeights(pass);
  const Index tile = tileOf(layer, uses);
  if (layer.hasLists()) pass.near = Bits(pass.extent.rows(), layer.neurons());
  if (layer.synaptic_delays != nullptr) pass.shares = std::make_unique<const SynapticShares>(*layer.synaptic_delays);
  ReachedMembranes reached;
  const bool are_recorded = pass.record && !pass.record.is_bfloat16;
  if (layer.hasLists() && !layer.isRecurrent() && !are_recorded && layer.neurons() > 0) {
    reached = ReachedMembranes(pass.extent, layer.neurons(), tile);
  }
  const std::vector<Patch> patches = patchesOf(pass, tile, threads);
  std::vector<Scratch> scratch(static_cast<std::size_t>(threads.count()));
  threads.run(static_cast<Index>(patches.size()), [&](Index task, Index worker) {
    PatchForward(pass, uses, reached, patches[static_cast<std::size_t>(task)],
                 scratch[static_cast<std::size_t>(worker)])
        .run();
  });
  if (!layer.isRecurrent() && (layer.hasLists() || pass.num_spikes != nullptr)) listRows(pass, reached, threads);
}

}  // namespace snnjax
