#include "delayed_pairs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sample_groups.hpp"

namespace snnjax {
namespace {

constexpr Index kRowBytes = 32 << 10;  // of a group, which stay in a first-level cache
constexpr Index kNeuronsPerTask = 64;

Index tasksFor(Index count, Index each) { return (count + each - 1) / each; }

// A vector of targets, of which there may be fewer.
struct Lanes {
  Index first, count;

  Lanes(const DelayedSynapses& synapses, Index vector)
      : first(vector * kernels().lanes), count(std::min(kernels().lanes, synapses.all.outputs - first)) {}

  static Index vectors(const DelayedSynapses& synapses) { return tasksFor(synapses.all.outputs, kernels().lanes); }
};

// Samples whose rows stay in a first-level cache.
SampleGroups groupsOf(const ListedRows& sent, const DelayedSynapses& synapses, const Threads& threads,
                      Borrowed<std::uint32_t>* places = nullptr) {
  const Index rows = kRowBytes / (kernels().lanes * Index{sizeof(float)});
  return {sent, synapses, synapses.steps + synapses.longest, rows, threads, places};
}

// The taps of neurons that spike to a vector of targets.
class Taps {
 public:
  explicit Taps(const DelayedSynapses& synapses)
      : synapses_(synapses), numbers_(synapses.all.neurons * count() * kernels().lanes) {}

  Index count() const { return synapses_.longest + 1; }
  const float* of(Index neuron) const { return numbers_.data() + neuron * count() * kernels().lanes; }
  void spread(const Lanes& to, const SampleGroups& groups, Index first, Index end) {
    for (Index neuron = first; neuron < end; ++neuron) {
      if (!groups.anySpike(neuron)) continue;
      const Index synapse = neuron * synapses_.all.outputs + to.first;
      kernels().spreadShares(synapses_.weights + synapse, synapses_.delays + synapse, to.count, count(),
                             numbers_.data() + neuron * count() * kernels().lanes);
    }
  }

 private:
  const DelayedSynapses& synapses_;
  Borrowed<float> numbers_;
};

// What a vector of targets receives in the steps of a group, in rows that stay in the first-level cache.
class ArrivingRows {
 public:
  ArrivingRows(const DelayedSynapses& synapses, const SampleGroups& groups, const Lanes& targets)
      : synapses_(synapses), groups_(groups), targets_(targets), numbers_(groups.places() * kernels().lanes) {}

  float* data() { return numbers_.data(); }

  void fill(const Start& start, Index group) {
    std::fill_n(numbers_.data(), groups_.places() * kernels().lanes, 0.0F);
    each(group, start.bias == nullptr ? 0 : synapses_.steps, [&](Index, Index samples, const Rows<float>& own) {
      kernels().readVectors({start.bias + targets_.first, 0}, samples, targets_.count, own);
    });
    each(group, start.pending == nullptr ? 0 : synapses_.longest,
         [&](Index place, Index samples, const Rows<float>& own) {
           const float* const row = start.pending + place * synapses_.all.outputs + targets_.first;
           for (Index k = 0; k < samples; ++k) {
             kernels().affine(row + k * synapses_.all.outputs, nullptr, own.row(k), targets_.count, own.row(k));
           }
         });
  }
  void read(const Arriving<const float>& from, Index group) {
    each(group, length(), [&](Index place, Index samples, const Rows<float>& own) {
      const float* const row = from.row(synapses_, place) + targets_.first;
      kernels().readVectors({row, synapses_.all.outputs}, samples, targets_.count, own);
    });
  }
  void write(const Arriving<float>& to, Index group) {
    each(group, length(), [&](Index place, Index samples, const Rows<float>& own) {
      float* const row = to.row(synapses_, place) + targets_.first;
      kernels().writeVectors({own.data, own.stride}, samples, targets_.count, {row, synapses_.all.outputs});
    });
    kernels().finishStream();
  }

 private:
  Index length() const { return synapses_.steps + synapses_.longest; }

  // Calls copy(place, samples, own) for the first of so many steps: the samples of a step share pages of memory.
  template <typename Copy>
  void each(Index group, Index steps, Copy copy) {
    const Index first = groups_.first(group), samples = groups_.samples(group), lanes = kernels().lanes;
    for (Index step = 0; step < steps; ++step) {
      copy(step * synapses_.batch + first, samples, Rows<float>{numbers_.data() + step * lanes, length() * lanes});
    }
  }

  const DelayedSynapses& synapses_;
  const SampleGroups& groups_;
  Lanes targets_;
  Borrowed<float> numbers_;
};

}  // namespace

bool arePairsOfShortDelays(const DelayedSynapses& synapses) {
  const Synapses& all = synapses.all;
  if (synapses.longest == 0 || synapses.longest >= kernels().lanes || all.count != all.neurons * all.outputs)
    return false;
  const Index bytes =
      all.outputs * (all.targets_are_uint16 ? Index{sizeof(std::uint16_t)} : Index{sizeof(std::int32_t)});
  const auto* const first = static_cast<const std::byte*>(all.targets);
  for (Index target = 0; target < all.outputs && all.neurons > 0; ++target) {
    if (all.target(target) != target) return false;
  }
  for (Index neuron = 0; neuron < all.neurons; ++neuron) {
    if (all.end(neuron) != (neuron + 1) * all.outputs) return false;
    if (std::memcmp(first, first + neuron * bytes, static_cast<std::size_t>(bytes)) != 0) return false;
  }
  return true;
}

void sendPairs(const ListedRows& sent, const DelayedSynapses& synapses, const Start& start, const Arriving<float>& out,
               const Threads& threads) {
  const SampleGroups groups = groupsOf(sent, synapses, threads);
  const Index neurons = synapses.all.neurons;
  threads.run(Lanes::vectors(synapses), [&](Index vector, Index) {
    const Lanes to(synapses, vector);
    const auto add = kernels().addTaps;
    ArrivingRows rows(synapses, groups, to);
    Taps taps(synapses);
    taps.spread(to, groups, 0, neurons);
    for (Index group = 0; group < groups.count(); ++group) {
      rows.fill(start, group);
      for (Index neuron = 0; neuron < neurons; ++neuron) {
        const SpikeRow spikes = groups.row(group, neuron);
        if (spikes.count > 0) add(spikes, taps.of(neuron), taps.count(), rows.data());
      }
      rows.write(out, group);
    }
  });
}

void correlatePairs(const ListedRows& sent, const DelayedSynapses& synapses, const Arriving<const float>& g,
                    float* g_weights, float* g_delays, const Threads& threads) {
  const SampleGroups groups = groupsOf(sent, synapses, threads);
  const Index neurons = synapses.all.neurons, taps = synapses.longest + 1, size = taps * kernels().lanes;
  threads.run(Lanes::vectors(synapses), [&](Index vector, Index) {
    const Lanes to(synapses, vector);
    const auto add = kernels().sumTaps;
    ArrivingRows rows(synapses, groups, to);
    Borrowed<float> sums(neurons * size);
    std::fill_n(sums.data(), neurons * size, 0.0F);
    for (Index group = 0; group < groups.count(); ++group) {
      rows.read(g, group);
      for (Index neuron = 0; neuron < neurons; ++neuron) {
        const SpikeRow spikes = groups.row(group, neuron);
        if (spikes.count > 0) add(spikes, rows.data(), taps, sums.data() + neuron * size);
      }
    }
    for (Index neuron = 0; neuron < neurons; ++neuron) {
      const Index first = neuron * synapses.all.outputs + to.first;
      kernels().pickTaps(sums.data() + neuron * size, taps, synapses.weights + first, synapses.delays + first, to.count,
                         g_weights + first, g_delays == nullptr ? nullptr : g_delays + first);
    }
  });
}

void collectPairsToSlots(const ListedRows& sent, Index capacity, const DelayedSynapses& synapses,
                         const Arriving<const float>& g, float* out, const Threads& threads) {
  Borrowed<std::uint32_t> places;
  const SampleGroups groups = groupsOf(sent, synapses, threads, &places);
  const Index neurons = synapses.all.neurons;
  Taps taps(synapses);
  Borrowed<float> sums(sent.entries());
  std::fill_n(sums.data(), sent.entries(), 0.0F);
  for (Index vector = 0; vector < Lanes::vectors(synapses); ++vector) {
    const Lanes from(synapses, vector);
    threads.run(tasksFor(neurons, kNeuronsPerTask), [&](Index task, Index) {
      taps.spread(from, groups, task * kNeuronsPerTask, std::min((task + 1) * kNeuronsPerTask, neurons));
    });
    threads.run(groups.count(), [&](Index group, Index) {
      ArrivingRows rows(synapses, groups, from);
      rows.read(g, group);
      for (Index neuron = 0; neuron < neurons; ++neuron) {
        const SpikeRow spikes = groups.row(group, neuron);
        kernels().dotTaps(spikes.ids, spikes.count, taps.of(neuron), taps.count(), rows.data(),
                          sums.data() + groups.start(group, neuron));
      }
    });
  }
  std::fill_n(out, sent.rows() * capacity, 0.0F);
  for (Index row = 0; row < sent.rows(); ++row) {
    for (Index k = 0; k < sent.count(row); ++k) {
      out[row * capacity + sent.slots(row)[k]] = sums[places[sent.start(row) + k]];
    }
  }
}

}  // namespace snnjax
