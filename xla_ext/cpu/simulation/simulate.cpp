// The target of `simulate`: all time steps of a network of neurons and their synapses in one call.
//
// What is delayed are spikes: each is listed, as the segments of its synapses, in the steps in which it arrives, and a
// step adds up those that arrive in it. So numbers are added to one row a block, which stays in the second-level cache,
// where a ring of what arrives in all later steps does not: on one core of a Sapphire Rapids, an addition of the full
// cortical microcircuit takes 1.4 to 1.7 ns instead of 4.
#include <algorithm>
#include <cmath>

#include "block.hpp"
#include "steps.hpp"

namespace snnjax::simulate {
namespace {

using schema::Axis;

DelayedSynapses synapsesOf(const SimulationCall& call, const schema::Lengths& lengths, Index group) {
  const auto& from = call.from;
  const bool are_int8 = static_cast<bool>(from.weights.values);
  return {.ends = from.ends.at<std::int32_t>(group),
          .segments = from.segments.at<std::uint16_t>(group),
          .words = from.words.at(group),
          .weights = are_int8               ? from.weights.values.at(group)
                     : call.to.stdp.weights ? call.to.stdp.weights.at(group)
                                            : from.weights.array.at(group),
          .are_int8 = are_int8,
          .blocks = from.ends.length(0),
          .neurons = lengths[Axis::kNeurons],
          .num_segments = from.segments.length(0),
          .count = from.words.length(0)};
}

// Whether no two blocks have synapses in common, which threads could change at once.
bool areApart(const DelayedSynapses& synapses) {
  Index last = 0;
  for (Index row = 0; row < synapses.blocks * synapses.neurons; ++row) {
    const Index end = synapses.ends[2 * row + 1];
    if (end < last) return false;
    last = end;
  }
  return true;
}

void simulate(const SimulationCall& call, const schema::Lengths& lengths, Index group, const Threads& threads) {
  const auto& from = call.from;
  const auto& to = call.to;
  const DelayedSynapses synapses = synapsesOf(call, lengths, group);
  const Index blocks = synapses.blocks, neurons = lengths[Axis::kNeurons], steps = lengths[Axis::kSteps];
  const Index arrivals = lengths[Axis::kArrivals], stride = (neurons + blocks - 1) / blocks;
  Shared shared{from,
                to,
                call.numbers.numbers,
                group,
                steps,
                neurons,
                lengths[Axis::kReceptors],
                arrivals,
                blocks,
                stride,
                synapses,
                {},
                {},
                {},
                {},
                {},
                {}};
  for (auto& lists : shared.spikes) lists.resize(static_cast<std::size_t>(blocks));
  std::vector<float> histories[3];
  const auto keep = [&](bool is_kept, std::vector<float>& numbers, History& history) {
    if (!is_kept) return;
    numbers.resize(static_cast<std::size_t>((arrivals + 1) * blocks * stride + 1));
    history = {numbers.data(), arrivals + 1, blocks, stride};
  };
  const bool is_plastic = static_cast<bool>(from.stdp.before);
  keep(static_cast<bool>(from.short_term.used), histories[0], shared.release);
  keep(is_plastic, histories[1], shared.before);
  keep(is_plastic, histories[2], shared.sent);
  if (is_plastic) std::copy_n(from.weights.array.at<float>(group), synapses.count, to.stdp.weights.at<float>(group));
  if (from.stdp.modulation) {
    const Index pace = from.stdp.modulation.length(0) > 1 ? 1 : 0;
    const float share = from.stdp.keep ? *from.stdp.keep.at<float>(group) : 0.0F;
    shared.third.emplace(from.stdp.modulation.at<float>(group), pace, steps, share);
  }
  if (from.stdp.keep) {
    shared.known.assign(static_cast<std::size_t>(synapses.count), -1);
    std::copy_n(from.stdp.eligibility.at<float>(group), synapses.count, to.stdp.eligibility.at<float>(group));
  }
  const Index bytes = from.sent.length(1), kept = std::max<Index>(arrivals - steps, 0);
  auto* const sent = to.sent.at<std::uint8_t>(group);
  std::fill_n(sent, arrivals * bytes, std::uint8_t{0});
  std::copy_n(from.sent.at<std::uint8_t>(group) + (arrivals - kept) * bytes, kept * bytes, sent);
  if (const auto& weights = to.recorded.weights) {  // not a number where no block has the synapse
    std::fill_n(weights.at<float>(group), weights.length(0) * weights.length(1), std::nanf(""));
  }

  const Threads used = is_plastic && !areApart(synapses) ? Threads({}, 1) : threads;
  std::vector<std::unique_ptr<Block>> all(static_cast<std::size_t>(blocks));
  for (Index b = 0; b < blocks; ++b) all[static_cast<std::size_t>(b)] = std::make_unique<Block>(shared, b);
  runSteps(steps, blocks, used, [&](Index block, Index step) { all[static_cast<std::size_t>(block)]->step(step); });
  for (const auto& block : all) block->finish();
}

template <typename Refuse>
void checkInput(const SimulationCall& call, Index receptors, Refuse refuse) {
  const auto& from = call.from;
  for (const auto& source : from.poisson) {
    for (Index group = 0; group < call.groups(); ++group) {
      const Index receptor = source.receptor.template at<std::int32_t>(group)[0];
      if (receptor < 0 || receptor >= receptors) {
        refuse("poisson.receptor", "be below " + std::to_string(receptors), std::to_string(receptor));
      }
    }
  }
  if (from.currents.length(0) > 0 && !from.shares) {
    const Index courses = from.currents.length(1), neurons = from.v.length(0);
    if (courses != 1 && courses != neurons) {
      refuse("currents", "be of one neuron or all", std::to_string(courses));
    }
  }
}

template <typename Refuse>
void checkRecords(const SimulationCall& call, const schema::Lengths& lengths, Refuse refuse) {
  const auto& from = call.from;
  const auto& to = call.to;
  const Index every = call.numbers.numbers.every;
  if (every < 1) refuse("every", "be at least 1", std::to_string(every));
  if (static_cast<bool>(from.recorded.ids) != static_cast<bool>(to.recorded.v)) {
    refuse("recorded", "be given with its result", "one alone");
  }
  if (to.recorded.v && lengths[Axis::kSamples] != lengths[Axis::kSteps] / every) {
    refuse("recorded", "have a sample every " + std::to_string(every) + " steps",
           std::to_string(lengths[Axis::kSamples]));
  }
  if (static_cast<bool>(from.recorded.synapses) != static_cast<bool>(to.recorded.weights)) {
    refuse("recorded.synapses", "be given with their result", "one alone");
  }
  if (to.recorded.weights && !from.stdp.before) refuse("recorded.synapses", "be plastic", "others");
  if (static_cast<bool>(from.stdp.keep) != static_cast<bool>(to.stdp.eligibility) ||
      (from.stdp.keep && !from.stdp.modulation)) {
    refuse("stdp.eligibility", "be given with its result and a modulation", "one alone");
  }
}

void run(SimulationCall& call) {
  const schema::Lengths lengths = call.check();
  const auto& from = call.from;
  const auto refuse = Attributes::refusal("simulate");
  const Index arrivals = lengths[Axis::kArrivals], receptors = lengths[Axis::kReceptors];
  const Index neurons = lengths[Axis::kNeurons], blocks = from.ends.length(0);
  if (arrivals < 1) refuse("sent", "have a row for each step of the longest delay", std::to_string(arrivals));
  if (from.sent.length(1) != (neurons + 7) / 8) {
    refuse("sent", "have a bit for each neuron", std::to_string(from.sent.length(1)) + " bytes");
  }
  if (receptors < 1 || receptors > kMostReceptors) {
    refuse("received", "have 1 to " + std::to_string(kMostReceptors) + " receptors", std::to_string(receptors));
  }
  if (blocks < 1 || receptors * ((neurons + blocks - 1) / blocks) > kPlaces) {
    refuse("ends", "be of blocks of at most " + std::to_string(kPlaces) + " targets", std::to_string(blocks));
  }
  const bool has_weights = from.weights.array || from.weights.values;
  if (has_weights != (from.words.type() == ffi::U16)) refuse("words", "be 16 bits beside weights", "others");
  if (from.weights.array && from.weights.array.type() != ffi::F32) refuse("weights", "be float32", "others");
  if (from.weights.scale &&
      (from.weights.scale.type() != ffi::F32 || from.weights.scale.length(0) != receptors * neurons)) {
    refuse("weights.scale", "be float32, one of each of " + std::to_string(receptors * neurons) + " targets",
           std::to_string(from.weights.scale.length(0)));
  }
  const bool is_plastic = static_cast<bool>(from.stdp.before);
  if (is_plastic != static_cast<bool>(call.to.stdp.weights)) refuse("stdp", "be given with its results", "one alone");
  if (is_plastic && !from.weights.array) refuse("weights", "be float32 with stdp", "others");
  checkInput(call, receptors, refuse);
  checkRecords(call, lengths, refuse);
  if (static_cast<bool>(from.short_term.used) != static_cast<bool>(call.to.short_term.used)) {
    refuse("short_term", "be given with its results", "one alone");
  }
  if (call.groups() == 1) return simulate(call, lengths, 0, call.threads);
  call.threads.run(call.groups(), [&](Index group, Index) { simulate(call, lengths, group, Threads({}, 1)); });
}

}  // namespace
}  // namespace snnjax::simulate

SNNJAX_TARGET(snnjax_simulate, "simulate", snnjax::simulate::run);
