// Axonal delays of recurrent spikes, while a block of samples runs over time: what arrives in a step, and how cotangents
// come back. They include the one step that recurrent spikes always take.
#pragma once

#include <algorithm>
#include <vector>

#include "delays.hpp"

namespace snnjax {

// What arrives at a block of samples in one step. Rings of lists hold what is still under way.
class DelayLine : public SpikeRows {
 public:
  DelayLine(const Delays& delays, Index steps, Index samples)
      : SpikeRows(samples, delays.inputs()),
        delays_(delays),
        steps_(steps),
        samples_(samples),
        size_(std::max<Index>(std::min(delays.rows(), steps), 1)),
        lists_(static_cast<std::size_t>(size_ * samples)) {}

  // Starts a block of samples, [first, first + samples) of a batch, with what was sent before the first step.
  void begin(const UnderWay& pending, Index batch, Index first, Index samples) {
    for (List& list : lists_) list.clear();
    std::vector<float> dense(static_cast<std::size_t>(width_)), values(dense.size() + kListSlack);
    std::vector<std::uint32_t> ids(values.size());
    for (Index row = 0; row < pending.count(); ++row) {
      for (Index r = 0; r < samples; ++r) {
        pending.read(row, batch * width_, (first + r) * width_, width_, dense.data());
        bool all_ones = false;
        const std::uint32_t count = kernels().listNonZero(dense.data(), width_, ids.data(), values.data(), &all_ones);
        send(row - pending.count(), r, {ids.data(), all_ones ? nullptr : values.data(), count, false});
      }
    }
  }

  // Adds what a sample sends in a step, as a list; `values` nullptr: all are 1.
  void send(Index step, Index sample, const SpikeRow& row) {
    for (std::uint32_t k = 0; k < row.count; ++k) {
      const std::uint32_t id = row.ids[k];
      const Index arrival = step + delays_.whole(id);
      const float value = row.values == nullptr ? 1.0F : row.values[k];
      add(arrival, sample, id, value * delays_.now()[id]);
      const float later = delays_.next()[id];
      if (later != 0.0F) add(arrival + 1, sample, id, value * later);
    }
  }

  // Makes what arrives in a step the rows, and forgets what arrived in the step before.
  void arrive(Index step) {
    for (Index r = 0; r < samples_; ++r) {
      if (step > 0) at(step - 1, r).clear();
      const List& list = at(step, r);
      const auto count = static_cast<std::uint32_t>(list.ids.size());
      rows_[r] = {list.ids.data(), list.values.data(), count, Index{count} > longest_listed_};
    }
  }

  void expand(Index first, Index count, float* dense) const override {
    std::fill_n(dense, count * width_, 0.0F);
    for (Index r = 0; r < count; ++r) {
      const SpikeRow& row = rows_[first + r];
      for (std::uint32_t k = 0; k < row.count; ++k) dense[r * width_ + row.ids[k]] += row.values[k];
    }
  }

 private:
  struct List {
    std::vector<std::uint32_t> ids;
    std::vector<float> values;

    void clear() { ids.clear(), values.clear(); }
  };

  List& at(Index step, Index sample) { return lists_[static_cast<std::size_t>(step % size_ * samples_ + sample)]; }
  void add(Index step, Index sample, std::uint32_t id, float value) {
    if (step < 0 || step >= steps_) return;
    List& list = at(step, sample);
    list.ids.push_back(id);
    list.values.push_back(value);
  }

  const Delays& delays_;
  const Index steps_, samples_, size_;  // size: steps of the ring
  std::vector<List> lists_;             // [size, samples]
};

// The cotangents of the spikes of a block of samples, from those of what arrives, from the last step to the first.
class DelayedBack {
 public:
  DelayedBack(const Delays& delays, const UnderWay& left, const Extent& extent, Index samples, Index width)
      : delays_(delays),
        left_(left),
        extent_(extent),
        samples_(samples),
        width_(width),
        size_(std::max<Index>(std::min(delays.rows() - 1, extent.steps), 1)),
        arrived_((size_ + 1) * samples * width),
        row_(static_cast<std::size_t>(delays.inputs())),
        now_(row_.size()),
        later_(row_.size()) {}

  // Where those of what arrives in a step belong.
  Rows<float> arrived(Index step) { return {arrived_.data() + step % size_ * samples_ * width_, width_}; }

  // Those of what some samples, from `first` on, sent in a step: negative, before the first one. The cotangents of what
  // arrives later are there.
  void gather(Index step, Index first, Index samples, Rows<float> out) {
    for (std::size_t i = 0; i < row_.size(); ++i) {
      const Index arrival = step + delays_.whole(static_cast<Index>(i));
      now_[i] = place(arrival);
      later_[i] = delays_.next()[i] == 0.0F ? place(-1) : place(arrival + 1);
    }
    for (Index r = 0; r < samples; ++r) {
      const float* const arrived = arrived_.data() + r * width_;
      float* const to = out.row(r);
      for (std::size_t i = 0; i < row_.size(); ++i) {
        to[i] = delays_.now()[i] * arrived[now_[i] + i] + delays_.next()[i] * arrived[later_[i] + i];
      }
      addLeft(step, first + r, to);
    }
  }

 private:
  // Where a step's rows begin; those of no step are 0.
  std::size_t place(Index step) const {
    const bool is_step = step >= 0 && step < extent_.steps;
    return static_cast<std::size_t>((is_step ? step % size_ : size_) * samples_ * width_);
  }

  // What comes back through the state after the last step.
  void addLeft(Index step, Index sample, float* to) {
    const Index row = step - (extent_.ends[sample] - left_.count()), neurons = delays_.inputs();
    if (row < 0 || row >= left_.count()) return;
    left_.read(row, extent_.batch * neurons, sample * neurons, neurons, row_.data());
    for (std::size_t i = 0; i < row_.size(); ++i) to[i] += row_[i];
  }

  const Delays& delays_;
  const UnderWay left_;
  const Extent extent_;
  const Index samples_, width_, size_;  // size: steps of the ring
  Buffer<float> arrived_;               // [size + 1, samples, width], the last rows are 0
  std::vector<float> row_;
  std::vector<std::size_t> now_, later_;  // of each neuron, where the rows begin in which its shares arrive
};

}  // namespace snnjax
