// The cotangents of the spikes of a patch: what the layer above, and recurrent weights, send back to them.
#pragma once

#include <utility>
#include <vector>

#include "lif_layer_record.hpp"

namespace snnjax {

// Of one block of samples at a time, from the last step to the first.
//
// Only some neurons take a cotangent of their spike: those listed and, for a surrogate of bounded support, only those
// whose slope is not 0. If they are few, theirs are computed one by one; otherwise all are, in dense products of
// several steps at once, because what comes from above is not part of the recurrence.
class SpikeCotangents {
 public:
  // What a thread needs, kept for its next patch.
  struct Scratch {
    PanelProduct above, recurrent;
    PackedWeights above_rows, recurrent_rows, g, split;
    CollectingSynapses::Scratch synapses;
  };

  SpikeCotangents(const LayerBackward& pass, const Patch& patch, BlockRecord& record, Scratch& scratch)
      : pass_(pass),
        patch_(patch),
        record_(record),
        scratch_(scratch),
        width_(record.width()),
        steps_of_group_(std::clamp<Index>(kGroupNumbers / (backwardBlock(pass) * width_), 1, kGroupSteps)) {
    const Layer& layer = pass.layer;
    scratch_.g.resize(steps_of_group_ * backwardBlock(pass), width_);
    if (pass.above.g_v.data != nullptr && (choosesTakers() || pass.above.exact_within > 0.0F)) {
      packRows(pass.above.weights, patch.first_column, patch.columns, pass.above.gain, scratch_.above_rows);
    }
    if (!layer.recurrent.numbers) return;
    scratch_.recurrent.pack(layer.recurrent, 0, layer.neurons(), width_, layer.constants.outerGain());
    if (choosesTakers()) {
      packRows(layer.recurrent, 0, layer.neurons(), layer.constants.outerGain(), scratch_.recurrent_rows);
    }
  }

  // Starts a block of samples.
  void begin() { group_ = kNoGroup; }

  // What reaches the spikes of a step, in memory that the caller may add to; `start`, what reaches them otherwise, may
  // be absent.
  Rows<float> gather(Index step, Rows<const float> start) {
    reach(step);
    const Index place = (step - firstStep()) * record_.samples();
    const Rows<float> out{scratch_.g.rows().row(place), width_};
    const bool has_above = pass_.above.g_v.data != nullptr;
    if (has_above && !are_few_) {
      if (!is_multiplied_) multiplyGroup();
      for (Index r = 0; start.data != nullptr && r < record_.samples(); ++r) add(start.row(r), out.row(r));
      return out;
    }
    for (Index r = 0; r < record_.samples(); ++r) {
      start.data == nullptr ? zero(out.row(r)) : copy(start.row(r), out.row(r));
      if (has_above) addFromAbove(step, r, out.row(r));
    }
    return out;
  }

  // What recurrent currents of a step send back to all that arrived with them.
  void sendBack(Rows<const float> g, Rows<float> arrived) {
    const Index samples = record_.samples();
    if (pass_.collecting != nullptr) return pass_.collecting->collect(g, samples, arrived, scratch_.synapses);
    scratch_.recurrent.multiply({g, samples}, arrived, scratch_.split);
  }

  // What they send back to the spikes of the step before; `carried` is that of the samples that
  // are still running, and is left as it is for the others.
  void sendBack(Index step, Rows<const float> g, Rows<float> carried, Rows<float> scratch) {
    const Index samples = record_.samples();
    const std::int32_t* ends = pass_.extent.ends + record_.firstSample();
    if (step > 0) reach(step - 1);
    if (step > 0 && are_few_ && pass_.collecting == nullptr) {
      for (Index r = 0; r < samples; ++r) {
        if (step >= ends[r]) continue;
        zero(carried.row(r));
        addDots(takers(step - 1, r), scratch_.recurrent_rows, g.row(r), carried.row(r));
      }
      return;
    }
    const bool all_run = std::all_of(ends, ends + samples, [&](std::int32_t end) { return step < end; });
    const Rows<float> sent = all_run ? carried : scratch;
    sendBack(g, sent);
    for (Index r = 0; !all_run && r < samples; ++r) {
      if (step < ends[r]) copy(sent.row(r), carried.row(r));
    }
  }

 private:
  // Up to this share of neurons that take cotangents, these are computed one by one; above it a dense product of all of
  // them is faster: measured by tests/benchmarks, see xla_ext/README.md.
  static constexpr double kDotShare = 0.2;
  // Steps of a dense product: with the samples of a block, enough rows to reuse a strip of weights often while it is in
  // the first-level cache, and few enough that the results are still in the second-level cache when they are read.
  static constexpr Index kGroupSteps = 8, kGroupNumbers = 16384;
  static constexpr Index kNoGroup = -1;

  // Whether some neurons may take nothing.
  bool choosesTakers() const { return pass_.listed || pass_.layer.surrogate.isBounded(); }
  Index words() const { return wordsOf(patch_.columns); }
  Index firstStep() const { return group_ * steps_of_group_; }
  Index steps() const { return std::min(steps_of_group_, pass_.extent.steps - firstStep()); }

  void zero(float* row) const { std::fill_n(row, width_, 0.0F); }
  void copy(const float* from, float* to) const { std::copy_n(from, width_, to); }
  void add(const float* from, float* to) const {
    for (Index c = 0; c < width_; ++c) to[c] += from[c];
  }

  // Switches to the group of a step: which neurons take a cotangent, and whether they are few.
  void reach(Index step) {
    if (step / steps_of_group_ == group_) return;
    group_ = step / steps_of_group_;
    is_multiplied_ = are_few_ = false;
    if (!choosesTakers()) return;
    if (pass_.layer.surrogate.isBounded()) markSlopes(pass_.layer.surrogate, marks_);
    Index count = 0;
    for (Index own = firstStep(); own < firstStep() + steps(); ++own) {
      for (Index r = 0; r < record_.samples(); ++r) count += kernels().countMarks(takers(own, r), words());
    }
    const Index all = steps() * record_.samples() * patch_.columns;
    are_few_ = static_cast<double>(count) < kDotShare * static_cast<double>(all);
  }

  // The neurons of a row that take a cotangent, a bit each.
  const std::uint64_t* takers(Index step, Index sample) const {
    if (pass_.layer.surrogate.isBounded()) return marks_.data() + markPlace(step, sample);
    return listed(step, sample);
  }
  const std::uint64_t* listed(Index step, Index sample) const {
    return pass_.listed.row(record_.firstRow(step) + sample) + patch_.first_column / 64;
  }
  std::ptrdiff_t markPlace(Index step, Index sample) const {
    return ((step - firstStep()) * record_.samples() + sample) * words();
  }

  // Marks the listed neurons for which this surrogate has a slope.
  void markSlopes(SurrogateForm surrogate, std::vector<std::uint64_t>& to) {
    to.resize(static_cast<std::size_t>(steps() * record_.samples() * words()));
    const NeuronConstants constants = pass_.layer.constants.from(patch_.first_column);
    for (Index step = firstStep(); step < firstStep() + steps(); ++step) {
      const Index next_step = step - steps_of_group_;
      const Rows<const float> v = record_.membranes(step, BlockRecord::Place::kMarked, next_step);
      const Rows<const float> next = record_.inPlace(pass_.record, next_step), w = record_.states(step).w;
      for (Index r = 0; r < record_.samples(); ++r) {
        std::uint64_t* marks = to.data() + markPlace(step, r);
        const float* own_w = w.data == nullptr ? nullptr : w.row(r);
        kernels().markSlopes(surrogate, constants, v.row(r), own_w, next.data == nullptr ? nullptr : next.row(r),
                             patch_.columns, marks);
        for (Index word = 0; pass_.listed && word < words(); ++word) marks[word] &= listed(step, r)[word];
      }
    }
  }

  // What the layer above sends back in all steps of the group.
  void multiplyGroup() {
    const Above& above = pass_.above;
    if (!has_panels_) {
      scratch_.above.pack(above.weights, patch_.first_column, patch_.columns, width_, above.gain, above.rounds);
      has_panels_ = true;
    }
    const Rows<const float> first{above.g_v.row(record_.firstRow(firstStep())), above.g_v.stride};
    scratch_.above.multiply({first, record_.samples(), steps(), pass_.extent.batch * above.g_v.stride},
                            scratch_.g.rows(), scratch_.split);
    if (above.exact_within > 0.0F) setNear();
    is_multiplied_ = true;
  }

  // In float32 for the neurons near the threshold, after rounded products for all of them.
  void setNear() {
    // A boxcar is as wide as its height is small.
    markSlopes({Surrogate::Boxcar, 0.5F / pass_.above.exact_within, std::numeric_limits<float>::infinity()}, near_);
    for (Index step = firstStep(); step < firstStep() + steps(); ++step) {
      for (Index r = 0; r < record_.samples(); ++r) {
        float* out = scratch_.g.rows().row((step - firstStep()) * record_.samples() + r);
        const std::uint32_t count = dots(near_.data() + markPlace(step, r), scratch_.above_rows,
                                         pass_.above.g_v.row(record_.firstRow(step) + r));
        for (std::uint32_t k = 0; k < count; ++k) out[ids_[k]] = dots_[k];
      }
    }
  }

  // The same for the neurons of a row that take any.
  void addFromAbove(Index step, Index sample, float* out) {
    const Index row = record_.firstRow(step) + sample;
    const bool is_last = sample + 1 == record_.samples();
    fetchAbove(is_last ? record_.firstRow(step - 1) : row + 1);
    addDots(takers(step, sample), scratch_.above_rows, pass_.above.g_v.row(row), out);
  }

  // out[k] += <weights[k], g> for the neurons k that take any.
  void addDots(const std::uint64_t* takers, const PackedWeights& weights, const float* g, float* out) {
    const std::uint32_t count = dots(takers, weights, g);
    for (std::uint32_t k = 0; k < count; ++k) out[ids_[k]] += dots_[k];
  }

  // <weights[k], g> for the neurons k that are marked, in `ids_` and `dots_`; returns how many there are.
  std::uint32_t dots(const std::uint64_t* marks, const PackedWeights& weights, const float* g) {
    ids_.resize(static_cast<std::size_t>(roundUp(patch_.columns, 64)) + kListSlack);
    dots_.resize(ids_.size());
    const std::uint32_t count = kernels().listBits(marks, patch_.columns, ids_.data());
    kernels().dotRows(ids_.data(), count, weights.rows(), weights.columns(), g, dots_.data());
    return count;
  }

  // Prefetches a row of the cotangents above, which are too far apart for the hardware prefetcher.
  void fetchAbove(Index row) const {
    if (row < 0) return;
    constexpr Index kFloatsPerLine = static_cast<Index>(kCacheLine / sizeof(float));
    const float* from = pass_.above.g_v.row(row);
    for (Index n = 0; n < pass_.above.weights.outputs; n += kFloatsPerLine) prefetch(from + n);
  }

  const LayerBackward& pass_;
  const Patch patch_;
  BlockRecord& record_;
  Scratch& scratch_;
  const Index width_, steps_of_group_;
  Index group_ = kNoGroup;
  bool has_panels_ = false, is_multiplied_ = false, are_few_ = false;
  std::vector<std::uint64_t> marks_, near_;  // [steps of the group, samples, words]
  std::vector<std::uint32_t> ids_;
  std::vector<float> dots_;
};

}  // namespace snnjax
