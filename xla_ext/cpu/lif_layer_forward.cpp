#include <algorithm>
#include <bit>
#include <functional>
#include <memory>

#include "lif_layer.hpp"

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
  std::vector<float> dense;
};

// The membranes above the second threshold, which lists are cut by: those of a word of neurons side by side where the
// word begins. Few are, so that most of this memory is never touched.
class ReachedMembranes {
 public:
  ReachedMembranes() = default;
  ReachedMembranes(Index rows, Index words) : words_(words), memory_(rows * words * 64) {}

  explicit operator bool() const { return static_cast<bool>(memory_); }

  // Those of the neurons `reached` of a word, whose membranes begin at `v`.
  void put(Index row, Index word, std::uint64_t reached, const float* v) {
    float* out = memory_.data() + (row * words_ + word) * 64;
    for (std::uint64_t rest = reached; rest != 0; rest &= rest - 1) *out++ = v[std::countr_zero(rest)];
  }

  // Those of a word of a row.
  const float* at(Index row, Index word) const { return memory_.data() + (row * words_ + word) * 64; }

  // That of a neuron of a row; `reached` are the row's.
  float at(Index row, Index id, const std::uint64_t* reached) const {
    const std::uint64_t before = reached[id / 64] & ((std::uint64_t{1} << (id % 64)) - 1);
    return memory_[(row * words_ + id / 64) * 64 + countBits(before)];
  }

 private:
  Index words_ = 0;
  Borrowed<float> memory_;
};

// Records the membranes of the listed neurons of a row, if they are asked for.
class ListedRecord {
 public:
  explicit ListedRecord(const LayerForward& pass)
      : pass_(pass), row_(pass.listed_record ? static_cast<std::size_t>(pass.layer.capacity) : 0) {}

  // From all membranes of the row.
  void write(Index row, const float* v) {
    if (row_.empty()) return;
    Index slot = 0;
    for (Index word = 0; word < pass_.spikes.words(); ++word) {
      for (std::uint64_t rest = listed(row, word); rest != 0; rest &= rest - 1) {
        const Index id = word * 64 + std::countr_zero(rest);
        put(slot++, id, v[id]);
      }
    }
    finish(row, slot);
  }

  // From those above the second threshold, which `reached` marks.
  void write(Index row, const ReachedMembranes& membranes, const std::vector<std::uint64_t>& reached) {
    if (row_.empty()) return;
    Index slot = 0;
    for (Index word = 0; word < pass_.spikes.words(); ++word) {
      const std::uint64_t listed_here = listed(row, word);
      const float* v = membranes.at(row, word);
      for (std::uint64_t rest = reached[static_cast<std::size_t>(word)]; rest != 0; rest &= rest - 1, ++v) {
        const Index bit = std::countr_zero(rest);
        if ((listed_here >> bit & 1) != 0) put(slot++, word * 64 + bit, *v);
      }
    }
    finish(row, slot);
  }

  // Of a row after the end of its sample.
  void writeNone(Index row) {
    if (!row_.empty()) finish(row, 0);
  }

 private:
  std::uint64_t listed(Index row, Index word) const { return pass_.spikes.row(row)[word] | pass_.near.row(row)[word]; }
  void put(Index slot, Index id, float v) {
    const bool is_distance = pass_.listed_record.is_bfloat16;
    const float origin = is_distance ? originOf(pass_.layer.constants.from(id).threshold[0]) : 0.0F;
    row_[static_cast<std::size_t>(slot)] = v - origin;
  }
  void finish(Index row, Index slot) {
    std::fill(row_.begin() + slot, row_.end(), 0.0F);
    pass_.listed_record.write(row * pass_.layer.capacity, pass_.layer.capacity, row_.data());
  }

  const LayerForward& pass_;
  std::vector<float> row_;
};

class PatchForward {
 public:
  PatchForward(LayerForward& pass, ReachedMembranes& reached, const Patch& patch, Scratch& scratch)
      : pass_(pass),
        layer_(pass.layer),
        reached_(reached),
        near_(pass.near),
        patch_(patch),
        scratch_(scratch),
        width_(roundUp(patch.columns, kernels().lanes)),
        v_(kForwardBlock * width_),
        w_(layer_.constants.hasSecondState() ? kForwardBlock * width_ : 0),
        counts_(kForwardBlock * width_),
        current_(kForwardBlock * width_),
        state_spikes_(layer_.isRecurrent() ? kForwardBlock : 0, layer_.neurons()) {
    if (layer_.convolution == nullptr) return;
    convolution_ = std::make_unique<ConvolutionColumns>(*layer_.convolution, patch.first_column, patch.columns);
  }

  void run() {
    const auto packInto = [&](WeightTile& tile, const Weights& weights) {
      tile.pack(weights, patch_.first_column, patch_.columns, width_);
    };
    if (convolution_ == nullptr) packInto(scratch_.weights, layer_.weights);
    if (layer_.isRecurrent()) packInto(scratch_.recurrent, layer_.recurrent);
    for (Index first = 0; first < patch_.samples; first += kForwardBlock) {
      first_sample_ = patch_.first_sample + first;
      samples_ = std::min(kForwardBlock, patch_.samples - first);
      runBlock();
    }
  }

 private:
  void runBlock() {
    begin();
    for (Index step = 0; step < pass_.extent.steps; ++step) {
      drive(step);
      advance(step);
      if (layer_.isRecurrent()) list(step);
    }
    end();
  }

  Index neurons() const { return layer_.neurons(); }
  Rows<float> v() { return {v_.data(), width_}; }
  Rows<float> w() { return {layer_.constants.hasSecondState() ? w_.data() : nullptr, width_}; }
  Rows<float> current() { return {current_.data(), width_}; }
  Index place(Index r) const { return (first_sample_ + r) * neurons() + patch_.first_column; }

  void begin() {
    std::fill_n(counts_.data(), samples_ * width_, 0.0F);
    std::vector<float> dense(static_cast<std::size_t>(neurons()));
    for (Index r = 0; r < samples_; ++r) {
      pass_.first_v.read(place(r), patch_.columns, v().row(r));
      if (layer_.constants.hasSecondState()) pass_.first_w.read(place(r), patch_.columns, w().row(r));
      if (!layer_.isRecurrent()) continue;
      pass_.first_spikes.read(place(r), neurons(), dense.data());
      state_spikes_.set(r, dense.data());
    }
  }

  // The currents of a step.
  void drive(Index step) {
    const float* bias = layer_.constants.bias();
    const Rows<const float> start{bias == nullptr ? nullptr : bias + patch_.first_column, 0};
    const Index row = step * pass_.extent.batch + first_sample_;
    if (convolution_ != nullptr) return convolve(row, start.data);
    scratch_.weights.multiply(pass_.inputs, row, samples_, start, current(), scratch_.dense);
    if (!layer_.isRecurrent()) return;
    const SpikeRows& before = step == 0 ? static_cast<const SpikeRows&>(state_spikes_) : *pass_.lists;
    scratch_.recurrent.multiply(before, step == 0 ? 0 : row - pass_.extent.batch, samples_, asConst(current()),
                                current(), scratch_.dense);
  }

  void convolve(Index row, const float* bias) {
    for (Index r = 0; r < samples_; ++r) {
      float* out = current().row(r);
      if (bias == nullptr) {
        std::fill_n(out, width_, 0.0F);
      } else {
        std::copy_n(bias, patch_.columns, out);
      }
      convolution_->add(pass_.inputs, row + r, out);
    }
  }

  // The membranes and the true spikes of a step.
  void advance(Index step) {
    const Index row = step * pass_.extent.batch + first_sample_;
    const Index word = patch_.first_column / 64, words = pass_.spikes.words();
    const Index place = row * neurons() + patch_.first_column;
    const WritableNumbers record = pass_.record.from(place);
    const auto blockOf = [&](float* all) { return Rows<float>{all == nullptr ? nullptr : all + place, neurons()}; };
    kernels().stepForward({
        .rows = samples_,
        .columns = patch_.columns,
        .constants = layer_.constants.from(patch_.first_column),
        .reset = layer_.reset,
        .step = step,
        .ends = pass_.extent.ends + first_sample_,
        .current = asConst(current()),
        .v = v(),
        .w = w(),
        .counts = {counts_.data(), width_},
        .spikes = {pass_.spikes.row(row) + word, words},
        .near = {near_ ? near_.row(row) + word : nullptr, words},
        .record = {record.is_bfloat16 ? nullptr : record.float32(), neurons()},
        .record_bfloat16 = {record.is_bfloat16 ? record.bfloat16() : nullptr, neurons()},
        .record_current = blockOf(pass_.record_current),
        .record_streams = pass_.extent.rows() * neurons() * 4 > kStreamBytes,
    });
    if (reached_) keepReached(step);
  }

  void keepReached(Index step) {
    const Index row = step * pass_.extent.batch + first_sample_, first_word = patch_.first_column / 64;
    for (Index r = 0; r < samples_; ++r) {
      for (Index word = 0; word < wordsOf(patch_.columns); ++word) {
        const Index at = first_word + word;
        reached_.put(row + r, at, pass_.spikes.row(row + r)[at] | near_.row(row + r)[at], v().row(r) + word * 64);
      }
    }
  }

  // The spikes of a recurrent layer that the next step sees.
  void list(Index step) {
    Selection selection(layer_.capacity, pass_.spikes.words());
    ListedRecord record(pass_);
    for (Index r = 0; r < samples_; ++r) {
      const Index sample = first_sample_ + r, row = step * pass_.extent.batch + sample;
      if (step >= pass_.extent.ends[sample]) {
        record.writeNone(row);
        continue;
      }
      if (pass_.num_spikes != nullptr) pass_.num_spikes[row] = static_cast<std::int32_t>(countOf(row));
      if (layer_.hasLists()) {
        if (pass_.dropped != nullptr) {
          pass_.dropped[sample] += static_cast<std::int32_t>(std::max<Index>(countOf(row) - layer_.capacity, 0));
        }
        selection.cut(pass_.spikes.row(row), near_.row(row), [&](Index id) { return v().row(r)[id]; });
        record.write(row, v().row(r));
      }
      pass_.lists->list(first_sample_ / kForwardBlock, row);
    }
  }

  Index countOf(Index row) const {
    return Selection(layer_.capacity, pass_.spikes.words()).count(pass_.spikes.row(row));
  }

  void end() {
    for (Index r = 0; r < samples_; ++r) {
      pass_.last_v.write(place(r), patch_.columns, v().row(r));
      if (pass_.last_w) pass_.last_w.write(place(r), patch_.columns, w().row(r));
      if (pass_.counts != nullptr) std::copy_n(counts_.data() + r * width_, patch_.columns, pass_.counts + place(r));
      if (!pass_.last_spikes) continue;
      std::vector<float> dense(static_cast<std::size_t>(neurons()));
      const Index end = pass_.extent.ends[first_sample_ + r];
      if (end == 0) {
        state_spikes_.expand(r, 1, dense.data());
      } else {
        pass_.lists->expand((end - 1) * pass_.extent.batch + first_sample_ + r, 1, dense.data());
      }
      pass_.last_spikes.write(place(r), neurons(), dense.data());
    }
  }

  static Rows<const float> asConst(Rows<float> rows) { return {rows.data, rows.stride}; }

  LayerForward& pass_;
  const Layer& layer_;
  ReachedMembranes& reached_;  // may be absent
  Bits& near_;
  const Patch patch_;
  Scratch& scratch_;
  const Index width_;
  Index first_sample_ = 0, samples_ = 0;    // of the block
  Buffer<float> v_, w_, counts_, current_;  // [samples of a block, width]
  StepSpikes state_spikes_;                 // of the state before the first step
  std::unique_ptr<ConvolutionColumns> convolution_;
};

// The patches of a layer. Samples are cut at whole blocks of rows.
std::vector<Patch> patchesOf(const LayerForward& pass, const Threads& threads) {
  const Index neurons = pass.layer.neurons(), batch = pass.extent.batch;
  const Index tile = pass.layer.isRecurrent() ? std::max<Index>(neurons, 1) : columnsOfTile(pass.layer);
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

// The lists of a feed-forward layer: a row is whole only when all its columns are done.
void listRows(LayerForward& pass, const ReachedMembranes& reached, const Threads& threads) {
  const Layer& layer = pass.layer;
  threads.run(pass.extent.batch, [&](Index sample, Index) {
    Selection selection(layer.capacity, pass.spikes.words());
    ListedRecord record(pass);
    std::vector<std::uint64_t> before_cut(static_cast<std::size_t>(pass.spikes.words()));
    for (Index step = 0; step < pass.extent.steps; ++step) {
      const Index row = step * pass.extent.batch + sample;
      if (step >= pass.extent.ends[sample]) {
        record.writeNone(row);
        continue;
      }
      const Index count = selection.count(pass.spikes.row(row));
      if (pass.num_spikes != nullptr) pass.num_spikes[row] = static_cast<std::int32_t>(count);
      if (!layer.hasLists()) continue;
      if (pass.dropped != nullptr) {
        pass.dropped[sample] += static_cast<std::int32_t>(std::max<Index>(count - layer.capacity, 0));
      }
      std::uint64_t *spikes = pass.spikes.row(row), *near = pass.near.row(row);
      std::transform(spikes, spikes + pass.spikes.words(), near, before_cut.begin(), std::bit_or<>());
      const float* all = reached ? nullptr : pass.record.float32() + row * layer.neurons();
      selection.cut(spikes, near, [&](Index id) { return reached ? reached.at(row, id, before_cut.data()) : all[id]; });
      reached ? record.write(row, reached, before_cut) : record.write(row, all);
    }
  });
}

}  // namespace

void runForward(LayerForward& pass, const Threads& threads) {
  const Layer& layer = pass.layer;
  const Index rows = pass.extent.rows();
  if (layer.hasLists()) pass.near = Bits(rows, layer.neurons());
  ReachedMembranes reached;
  const bool are_recorded = pass.record && !pass.record.is_bfloat16;
  if (layer.hasLists() && !layer.isRecurrent() && !are_recorded) {
    reached = ReachedMembranes(rows, wordsOf(layer.neurons()));
  }
  const std::vector<Patch> patches = patchesOf(pass, threads);
  std::vector<Scratch> scratch(static_cast<std::size_t>(threads.count()));
  threads.run(static_cast<Index>(patches.size()), [&](Index task, Index worker) {
    PatchForward(pass, reached, patches[static_cast<std::size_t>(task)], scratch[static_cast<std::size_t>(worker)])
        .run();
  });
  if (!layer.isRecurrent() && (layer.hasLists() || pass.num_spikes != nullptr)) listRows(pass, reached, threads);
}

}  // namespace snnjax
