// The forward pass's record of a patch's neurons, step by step; what is not recorded of their states is computed again.
#pragma once

#include "lif_layer.hpp"

namespace snnjax {

// Some columns of some samples.
struct Patch {
  Index first_column, columns, first_sample, samples;
};

inline constexpr Rows<const float> kNoRows{nullptr, 0};
inline Rows<const float> asConst(Rows<float> rows) { return {rows.data, rows.stride}; }

// Of one block of samples of a patch at a time. Step -1 is the state before the first step.
class BlockRecord {
 public:
  // Buffers for widening bfloat16 membranes: several are needed at once.
  enum class Place : Index { kNow, kBefore, kMarked };

  BlockRecord(const LayerBackward& pass, const Patch& patch)
      : pass_(pass),
        patch_(patch),
        width_(roundUp(patch.columns, kernels().lanes)),
        block_(std::min(backwardBlock(pass), patch.samples)),
        v_(kPlaces * block_ * width_),
        current_(pass.currents ? block_ * width_ : 0),
        given_(pass.currents.is_bfloat16 ? block_ * width_ : 0) {
    for (unsigned i = 0; i < kNeuronStates; ++i) has_.at(i) = static_cast<bool>(pass.first.at(i));
    if (!computesAgain(pass)) {
      has_.v = false;
      has_.w = has_.w && pass.needs_w;
    }
    for (unsigned i = 0; i < kNeuronStates; ++i) {
      if (has_.at(i)) states_.at(i) = Borrowed<float>((pass.extent.steps + 1) * block_ * width_);
    }
    if (!pass.listed_record || !pass.listed_record.is_bfloat16) return;
    const float* threshold = pass.layer.constants.from(patch.first_column).threshold;
    origins_.resize(static_cast<std::size_t>(patch.columns));
    std::transform(threshold, threshold + patch.columns, origins_.begin(), originOf);
  }

  void begin(Index first_sample, Index samples) {
    first_sample_ = first_sample;
    samples_ = samples;
    bool has_any = false;
    for (unsigned i = 0; i < kNeuronStates; ++i) {
      if (!has_.at(i)) continue;
      has_any = true;
      std::fill_n(states_.at(i).data(), samples_ * width_, 0.0F);
      for (Index r = 0; r < samples_; ++r) {
        pass_.first.at(i).read(place(r), patch_.columns, states_.at(i).data() + r * width_);
      }
    }
    if (has_any) computesAgain(pass_) ? computeAll() : computeOthers();
  }

  Index firstSample() const { return first_sample_; }
  Index samples() const { return samples_; }
  Index width() const { return width_; }  // columns of whole vectors
  Index firstRow(Index step) const { return step * pass_.extent.batch + first_sample_; }
  // Where a sample of the block begins in arrays [batch, neurons].
  Index place(Index sample) const { return (first_sample_ + sample) * pass_.layer.neurons() + patch_.first_column; }

  // The membranes after a step; where only those of listed neurons are recorded, 0 elsewhere. Those of the step that is
  // read `next`, where there is one, are fetched meanwhile: rows are too short and too far apart for the hardware
  // prefetcher. Float32 is read in place, and fetched by the kernels that do so.
  Rows<const float> membranes(Index step, Place place, Index next) {
    if (computesAgain(pass_)) return states(step).v;
    if (step >= 0 && pass_.listed_record) return listedMembranes(step, place, next);
    const Numbers& from = step < 0 ? pass_.first.v : pass_.record;
    const Index first = step < 0 ? first_sample_ : firstRow(step), neurons = pass_.layer.neurons();
    if (!from.is_bfloat16) return {from.float32() + first * neurons + patch_.first_column, neurons};
    const float* threshold = pass_.layer.constants.from(patch_.first_column).threshold;
    float* out = v_.data() + static_cast<Index>(place) * block_ * width_;
    for (Index r = 0; r < samples_; ++r) {
      float* row = out + r * width_;
      from.read((first + r) * neurons + patch_.first_column, patch_.columns, row);
      for (Index c = 0; c < patch_.columns; ++c) row[c] += originOf(threshold[c]);
      if (step >= 0 && next >= 0) fetchRow(firstRow(next) + r);
    }
    return {out, width_};
  }

  // What was computed again of the states after a step; data nullptr for the rest.
  NeuronState<Rows<const float>> states(Index step) const {
    NeuronState<Rows<const float>> rows{};
    for (unsigned i = 0; i < kNeuronStates; ++i) {
      if (has_.at(i)) rows.at(i) = {states_.at(i).data() + (step + 1) * block_ * width_, width_};
    }
    return rows;
  }

  // The currents of a step, where they are recorded or were given.
  Rows<const float> currents(Index step) {
    if (!pass_.currents || pass_.layer.isRecurrent()) return blockOf(pass_.record_current, step);
    const PaddedConstants& constants = pass_.layer.constants;
    const bool are_alike = constants.bias() == nullptr && constants.factor() == nullptr;
    if (are_alike && areReadInPlace(pass_.currents, patch_.columns)) return inPlace(pass_.currents, step);
    for (Index r = 0; r < samples_; ++r) {
      readCurrents(pass_.layer, pass_.currents, placeOf(step, r), patch_.first_column, patch_.columns,
                   current_.data() + r * width_);
    }
    return {current_.data(), width_};
  }

  // Those that were given, as they are.
  Rows<const float> given(Index step) {
    if (!pass_.currents.is_bfloat16) return inPlace(pass_.currents, step);
    for (Index r = 0; r < samples_; ++r) {
      pass_.currents.read(placeOf(step, r), patch_.columns, given_.data() + r * width_);
    }
    return {given_.data(), width_};
  }

  // The block in a step of an array [steps, batch, neurons], as it lies in memory: of float32 only.
  Rows<const float> inPlace(const Numbers& from, Index step) const {
    return from.is_bfloat16 || step < 0 ? kNoRows : blockOf(from.float32(), step);
  }

 private:
  static constexpr Index kPlaces = 3;

  // Where a sample's neurons begin in arrays [steps, batch, neurons].
  Index placeOf(Index step, Index sample) const {
    return (firstRow(step) + sample) * pass_.layer.neurons() + patch_.first_column;
  }
  NeuronState<Rows<float>> statesToWrite(Index step) {
    NeuronState<Rows<float>> rows{};
    for (unsigned i = 0; i < kNeuronStates; ++i) {
      if (has_.at(i)) rows.at(i) = {states_.at(i).data() + (step + 1) * block_ * width_, width_};
    }
    return rows;
  }

  Rows<const float> blockOf(const float* all, Index step) const {
    if (all == nullptr) return kNoRows;
    const Index neurons = pass_.layer.neurons();
    return {all + firstRow(step) * neurons + patch_.first_column, neurons};
  }

  Rows<const float> listedMembranes(Index step, Place place, Index next) {
    const Index capacity = pass_.layer.capacity, first_word = patch_.first_column / 64;
    const Numbers& from = pass_.listed_record;
    float* out = v_.data() + static_cast<Index>(place) * block_ * width_;
    for (Index r = 0; r < samples_; ++r) {
      const Index own = firstRow(step) + r, slot = slotOf(own);
      const std::uint64_t* listed = pass_.listed.row(own) + first_word;
      const Index left = capacity - slot, place_of_first = own * capacity + slot;
      const float* v = from.is_bfloat16 ? widened(listed, place_of_first, left) : from.float32() + place_of_first;
      kernels().expandMarked({listed, v, left}, width_, out + r * width_);
      if (next >= 0) fetchListed(firstRow(next) + r);
    }
    return {out, width_};
  }

  // The slot of a row in which the patch's first listed neuron is.
  Index slotOf(Index row) const { return pass_.slots[patch_.first_column / 64 * pass_.extent.rows() + row]; }

  // The patch's part of a row of membranes in bfloat16.
  void fetchRow(Index row) const {
    constexpr Index kNumbersOfLine = kCacheLine / sizeof(std::uint16_t);
    const std::uint16_t* from = pass_.record.bfloat16() + row * pass_.layer.neurons() + patch_.first_column;
    for (Index c = 0; c < patch_.columns; c += kNumbersOfLine) prefetch(from + c);
  }

  // And of those of listed neurons.
  void fetchListed(Index row) const {
    const Numbers from = pass_.listed_record.from(row * pass_.layer.capacity + slotOf(row));
    prefetch(from.data);
    prefetch(static_cast<const char*>(from.data) + kCacheLine);
  }

  // Those of listed neurons that a record in bfloat16 has from a place on, at most `left`.
  const float* widened(const std::uint64_t* listed, Index first, Index left) {
    const Index count = std::min(kernels().countMarks(listed, wordsOf(patch_.columns)), left);
    widened_.resize(static_cast<std::size_t>(patch_.columns + kListSlack));
    own_origins_.resize(widened_.size());
    kernels().compressMarked(listed, patch_.columns, origins_.data(), own_origins_.data());
    pass_.listed_record.read(first, count, widened_.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) widened_[i] += own_origins_[i];
    return widened_.data();
  }

  // All states, as the forward pass computed them: bit-identical.
  void computeAll() {
    const Index words = wordsOf(patch_.columns);
    const bool in_place = areReadInPlace(pass_.currents, patch_.columns);
    const auto ownOf = [&](const float* all) {
      return all == nullptr || !in_place ? nullptr : all + patch_.first_column;
    };
    spikes_.resize(static_cast<std::size_t>(samples_ * words));
    for (Index step = 0; step < pass_.extent.steps; ++step) {
      kernels().stepForward({
          .rows = samples_,
          .columns = patch_.columns,
          .constants = pass_.layer.constants.from(patch_.first_column),
          .reset = pass_.layer.reset,
          .step = step,
          .ends = pass_.extent.ends + first_sample_,
          .current = in_place ? inPlace(pass_.currents, step) : currents(step),
          .factor = ownOf(pass_.layer.constants.factor()),
          .term = ownOf(pass_.layer.constants.bias()),
          .before = states(step - 1),
          .state = statesToWrite(step),
          .counts = {nullptr, 0},
          .spikes = {spikes_.data(), words},
          .near = {nullptr, 0},
          .record = {nullptr, 0},
          .record_bfloat16 = {nullptr, 0},
          .record_current = {nullptr, 0},
          .record_streams = false,
      });
    }
  }

  // All but the membranes.
  void computeOthers() {
    Rows<const float> v = membranes(-1, Place::kBefore, -1);
    for (Index step = 0; step < pass_.extent.steps; ++step) {
      NeuronState<Rows<const float>> before = states(step - 1);
      before.v = v;
      v = membranes(step, step % 2 == 0 ? Place::kNow : Place::kBefore, step + 1 < pass_.extent.steps ? step + 1 : -1);
      kernels().stepAgain({
          .rows = samples_,
          .columns = patch_.columns,
          .constants = pass_.layer.constants.from(patch_.first_column),
          .step = step,
          .ends = pass_.extent.ends + first_sample_,
          .before = before,
          .v = v,
          .current = currents(step),
          .after = statesToWrite(step),
      });
    }
  }

  const LayerBackward& pass_;
  const Patch patch_;
  const Index width_;
  const Index block_;  // samples of a block, of the last one fewer
  Index first_sample_ = 0, samples_ = 0;
  Buffer<float> v_;                      // [places, block, width]
  NeuronState<bool> has_{};              // which states are computed again
  NeuronState<Borrowed<float>> states_;  // those, [steps + 1, block, width], first those before all steps
  std::vector<float> origins_, own_origins_, widened_;  // of a listed record in bfloat16
  std::vector<std::uint64_t> spikes_;                   // of a step: computed again, but not read
  Buffer<float> current_, given_;                       // [block, width], of given ones
};

}  // namespace snnjax
