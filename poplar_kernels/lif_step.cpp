// lif_step: one step of dense leaky integrate-and-fire neurons, with all the conventions of snnjax.ops.lif_step.
#include "conventions.hpp"
#include "fields.hpp"
#include "neuron.hpp"
#include "workers.hpp"

namespace snnjax {

// x rounded as a T would hold it.
template <class T>
inline float roundedTo(float x) {
  return toFloat(static_cast<T>(x));
}
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
template <class T>
inline float2 roundedTo(float2 x) {
  return float2{roundedTo<T>(x[0]), roundedTo<T>(x[1])};
}
#endif

template <class N>
inline N spikesOf(N v, N threshold, bool inclusive) {
  return inclusive ? firesAt(v, threshold) : fires(v, threshold);
}

// Workers share rows; rows of an odd number of halves in twos, so that none shares a word.
template <class T>
inline Range rowsOf(unsigned worker, unsigned rows, unsigned neurons) {
  return shareOf(rows, worker, neurons % kPerWord<T> == 0 ? 1 : kPerWord<T>);
}

template <class T>
class LifStep : public poplar::MultiVertex {
 public:
  In<T> v, current;                  // [rows, neurons]
  In<float> decay, threshold, gain;  // [neurons]
  Out<T> v_new, spikes;              // [rows, neurons]
  unsigned rows, neurons;
  unsigned char reset, reset_time;  // enum Reset, enum ResetTime
  bool spike_from_old;              // spikes are those of the old membrane
  bool inclusive;                   // >= in place of >

  bool compute(unsigned worker) {
    const Range own = rowsOf<T>(worker, rows, neurons);
    for (unsigned b = own.first; b < own.last; ++b) {
      forEachNumber(neurons, [&](unsigned j, auto numbers) { step(b * neurons + j, j, numbers); });
    }
    return true;
  }

 private:
  template <class Of>
  void step(unsigned i, unsigned j, Of) {
    const auto old = Of::load(&v[i]), limit = Of::load(&threshold[j]), keep = Of::load(&decay[j]);
    const auto charge = Of::load(&gain[j]) * Of::load(&current[i]);
    if (reset_time == Immediate) {
      const auto charged = roundedTo<T>(keep * old + charge), fired = spikesOf(charged, limit, inclusive);
      Of::store(&v_new[i], resetMembrane(charged, fired, limit, reset));
      Of::store(&spikes[i], fired);
      return;
    }
    const auto before = spikesOf(old, limit, inclusive);
    const auto membrane = reset_time == BeforeDecay ? keep * resetMembrane(old, before, limit, reset) + charge
                                                    : resetMembrane(keep * old + charge, before, limit, reset);
    Of::store(&v_new[i], membrane);
    Of::store(&spikes[i], spike_from_old ? before : spikesOf(roundedTo<T>(membrane), limit, inclusive));
  }
};

template <class T>
class LifStepBackward : public poplar::MultiVertex {
 public:
  In<T> v, current;                  // [rows, neurons]
  In<float> decay, threshold, gain;  // [neurons]
  In<T> g_v_new, g_spikes;           // [rows, neurons]
  Out<T> g_v, g_current;             // [rows, neurons]
  InOut<float> g_decay, g_threshold,
      g_gain;  // [6, neurons], one row a worker, to be summed; overwritten
  unsigned rows, neurons;
  unsigned char reset, reset_time,
      surrogate;  // enum Reset, enum ResetTime, enum Surrogate
  bool detach_reset, spike_from_old, inclusive;
  float slope;

  bool compute(unsigned worker) {
    for (unsigned j = worker * neurons; j < (worker + 1) * neurons; ++j) g_decay[j] = g_threshold[j] = g_gain[j] = 0.0f;
    const Range own = rowsOf<T>(worker, rows, neurons);
    for (unsigned b = own.first; b < own.last; ++b) {
      forEachNumber(neurons, [&](unsigned j, auto numbers) {
        const unsigned i = b * neurons + j, partial = worker * neurons + j;
        if (reset_time == Immediate) {
          immediate(i, j, partial, numbers);
        } else {
          delayed(i, j, partial, numbers);
        }
      });
    }
    return true;
  }

 private:
  // The cotangents behind a reset: of the membrane it takes, of its spikes, of the threshold.
  template <class N>
  struct Behind {
    N membrane, spikes, threshold;
  };

  template <class N>
  Behind<N> throughStepReset(N g, N membrane, N fired, N limit) const {
    const N nothing = Numbers<N>::fill(0.0f);
    if (reset == None) return {g, nothing, nothing};
    if (reset == Zero) return {g * (1.0f - fired), detach_reset ? nothing : -(g * membrane), nothing};
    return {g, detach_reset ? nothing : -(g * limit), -(g * fired)};
  }

  template <class N>
  N slopeAt(N membrane, N limit) const {
    return surrogateDerivative(membrane - limit, surrogate, slope);
  }

  // Spikes of the new membrane reset that membrane at once.
  template <class Of>
  void immediate(unsigned i, unsigned j, unsigned partial, Of) {
    const auto old = Of::load(&v[i]), limit = Of::load(&threshold[j]), keep = Of::load(&decay[j]);
    const auto charged = roundedTo<T>(keep * old + Of::load(&gain[j]) * Of::load(&current[i]));
    const auto fired = spikesOf(charged, limit, inclusive);
    const auto behind = throughStepReset(Of::load(&g_v_new[i]), charged, fired, limit);
    const auto through_spike = (Of::load(&g_spikes[i]) + behind.spikes) * slopeAt(charged, limit);
    const auto g = behind.membrane + through_spike;
    store(i, partial, Of{}, keep * g, Of::load(&gain[j]) * g, behind.threshold - through_spike);
    addProducts(i, partial, Of{}, g, old);
  }

  // Spikes of the old membrane reset it before or after its decay.
  template <class Of>
  void delayed(unsigned i, unsigned j, unsigned partial, Of) {
    const auto old = Of::load(&v[i]), limit = Of::load(&threshold[j]), keep = Of::load(&decay[j]);
    const auto charge = Of::load(&gain[j]) * Of::load(&current[i]), before = spikesOf(old, limit, inclusive);
    const bool is_after = reset_time == AfterDecay;
    const auto taken = is_after ? keep * old + charge : old;  // what the reset takes
    const auto u = resetMembrane(taken, before, limit, reset);
    const auto membrane = roundedTo<T>(is_after ? u : keep * u + charge);
    const auto nothing = Of::fill(0.0f), g_s = Of::load(&g_spikes[i]);
    const auto new_spike = spike_from_old ? nothing : g_s * slopeAt(membrane, limit);
    const auto g_new = Of::load(&g_v_new[i]) + new_spike;
    const auto behind = throughStepReset(is_after ? g_new : keep * g_new, taken, before, limit);
    const auto old_spike = (behind.spikes + (spike_from_old ? g_s : nothing)) * slopeAt(old, limit);
    const auto g_charge = is_after ? behind.membrane : g_new;
    const auto g_old = (is_after ? keep * behind.membrane : behind.membrane) + old_spike;
    store(i, partial, Of{}, g_old, Of::load(&gain[j]) * g_charge, behind.threshold - new_spike - old_spike);
    addProducts(i, partial, Of{}, g_charge, is_after ? old : u);
  }

  template <class Of, class N>
  void store(unsigned i, unsigned partial, Of, N g_old, N g_in, N g_limit) {
    Of::store(&g_v[i], g_old);
    Of::store(&g_current[i], g_in);
    Of::store(&g_threshold[partial], Of::load(&g_threshold[partial]) + g_limit);
  }

  // The decay multiplies `decayed`, the gain the current.
  template <class Of, class N>
  void addProducts(unsigned i, unsigned partial, Of, N g, N decayed) {
    Of::store(&g_decay[partial], Of::load(&g_decay[partial]) + g * decayed);
    Of::store(&g_gain[partial], Of::load(&g_gain[partial]) + g * Of::load(&current[i]));
  }
};

template class LifStep<float>;
template class LifStep<half>;
template class LifStepBackward<float>;
template class LifStepBackward<half>;

}  // namespace snnjax
