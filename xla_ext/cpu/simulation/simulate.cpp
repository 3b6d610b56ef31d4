// The target of `simulate`: all time steps of a network of neurons and their synapses in one call.
//
// A call a step would cost more than the step: 4,000 neurons with two receptors are updated in 0.6 us (a Zen 5 with
// AVX-512, measured 2026). What arrives in the following steps lies in a ring of rows, in the memory of the result
// `pending`, which begins with the first row again at the end.
#include <array>
#include <cmath>
#include <optional>

#include "cpu/call.hpp"
#include "cpu/lists/marks.hpp"
#include "cpu/synapses/synapses.hpp"
#include "plasticity.hpp"

namespace snnjax::simulate {
namespace {

using schema::Axis;

constexpr Index kWords = 2;            // of a key
constexpr Index kPair = 2;             // of numbers of a rule
constexpr float kMostSteps = 1 << 24;  // that a float counts

struct Static : NoLayers {
  explicit Static(const Attributes& attributes) : numbers(SimulationNumbers::read(attributes)) {}

  void fix(schema::Lengths& lengths) const { lengths.fix(Axis::kWords, kWords), lengths.fix(Axis::kPair, kPair); }

  SimulationNumbers numbers;
};

using SimulationCall = Call<Operands<Operand>, Results<Result>, Static>;

// Constants in memory of their own, so that a vector may be read from each neuron on.
template <typename T>
class Constants {
 public:
  // Rows of one number for all neurons, or of one for each.
  template <typename From>
  Constants(const From* from, Index rows, Index length, Index neurons) : length_(length), neurons_(neurons) {
    const Index lanes = kernels().lanes;
    stride_ = length == neurons ? neurons + lanes : lanes;
    all_.resize(static_cast<std::size_t>(rows * stride_));
    for (Index row = 0; row < rows; ++row) {
      T* const to = all_.data() + row * stride_;
      for (Index i = 0; i < stride_; ++i) {
        if (length > 0) to[i] = static_cast<T>(from[row * length + std::min(i, length - 1)]);
      }
    }
    for (Index row = 0; row < rows; ++row) rows_.push_back({all_.data() + row * stride_, length_ != neurons_});
  }

  NeuronConstant<T> row(Index index = 0) const { return rows_[static_cast<std::size_t>(index)]; }
  const NeuronConstant<T>* rows() const { return rows_.data(); }

 private:
  Index length_, neurons_, stride_ = 0;
  std::vector<T> all_;
  std::vector<NeuronConstant<T>> rows_;
};

// The arrays of one simulation, of a group.
class Simulation {
 public:
  Simulation(const SimulationCall& call, const schema::Lengths& lengths, Index group)
      : from_(call.from),
        to_(call.to),
        group_(group),
        steps_(lengths[Axis::kSteps]),
        neurons_(lengths[Axis::kNeurons]),
        receptors_(lengths[Axis::kReceptors]),
        arrivals_(lengths[Axis::kArrivals]),
        capacity_(lengths[Axis::kCapacity]),
        leak_(constant(from_.leak)),
        threshold_(constant(from_.threshold)),
        reset_(constant(from_.reset)),
        refractory_(from_.refractory.at<std::int32_t>(group), 1, from_.refractory.length(0), neurons_),
        synaptic_decay_(constant(from_.synaptic_decay, receptors_)),
        effect_(constant(from_.effect, receptors_)),
        limits_(from_.poisson_limits.at<std::int32_t>(group), from_.poisson_limits.length(0),
                from_.poisson_limits.length(1), neurons_),
        poisson_weights_(constant(from_.poisson_weights)),
        shared_current_(static_cast<std::size_t>(kernels().lanes)),
        numbers_(call.numbers.numbers),
        spikes_(static_cast<std::size_t>(neurons_)) {
    copy(from_.v, to_.v, neurons_);
    copy(from_.received, to_.received, receptors_ * neurons_);
    copy(from_.pending, to_.pending, arrivals_ * receptors_ * neurons_);
    for (Index n = 0; n < neurons_; ++n) {
      remaining_.push_back(static_cast<float>(from_.remaining.at<std::int32_t>(group)[n]));
      to_.counts.at<std::int32_t>(group)[n] = 0;
    }
  }

  void run() {
    const Synapses synapses{.ends = from_.ends.at<std::int32_t>(group_),
                            .targets = from_.targets.at(group_),
                            .targets_are_uint16 = from_.targets.type() == ffi::U16,
                            .neurons = neurons_,
                            .count = from_.targets.length(0),
                            .outputs = receptors_ * neurons_};
    const SynapseDelays delays{from_.delays.at(group_), from_.delays.type() == ffi::U16, from_.delays.length(0) == 1};
    makePlastic(synapses);
    const Operand& stored = from_.weights.values ? from_.weights.values : from_.weights.array;
    const Numbers given = to_.stdp.weights ? Numbers{to_.stdp.weights.at<float>(group_)} : stored.numbers(group_);
    const SynapseWeights weights(given, from_.weights.scale.numbers(group_), synapses.outputs);
    Ring ring{to_.pending.at<float>(group_), arrivals_, receptors_ * neurons_, 0};
    SynapticStep step = firstStep();
    PoissonStep poisson = firstInput();
    for (Index t = 0; t < steps_; ++t) {
      step.arriving = ring.later(0);
      step.currents = currentsOf(t);
      if (poisson.levels > 0) {
        poisson.arriving = step.arriving + numbers_.poisson_receptor * neurons_;
        kernels().addPoisson(poisson);
        ++poisson.step;
      }
      const Index count = kernels().stepSynaptic(step, spikes_.data());
      const float* const release = short_term_ ? short_term_->release(spikes_.data(), count) : nullptr;
      sendLater(spikes_.data(), count, release, synapses, weights, delays, ring);
      if (stdp_) stdp_->step(spikes_.data(), count);
      if (short_term_) short_term_->step(spikes_.data(), count);
      record(t, count);
      ring.now = ring.now + 1 < arrivals_ ? ring.now + 1 : 0;
    }
    std::rotate(ring.rows, ring.later(0), ring.rows + arrivals_ * ring.width);
    for (Index n = 0; n < neurons_; ++n) {
      const float left = std::clamp(remaining_[static_cast<std::size_t>(n)], -kMostSteps, kMostSteps);
      to_.remaining.at<std::int32_t>(group_)[n] = static_cast<std::int32_t>(left);
    }
  }

 private:
  Constants<float> constant(const Operand& from) const { return {from.at<float>(group_), 1, from.length(0), neurons_}; }
  Constants<float> constant(const Operand& from, Index rows) const {
    return {from.at<float>(group_), rows, from.length(1), neurons_};
  }

  void copy(const Operand& from, const Result& to, Index count) const {
    std::copy_n(from.at<float>(group_), count, to.at<float>(group_));
  }

  // Begins both kinds of plasticity, in the memory of their results.
  void makePlastic(const Synapses& synapses) {
    if (from_.stdp.before) {
      const auto& from = from_.stdp;
      const auto& to = to_.stdp;
      copy(from_.weights.array, to.weights, synapses.count);
      copy(from.before, to.before, neurons_);
      copy(from.after, to.after, neurons_);
      stdp_.emplace(synapses, from.plastic.at<bool>(group_),
                    SpikeTimingPlasticity::Rule{pair(from.decay), pair(from.rates), pair(from.bounds)},
                    to.weights.at<float>(group_), to.before.at<float>(group_), to.after.at<float>(group_));
    }
    if (from_.short_term.used) {
      const auto& from = from_.short_term;
      const auto& to = to_.short_term;
      copy(from.used, to.used, neurons_);
      copy(from.available, to.available, neurons_);
      short_term_.emplace(ShortTermPlasticity::Rule{each(from.use), each(from.recovery), each(from.facilitation)},
                          to.used.at<float>(group_), to.available.at<float>(group_));
    }
  }

  std::array<float, 2> pair(const Operand& of) const { return {of.at<float>(group_)[0], of.at<float>(group_)[1]}; }
  // A constant of each neuron.
  std::vector<float> each(const Operand& of) const {
    std::vector<float> all;
    for (Index n = 0; n < neurons_; ++n) all.push_back(of.at<float>(group_)[std::min(n, of.length(0) - 1)]);
    return all;
  }

  SynapticStep firstStep() {
    return {.neurons = neurons_,
            .receptors = receptors_,
            .has_conductances = numbers_.has_conductances,
            .leak = leak_.row(),
            .threshold = threshold_.row(),
            .reset = reset_.row(),
            .refractory = refractory_.row(),
            .synaptic_decay = synaptic_decay_.rows(),
            .effect = effect_.rows(),
            .currents = {nullptr, true},
            .v = to_.v.at<float>(group_),
            .remaining = remaining_.data(),
            .received = to_.received.at<float>(group_),
            .arriving = nullptr};
  }

  PoissonStep firstInput() const {
    const auto* const key = from_.key.at<std::int32_t>(group_);
    return {.key = {static_cast<std::uint32_t>(key[0]), static_cast<std::uint32_t>(key[1])},
            .step = static_cast<std::uint32_t>(from_.step.at<std::int32_t>(group_)[0]),
            .neurons = neurons_,
            .levels = from_.poisson_limits.length(0),
            .limits = limits_.rows(),
            .weights = poisson_weights_.row(),
            .arriving = nullptr};
  }

  NeuronConstant<float> currentsOf(Index t) {
    if (from_.currents.length(0) == 0) return {nullptr, true};
    const Index length = from_.currents.length(1);
    const float* const row = from_.currents.at<float>(group_) + t * length;
    if (length == neurons_) return {row, false};
    std::fill(shared_current_.begin(), shared_current_.end(), *row);
    return {shared_current_.data(), true};
  }

  // Counts the spikes of a step, and lists as many as there are slots, ids ascending; and the potentials after it.
  void record(Index t, Index count) const {
    to_.num_spikes.at<std::int32_t>(group_)[t] = static_cast<std::int32_t>(count);
    const IdArray ids{to_.ids.at(group_), neurons_};
    for (Index k = 0; k < count; ++k) ++to_.counts.at<std::int32_t>(group_)[spikes_[static_cast<std::size_t>(k)]];
    for (Index k = 0; k < capacity_; ++k) {
      ids.set(t * capacity_ + k, k < count ? spikes_[static_cast<std::size_t>(k)] : neurons_);
    }
    const Index recorded = to_.recorded ? to_.recorded.length(1) : 0;
    for (Index k = 0; k < recorded; ++k) {
      const Index id = from_.recorded.at<std::int32_t>(group_)[k];
      const bool is_neuron = id >= 0 && id < neurons_;
      to_.recorded.at<float>(group_)[t * recorded + k] = is_neuron ? to_.v.at<float>(group_)[id] : std::nanf("");
    }
  }

  const Operands<Operand>& from_;
  const Results<Result>& to_;
  Index group_;
  Index steps_, neurons_, receptors_, arrivals_, capacity_;
  Constants<float> leak_, threshold_, reset_, refractory_, synaptic_decay_, effect_;
  Constants<std::int32_t> limits_;
  Constants<float> poisson_weights_;
  std::vector<float> shared_current_;
  SimulationNumbers numbers_;
  std::vector<float> remaining_;
  std::vector<std::uint32_t> spikes_;
  std::optional<SpikeTimingPlasticity> stdp_;
  std::optional<ShortTermPlasticity> short_term_;
};

void run(SimulationCall& call) {
  const schema::Lengths lengths = call.check();
  const auto refuse = Attributes::refusal("simulate");
  const Index arrivals = lengths[Axis::kArrivals], receptors = lengths[Axis::kReceptors];
  if (arrivals < 1) refuse("pending", "have a row for each step of the longest delay", std::to_string(arrivals));
  if (receptors < 1 || receptors > kMostReceptors) {
    refuse("received", "have 1 to " + std::to_string(kMostReceptors) + " receptors", std::to_string(receptors));
  }
  const Index targets = receptors * lengths[Axis::kNeurons];
  if (call.from.weights.scale && call.from.weights.scale.length(0) != targets) {
    refuse("weights.scale", "be one of each of " + std::to_string(targets) + " targets",
           std::to_string(call.from.weights.scale.length(0)));
  }
  const Index receptor = call.numbers.numbers.poisson_receptor;
  if (call.from.poisson_limits.length(0) > 0 && (receptor < 0 || receptor >= receptors)) {
    refuse("poisson_receptor", "be below " + std::to_string(receptors), std::to_string(receptor));
  }
  const bool is_plastic = static_cast<bool>(call.from.stdp.before);
  if (is_plastic != static_cast<bool>(call.to.stdp.weights)) refuse("stdp", "be given with its results", "one alone");
  if (is_plastic && (!call.from.weights.array || call.from.weights.array.type() != ffi::F32)) {
    refuse("weights", "be float32 with stdp", "others");
  }
  if (static_cast<bool>(call.from.recorded) != static_cast<bool>(call.to.recorded)) {
    refuse("recorded", "be given with its result", "one alone");
  }
  if (static_cast<bool>(call.from.short_term.used) != static_cast<bool>(call.to.short_term.used)) {
    refuse("short_term", "be given with its results", "one alone");
  }
  call.threads.run(call.groups(), [&](Index group, Index) { Simulation(call, lengths, group).run(); });
}

}  // namespace
}  // namespace snnjax::simulate

SNNJAX_TARGET(snnjax_simulate, "simulate", snnjax::simulate::run);
