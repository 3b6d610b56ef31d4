// Axonal delays of recurrent spikes, while a block of samples runs over time: what arrives in a step, and how
// cotangents come back. They include the one step that recurrent spikes always take.
#pragma once

#include <vector>

#include "cpu/delays/delays.hpp"

namespace snnjax {

// What arrives at a block of samples in one step. Rings of lists hold what is still under way.
class DelayLine : public SpikeRows {
 public:
  DelayLine(const Delays& delays, Index steps, Index samples);

  // Starts a block of samples, [first, first + samples) of a batch, with what was sent before the first step.
  void begin(const UnderWay& pending, Index batch, Index first, Index samples);
  // Adds what a sample sends in a step, as a list.
  void send(Index step, Index sample, const SpikeRow& row);
  // Makes what arrives in a step the rows, and forgets what arrived in the step before.
  void arrive(Index step);
  void expand(Index first, Index count, float* dense) const override;

 private:
  struct List {
    std::vector<std::uint32_t> ids;
    std::vector<float> values;

    void clear() { ids.clear(), values.clear(); }
  };

  List& at(Index step, Index sample) { return lists_[static_cast<std::size_t>(step % size_ * samples_ + sample)]; }
  void add(Index step, Index sample, std::uint32_t id, float value);

  const Delays& delays_;
  const Index steps_, samples_, size_;  // size: steps of the ring
  std::vector<List> lists_;             // [size, samples]
};

// The cotangents of the spikes of a block of samples, from those of what arrives, from the last step to the first.
class RecurrentCotangents {
 public:
  // `left` are those of what is under way at the end.
  RecurrentCotangents(const Delays& delays, const UnderWay& left, const Extent& extent, Index samples, Index width);

  // Takes those of what arrives in a step, a row for each sample.
  void put(Index step, Rows<const float> arrived, Index samples);
  // Those of what samples [first, first + samples) of the batch sent in a step, negative before the first one; those of
  // what arrives later are there.
  void gather(Index step, Index first, Index samples, Rows<float> out);

 private:
  // Where a step's columns begin; those of no step are 0.
  float* columns(Index step) {
    const bool is_step = step >= 0 && step < extent_.steps;
    return arrived_.data() + (is_step ? step % size_ : size_) * width_ * lanes_;
  }
  void addLeft(Index step, Index sample, float* to);

  const Delays& delays_;
  const UnderWay left_;
  const Extent extent_;
  const Index width_, lanes_, size_;  // lanes: samples of whole vectors; size: steps of the ring
  // Of a neuron all samples lie side by side: its shares arrive in steps of its own, far apart in memory.
  Buffer<float> arrived_;  // [size + 1, width, lanes], the last columns are 0
  Buffer<float> sent_;     // [width, lanes]
  std::vector<float> row_;
};

}  // namespace snnjax
