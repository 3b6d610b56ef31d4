// The targets of `lif_step`: one step of leaky integrate-and-fire neurons, dense, and its backward pass. All arrays are
// float32, in which membranes are carried.
#include "operand_rows.hpp"

namespace snnjax {
namespace {

enum class ResetTime : std::int32_t { kBeforeDecay = 0, kAfterDecay = 1, kImmediate = 2 };

// `LIFConvention` of snnjax/ops/lif_step.py.
struct Convention {
  Surrogate surrogate;
  Reset reset;
  bool detach_reset;
  ResetTime reset_time;
  bool takes_old_spikes, inclusive;

  explicit Convention(ffi::Dictionary attributes)
      : surrogate(surrogateOf(get<std::int64_t>(attributes, "surrogate"), get<float>(attributes, "slope"))),
        reset(static_cast<Reset>(choice(attributes, "reset"))),
        detach_reset(get<bool>(attributes, "detach_reset")),
        reset_time(static_cast<ResetTime>(choice(attributes, "reset_time"))),
        takes_old_spikes(get<bool>(attributes, "takes_old_spikes")),
        inclusive(get<bool>(attributes, "inclusive")) {}

  float fire(float v, float threshold) const {
    const float x = v - threshold;
    return (inclusive ? x >= 0.0F : x > 0.0F) ? 1.0F : 0.0F;
  }

  float resetOf(float v, float spike, float threshold) const {
    if (reset == Reset::kSubtract) return spike == 0.0F ? v : v - threshold;  // an infinite threshold leaves v as it is
    return reset == Reset::kZero ? v * (1.0F - spike) : v;
  }

 private:
  template <typename T>
  static T get(ffi::Dictionary attributes, const char* name) {
    return attributeOf<T>("lif_step", attributes, name);
  }

  static std::int64_t choice(ffi::Dictionary attributes, const char* name) {
    return std::clamp<std::int64_t>(get<std::int64_t>(attributes, name), 0, 2);
  }
};

// The numbers of one neuron in one row, or of what reaches it.
struct Neuron {
  float v, current, decay, threshold, gain;
};

// One step of one neuron, and what the backward pass needs of it.
struct Step {
  float before;   // the spike by the old membrane
  float charged;  // the membrane in front of a reset that comes behind the decay
  float v_new, spike;
};

Step stepOf(const Convention& convention, const Neuron& n) {
  Step step{convention.fire(n.v, n.threshold), 0.0F, 0.0F, 0.0F};
  if (convention.reset_time == ResetTime::kBeforeDecay) {
    step.v_new = n.decay * convention.resetOf(n.v, step.before, n.threshold) + n.gain * n.current;
  } else if (convention.reset_time == ResetTime::kAfterDecay) {
    step.charged = n.decay * n.v + n.gain * n.current;
    step.v_new = convention.resetOf(step.charged, step.before, n.threshold);
  } else {
    step.charged = n.decay * n.v + n.gain * n.current;
    step.spike = convention.fire(step.charged, n.threshold);
    step.v_new = convention.resetOf(step.charged, step.spike, n.threshold);
    return step;
  }
  step.spike = convention.takes_old_spikes ? step.before : convention.fire(step.v_new, n.threshold);
  return step;
}

// The cotangents of a reset's arguments, times what reaches its result.
struct ResetCotangents {
  float v, spike, threshold;
};

ResetCotangents throughReset(const Convention& convention, float g, float v, float spike, float threshold) {
  if (convention.reset == Reset::kNone) return {g, 0.0F, 0.0F};
  const bool subtracts = convention.reset == Reset::kSubtract;
  const float to_spike = convention.detach_reset ? 0.0F : -g * (subtracts ? threshold : v);
  return subtracts ? ResetCotangents{g, to_spike, -g * spike} : ResetCotangents{g * (1.0F - spike), to_spike, 0.0F};
}

// What reaches the arguments of a step from its results. `slope_old` and `slope_new` are the surrogate's at the old
// membrane and at the one that makes the new spike.
Neuron stepBack(const Convention& convention, const Neuron& n, const Step& step, float g_v_new, float g_spike,
                float slope_old, float slope_new) {
  Neuron g{};
  const auto charge = [&](float g_charged, float v) {  // through decay * v + gain * current
    g.decay = g_charged * v;
    g.current = g_charged * n.gain;
    g.gain = g_charged * n.current;
    return g_charged * n.decay;
  };
  if (convention.reset_time == ResetTime::kImmediate) {
    const ResetCotangents reset = throughReset(convention, g_v_new, step.charged, step.spike, n.threshold);
    const float through_spike = (g_spike + reset.spike) * slope_new;
    g.v = charge(reset.v + through_spike, n.v);
    g.threshold = reset.threshold - through_spike;
    return g;
  }
  float to_before = g_spike;  // what reaches the spike by the old membrane
  if (!convention.takes_old_spikes) {
    const float through_spike = g_spike * slope_new;
    g_v_new += through_spike;
    g.threshold = -through_spike;
    to_before = 0.0F;
  }
  const bool is_first = convention.reset_time == ResetTime::kBeforeDecay;
  const float u = is_first ? convention.resetOf(n.v, step.before, n.threshold) : 0.0F;
  const float g_reset = is_first ? charge(g_v_new, u) : g_v_new;
  const ResetCotangents reset =
      throughReset(convention, g_reset, is_first ? n.v : step.charged, step.before, n.threshold);
  g.v = is_first ? reset.v : charge(reset.v, n.v);
  g.threshold += reset.threshold;
  to_before += reset.spike;
  // Where nothing reaches the old spike, its slope must not either: it may be NaN.
  if (convention.takes_old_spikes || (!convention.detach_reset && convention.reset != Reset::kNone)) {
    g.v += to_before * slope_old;
    g.threshold -= to_before * slope_old;
  }
  return g;
}

constexpr Index kColumnsPerTask = 256;

// The operands, read a few columns at a time.
class Operands {
 public:
  explicit Operands(Arrays& arrays)
      : rows(arrays.nextLength(0)),
        neurons(arrays.nextLength(1)),
        v(OperandRows::whole(arrays, "v", rows, neurons, kWide)),
        current(OperandRows::whole(arrays, "current", rows, neurons, kWide)),
        decay(OperandRows::constant(arrays, "decay", neurons, kWide)),
        threshold(OperandRows::constant(arrays, "threshold", neurons, kWide)),
        gain(OperandRows::constant(arrays, "gain", neurons, kWide)) {}

  // Their cotangents, of the same forms.
  Operands(const Operands& operands, Arrays& results)
      : rows(operands.rows),
        neurons(operands.neurons),
        v(operands.v.cotangent(results, "g_v")),
        current(operands.current.cotangent(results, "g_current")),
        decay(operands.decay.cotangent(results, "g_decay")),
        threshold(operands.threshold.cotangent(results, "g_threshold")),
        gain(operands.gain.cotangent(results, "g_gain")) {}

  Index rows, neurons;
  OperandRows v, current, decay, threshold, gain;
};

// Some columns of the operands; constants are read once, membranes and currents row by row.
class Tile {
 public:
  Tile(const Operands& operands, Index group, Index first, Index count)
      : operands_(operands), group_(group), first_(first), count_(count) {
    decay_ = operands.decay.read(group, 0, first, count, scratch_[0]);
    threshold_ = operands.threshold.read(group, 0, first, count, scratch_[1]);
    gain_ = operands.gain.read(group, 0, first, count, scratch_[2]);
  }

  void goTo(Index row) {
    v_ = operands_.v.read(group_, row, first_, count_, scratch_[3]);
    current_ = operands_.current.read(group_, row, first_, count_, scratch_[4]);
  }

  Neuron neuron(Index i) const { return {v_[i], current_[i], decay_[i], threshold_[i], gain_[i]}; }

 private:
  const Operands& operands_;
  Index group_, first_, count_;
  std::vector<float> scratch_[5];
  const float* decay_;
  const float* threshold_;
  const float* gain_;
  const float* v_ = nullptr;
  const float* current_ = nullptr;
};

// Runs work(group, first, count) over tiles of columns.
template <typename Work>
void eachTile(Index groups, Index neurons, const Threads& threads, Work work) {
  const Index tiles = (neurons + kColumnsPerTask - 1) / kColumnsPerTask;
  threads.run(groups * tiles, [&](Index task, Index) {
    const Index first = task % tiles * kColumnsPerTask;
    work(task / tiles, first, std::min(kColumnsPerTask, neurons - first));
  });
}

using Floats = std::vector<float>;

Floats floats(Index count) { return Floats(static_cast<std::size_t>(count)); }

class Forward {
 public:
  Forward(Arrays& operands, Arrays& results, const Convention& convention)
      : convention_(convention),
        operands_(operands),
        v_new_(OperandRows::whole(results, "v_new", operands_.rows, operands_.neurons, kWide)),
        spikes_(OperandRows::whole(results, "spikes", operands_.rows, operands_.neurons, kWide)) {}

  void run(Index groups, const Threads& threads) const {
    eachTile(groups, operands_.neurons, threads,
             [&](Index group, Index first, Index count) { step(group, first, count); });
  }

 private:
  void step(Index group, Index first, Index count) const {
    Tile tile(operands_, group, first, count);
    Floats v_new = floats(count), spikes = floats(count);
    for (Index row = 0; row < operands_.rows; ++row) {
      tile.goTo(row);
      for (Index i = 0; i < count; ++i) {
        const Step step = stepOf(convention_, tile.neuron(i));
        v_new[static_cast<std::size_t>(i)] = step.v_new;
        spikes[static_cast<std::size_t>(i)] = step.spike;
      }
      v_new_.write(group, row, first, count, v_new.data());
      spikes_.write(group, row, first, count, spikes.data());
    }
  }

  Convention convention_;
  Operands operands_;
  OperandRows v_new_, spikes_;
};

class Backward {
 public:
  Backward(Arrays& operands, Arrays& results, const Convention& convention)
      : convention_(convention),
        operands_(operands),
        g_v_new_(OperandRows::whole(operands, "g_v_new", operands_.rows, operands_.neurons, kWide)),
        g_spikes_(OperandRows::whole(operands, "g_spikes", operands_.rows, operands_.neurons, kWide)),
        g_(operands_, results) {}

  void run(Index groups, const Threads& threads) const {
    std::vector<Sums> sums(static_cast<std::size_t>(groups), Sums(operands_.neurons));
    eachTile(groups, operands_.neurons, threads, [&](Index group, Index first, Index count) {
      pullBack(group, first, count, sums[static_cast<std::size_t>(group)]);
    });
    for (Index group = 0; group < groups; ++group) {
      const Sums& own = sums[static_cast<std::size_t>(group)];
      g_.decay.writeSums(group, own.decay);
      g_.threshold.writeSums(group, own.threshold);
      g_.gain.writeSums(group, own.gain);
    }
  }

 private:
  // What reaches the constants of each neuron, over all rows.
  struct Sums {
    std::vector<double> decay, threshold, gain;
    explicit Sums(Index neurons) : decay(static_cast<std::size_t>(neurons)), threshold(decay), gain(decay) {}
  };

  void pullBack(Index group, Index first, Index count, Sums& sums) const {
    Tile tile(operands_, group, first, count);
    Floats scratch, spike_scratch, x_old = floats(count), x_new = x_old, slope_old = x_old, slope_new = x_old;
    Floats g_v = x_old, g_current = x_old;
    for (Index row = 0; row < operands_.rows; ++row) {
      tile.goTo(row);
      const float* g_v_new = g_v_new_.read(group, row, first, count, scratch);
      const float* g_spikes = g_spikes_.read(group, row, first, count, spike_scratch);
      for (Index i = 0; i < count; ++i) {
        const Neuron neuron = tile.neuron(i);
        const Step step = stepOf(convention_, neuron);
        const bool is_immediate = convention_.reset_time == ResetTime::kImmediate;
        x_old[static_cast<std::size_t>(i)] = neuron.v - neuron.threshold;
        x_new[static_cast<std::size_t>(i)] = (is_immediate ? step.charged : step.v_new) - neuron.threshold;
      }
      kernels().derivative(convention_.surrogate, x_old.data(), count, slope_old.data());
      kernels().derivative(convention_.surrogate, x_new.data(), count, slope_new.data());
      for (Index i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i), column = static_cast<std::size_t>(first + i);
        const Neuron neuron = tile.neuron(i);
        const Neuron g = stepBack(convention_, neuron, stepOf(convention_, neuron), g_v_new[i], g_spikes[i],
                                  slope_old[at], slope_new[at]);
        g_v[at] = g.v;
        g_current[at] = g.current;
        sums.decay[column] += double{g.decay};
        sums.threshold[column] += double{g.threshold};
        sums.gain[column] += double{g.gain};
      }
      g_.v.write(group, row, first, count, g_v.data());
      g_.current.write(group, row, first, count, g_current.data());
    }
  }

  Convention convention_;
  Operands operands_;
  OperandRows g_v_new_, g_spikes_;
  Operands g_;
};

ffi::Error lifStep(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                   ffi::Dictionary attributes) {
  return guarded("lif_step", [&] {
    Arrays from("lif_step", operands), to("lif_step", results);
    const Forward forward(from, to, Convention(attributes));
    Arrays::finish(from, to);
    forward.run(to.groups(), threadsOf(pool));
  });
}

ffi::Error lifStepBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                           ffi::Dictionary attributes) {
  return guarded("lif_step", [&] {
    Arrays from("lif_step", operands), to("lif_step", results);
    const Backward backward(from, to, Convention(attributes));
    Arrays::finish(from, to);
    backward.run(to.groups(), threadsOf(pool));
  });
}

}  // namespace
}  // namespace snnjax

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    snnjax_lif_step, snnjax::lifStep,
    xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    snnjax_lif_step_backward, snnjax::lifStepBackward,
    xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs());
