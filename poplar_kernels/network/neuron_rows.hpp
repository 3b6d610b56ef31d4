// The neurons of a tile in a step, shared by the codelets that advance them.
#pragma once

#include "../workers.hpp"
#include "neuron.hpp"

namespace snnjax {

constexpr float kNeverListed = -__builtin_inff();  // exceeds no threshold

// Element of row t of a history, or of its only row where none is kept.
inline unsigned historyOf(bool keep_history, unsigned t, unsigned width) { return keep_history ? t * width : 0; }

// The neurons of sample `b` in step `t` of a vertex that advances them.
template <class V>
class NeuronRows {
 public:
  // `selected` is the row of `v` and `raise`, the fields that the selection reads.
  NeuronRows(V& vertex, unsigned t, unsigned b, unsigned selected)
      : vertex_(vertex), first_(b * vertex.neurons), selected_(selected * vertex.neurons) {
    const unsigned width = vertex.batch * vertex.neurons;
    v_before_ = &vertex.membranes[historyOf(vertex.keep_history, t, width) + first_];
    v_after_ = &vertex.membranes[historyOf(vertex.keep_history, t + 1, width) + first_];
    if constexpr (V::kHasSecond) {
      w_before_ = &vertex.w[historyOf(vertex.keep_second, t, width) + first_];
      w_after_ = &vertex.w[historyOf(vertex.keep_second, t + 1, width) + first_];
    }
  }

  // One step of the neurons from `j`; the sum comes without the bias. Returns which of them fire.
  template <class Of, class N>
  N advance(unsigned j, Of numbers, N sum) const {
    const N v_old = Of::load(v_before_ + j), resting = Of::load(&vertex_.threshold[j]);
    if constexpr (V::kHasSecond) {
      return advanceBoth(j, numbers, v_old, resting, sum + Of::load(&vertex_.bias[j]));
    } else {
      const N u = resetMembrane(v_old, fires(v_old, resting), resting, vertex_.reset);
      const N gained = Of::load(&vertex_.gain[j]) * (sum + Of::load(&vertex_.bias[j]));
      return yield(j, numbers, Of::load(&vertex_.decay[j]) * u + gained, resting);
    }
  }

  // Past the end of a sequence.
  template <class Of>
  void freeze(unsigned j, Of) const {
    Of::store(v_after_ + j, Of::load(v_before_ + j));
    Of::store(&vertex_.v[selected_ + j], Of::fill(kNeverListed));
    if constexpr (V::kHasSecond) Of::store(w_after_ + j, Of::load(w_before_ + j));
  }

 private:
  template <class Of, class N>
  N advanceBoth(unsigned j, Of numbers, N v_old, N resting, N current) const {
    const SecondOf<V, Of> second(vertex_, j, numbers);
    const N w_old = Of::load(w_before_ + j), limit = resting + second.raise(w_before_, j);
    const N spikes = fires(v_old, limit), u = resetMembrane(v_old, spikes, limit, vertex_.reset);
    const N w_new = second.withoutCurrent(v_old, w_old, spikes) + second[WGain] * current;
    Of::store(w_after_ + j, w_new);
    const N raise = second.raise(w_after_, j);
    if (vertex_.raises) Of::store(&vertex_.raise[selected_ + j], raise);
    const N v_new = Of::load(&vertex_.decay[j]) * u + Of::load(&vertex_.gain[j]) * current;
    return yield(j, numbers, v_new + second[VCoupling] * w_new, resting + raise);
  }

  template <class Of, class N>
  N yield(unsigned j, Of, N v_new, N limit) const {
    float* const counts = &vertex_.counts[first_ + j];
    const N fired = fires(v_new, limit);
    Of::store(v_after_ + j, v_new);
    Of::store(&vertex_.v[selected_ + j], v_new);
    Of::store(counts, Of::load(counts) + fired);
    return fired;
  }

  V& vertex_;
  unsigned first_, selected_;  // of the sample in [batch, neurons], and of the selected row
  const float *v_before_, *w_before_ = nullptr;
  float *v_after_, *w_after_ = nullptr;
};

// How many of the steps of a block, after `before` others, are inside of a sequence.
inline unsigned stepsInside(unsigned length, unsigned before, unsigned num_steps) {
  return length < before ? 0 : smaller(length - before, num_steps);
}

// The numbers of all samples, two neighbours at a time, dealt out to the workers: body(b, j, N{}).
template <class Body>
inline void forEachOwnNumber(unsigned batch, unsigned neurons, unsigned worker, Body&& body) {
  const unsigned pairs = (neurons + 1) / 2;
  unsigned pair = worker;
  for (unsigned b = 0; b < batch; ++b) {
    for (; pair < pairs; pair += poplar::MultiVertex::numWorkers()) {
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
      if (neurons % 2 == 0) {
        body(b, 2 * pair, Numbers<float2>{});
        continue;
      }
#endif
      for (unsigned j = 2 * pair; j < smaller(2 * pair + 2, neurons); ++j) body(b, j, Numbers<float>{});
    }
    pair -= pairs;
  }
}

}  // namespace snnjax
