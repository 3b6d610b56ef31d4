// The neurons of a simulation that one thread steps: all whose number leaves the same remainder, a share of every
// population. What they receive in a step is one row of numbers, which stays in the second-level cache.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "cpu/call.hpp"
#include "plasticity.hpp"
#include "random.hpp"

namespace snnjax::simulate {

constexpr Index kMostSources = 1024;  // of random input
constexpr Index kPair = 2;            // of numbers of a rule, or of a key

// Static values of a call.
struct Static : NoLayers {
  explicit Static(const Attributes& attributes) : numbers(SimulationNumbers::read(attributes)) {}

  std::size_t layers() const { return static_cast<std::size_t>(std::clamp<Index>(numbers.sources, 0, kMostSources)); }
  void fix(schema::Lengths& lengths) const { lengths.fix(schema::Axis::kPair, kPair); }

  SimulationNumbers numbers;
};

using SimulationCall = Call<Operands<Operand>, Results<Result>, Static>;

// What the blocks of a simulation share.
struct Shared {
  const Operands<Operand>& from;
  const Results<Result>& to;
  SimulationNumbers numbers;
  Index group, steps, neurons, receptors, arrivals, blocks, stride;  // most neurons of a block
  DelayedSynapses synapses;
  // Places of the neurons of each block that spiked in steps of even and of odd numbers.
  std::array<std::vector<std::vector<std::uint32_t>>, 2> spikes;
  // Of the last steps, where synapses are plastic: what spikes released; the traces that they found; where they were.
  History release, before, sent;
  std::optional<Modulation> third;
  std::vector<std::int32_t> known;  // the steps of `SpikeTimingPlasticity::Rule`

  // The numbers of the neurons that spiked in a step, ascending.
  void list(Index step, std::vector<std::uint32_t>& ids) const;
};

// Constants in memory of their own, so that a vector may be read from each neuron on.
template <typename T>
class Constants {
 public:
  Constants() = default;
  // Rows of one number for all neurons, or of one for each.
  template <typename From>
  Constants(const Shared& shared, Index block, const From* from, Index rows, Index length);

  // Takes other numbers, as many.
  template <typename From>
  void read(const Shared& shared, Index block, const From* from, Index length);

  // Those of neurons from the first of a run on, all alike if `as_one`; neurons are still counted from 0.
  NeuronConstant<T> row(Index index, Index first, bool as_one) const;
  bool differ(Index a, Index b) const;
  bool isShared() const { return is_shared_; }
  T of(Index row, Index neuron) const { return *this->row(row, 0, false).at(neuron); }

 private:
  bool is_shared_ = true;
  Index rows_ = 0, stride_ = 0;
  std::vector<T> all_;
};

class Block {
 public:
  Block(Shared& shared, Index number);

  // Needs the spikes of all blocks in the step before.
  void step(Index t);
  // Writes what is left behind the last step.
  void finish();

 private:
  // A source of random input.
  struct Source {
    Constants<std::int32_t> limits;
    Constants<float> weights;
    Index receptor;
  };
  // What a source adds to a run of neurons.
  struct Draw {
    std::size_t source;
    std::vector<NeuronConstant<std::int32_t>> limits;
    PoissonStep step;
  };
  // Neurons whose constants are alike, which are then in registers.
  struct Run {
    std::array<NeuronConstant<float>, kMostReceptors> decay, effect;
    std::vector<Draw> draws;
    std::optional<NoiseStep> noise;
    SynapticStep step;
  };

  Constants<float> constant(const Operand& from, Index rows = 1) const;
  std::vector<float> each(const Operand& from) const;
  template <typename From, typename To>
  void read(const From* from, To* to, Index rows) const;
  template <typename From, typename To>
  void write(const From* from, To* to, Index rows) const;
  void makeSources();
  void makeRuns();
  Run runOf(Index first, Index end, bool as_one);
  void addDraws(Run& run, bool as_one);
  void makePlastic();
  void schedule(Index step, std::uint32_t sender);
  void scheduleEarlier();
  void receive(Index t);
  NeuronConstant<float> currentsOf(Index t);
  Words wordsOf(Index t, std::uint32_t use) const;
  void draw(Index t);
  void give(Index t, std::vector<std::uint32_t>& spikes);
  void learn(Index t, const std::vector<std::uint32_t>& spikes);
  void record(Index t);
  void recordWeights(Index sample, Index t);
  void recordAll(Index t, const std::vector<std::uint32_t>& ids) const;

  Shared& shared_;
  const Index number_, count_;  // of this block; of its neurons
  Constants<float> leak_, threshold_, reset_, refractory_, synaptic_decay_, effect_, shares_, noise_;
  std::vector<Source> sources_;
  std::vector<float> scale_;  // of weights of 8 bits
  std::vector<Run> runs_;
  Borrowed<float> row_;
  std::vector<float> v_, received_, remaining_, currents_, used_, available_, after_;
  std::vector<std::int32_t> counts_;
  std::vector<std::vector<Segment>> due_;  // the segments that arrive in the next steps
  std::vector<std::uint32_t> senders_;
  std::vector<std::array<Index, 2>> recorded_;  // places among what is recorded, and neurons
  Index given_ = 0;                             // the spikes of earlier steps
  std::optional<SpikeTimingPlasticity> stdp_;
  std::optional<ShortTermPlasticity> short_term_;
};

}  // namespace snnjax::simulate
