// The neurons of a tile over time, shared by the codelets that advance them.
#pragma once

#include "../vertex.hpp"
#include "neuron.hpp"

namespace snnjax {

// The marks (conventions.hpp) of the neuron `j` and its neighbour.
class Marker {
 public:
  explicit Marker(unsigned j)
      : fires_(of(kFirstMark >> j % kNeuronsOfMark)), near_(of(kFirstMark >> kNeuronsOfMark >> j % kNeuronsOfMark)) {}
  unsigned operator()(float2 v, float2 threshold, float2 second_threshold) const {
    const Mask marks = ((v > threshold) & fires_) | ((v > second_threshold) & near_);
    return static_cast<unsigned>(marks[0] | marks[1]);
  }

 private:
  static Mask of(unsigned mark) { return Mask{static_cast<int>(mark), static_cast<int>(mark >> 1)}; }
  Mask fires_, near_;
};

// Of `num_steps` steps after the first `before`, those that a sequence has.
inline unsigned stepsInside(unsigned length, unsigned before, unsigned num_steps) {
  return length < before ? 0 : smaller(length - before, num_steps);
}

// The neuron `j` of sample `b`, and its neighbour, of a vertex that advances them, with their state after the latest
// step: what every step needs stays in registers, as far as these suffice.
template <class V>
class NeuronRun {
 public:
  // Before step `t` of all steps.
  NeuronRun(V& vertex, unsigned t, unsigned b, unsigned j)
      : vertex_(vertex),
        j_(j),
        width_(vertex.batch * vertex.neurons),
        v_at_(&vertex.membranes[(vertex.keep_history ? t * width_ : 0) + b * vertex.neurons + j]),
        bias_(Pair::load(&vertex.bias[j])),
        decay_(Pair::load(&vertex.decay[j])),
        gain_(Pair::load(&vertex.gain[j])),
        resting_(Pair::load(&vertex.threshold[j])),
        second_resting_(Pair::load(&vertex.second_threshold[j])),
        v_(Pair::load(v_at_)),
        limit_(resting_),
        marker_(j) {
    if constexpr (V::kCounts) {
      counts_at_ = &vertex.counts[b * vertex.neurons + j];
      counts_ = Pair::load(counts_at_);
    }
    if constexpr (V::kHasSecond) {
      w_at_ = &vertex.w[(vertex.keep_second ? t * width_ : 0) + b * vertex.neurons + j];
      w_ = Pair::load(w_at_);
      limit_ = resting_ + second().raise(w_);
    }
    spikes_ = fires(v_, limit_);
  }

  // One step; the sum comes without the bias, and `row` is that of what is offered. Returns which fire.
  float2 advance(float2 sum, unsigned char reset, unsigned row) {
    const float2 current = sum + bias_, u = resetMembrane(v_, spikes_, limit_, reset);
    float2 second_limit = second_resting_;
    if constexpr (V::kHasSecond) {
      w_ = second().withoutCurrent(v_, w_, spikes_) + second()[WGain] * current;
      v_ = decay_ * u + gain_ * current + second()[VCoupling] * w_;
      const float2 raise = second().raise(w_);
      limit_ = resting_ + raise;
      second_limit += raise;
    } else {
      v_ = decay_ * u + gain_ * current;
    }
    spikes_ = fires(v_, limit_);
    if constexpr (V::kCounts) counts_ += spikes_;
    store(row, marker_(v_, limit_, second_limit));
    return spikes_;
  }

  // A step past the end of a sequence.
  void freeze(unsigned row) { store(row, 0); }

  void storeCounts() const {
    if constexpr (V::kCounts) Pair::store(counts_at_, counts_);
  }
  float2 membrane() const { return v_; }

 private:
  SecondOf<V> second() const { return {vertex_, j_}; }

  void store(unsigned row, unsigned marks) {
    v_at_ += vertex_.keep_history ? width_ : 0;
    Pair::store(v_at_, v_);
    Pair::store(&vertex_.offered[row * vertex_.offered_stride + j_], v_);
    if constexpr (V::kHasSecond) {
      w_at_ += vertex_.keep_second ? width_ : 0;
      Pair::store(w_at_, w_);
    }
    vertex_.marks[(row * vertex_.neurons + j_) / 2] = marks;
  }

  V& vertex_;
  unsigned j_, width_;
  float *v_at_, *w_at_ = nullptr, *counts_at_ = nullptr;
  float2 bias_, decay_, gain_, resting_, second_resting_, v_, limit_;
  float2 spikes_ = {}, w_ = {}, counts_ = {};
  Marker marker_;
};

// The neurons of all samples, two neighbours at a time, dealt out to the workers: body(b, j).
inline void forEachOwnPair(unsigned batch, unsigned neurons, unsigned worker, auto&& body) {
  unsigned j = 2 * worker;
  for (unsigned b = 0; b < batch; ++b, j -= neurons) {
    for (; j < neurons; j += 2 * poplar::MultiVertex::numWorkers()) body(b, j);
  }
}

}  // namespace snnjax
