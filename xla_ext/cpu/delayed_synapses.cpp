#include "delayed_synapses.hpp"

#include <algorithm>
#include <tuple>

namespace snnjax {
namespace {

constexpr Index kColumnsPerTask = 16;  // whole cache lines of rows
constexpr Index kNeuronsPerTask = 64;
// Neurons collect together what lies in a first-level cache: some places of a few targets, and where they reach. What
// all targets of some samples receive is to stay in the second-level cache until all neurons are done.
constexpr Index kNeuronsAtOnce = 128;
constexpr Index kSamplesAtOnce = 16;  // whole vectors, so that shares one step apart are too
constexpr Index kPlacesAtOnce = 224;
constexpr Index kCollectedStride = kPlacesAtOnce + 16;  // equal places of all neurons in as many sets as possible
constexpr Index kWindowFloats = 6 << 10;
constexpr Index kLeastTargets = 4;

std::size_t size(Index count) { return static_cast<std::size_t>(count); }
Index tasksFor(Index count, Index each) { return (count + each - 1) / each; }

// The synapses of each target, by ascending neuron. A target out of range has none, and each synapse belongs to one
// neuron at most, whatever the ends are.
class ByTarget {
 public:
  struct Entry {
    std::uint32_t neuron, synapse;
  };

  explicit ByTarget(const Synapses& synapses) : starts_(size(synapses.outputs + 2)), entries_(synapses.count) {
    each(synapses, [&](Index, Index, Index target) { ++starts_[size(target + 2)]; });
    for (Index target = 0; target < synapses.outputs; ++target) starts_[size(target + 2)] += starts_[size(target + 1)];
    each(synapses, [&](Index neuron, Index synapse, Index target) {
      entries_[starts_[size(target + 1)]++] = {static_cast<std::uint32_t>(neuron), static_cast<std::uint32_t>(synapse)};
    });
  }

  const Entry* begin(Index target) const { return entries_.data() + starts_[size(target)]; }
  const Entry* end(Index target) const { return entries_.data() + starts_[size(target + 1)]; }
  // The first of a target whose neuron is not below this one.
  const Entry* from(Index target, Index neuron) const {
    return std::lower_bound(begin(target), end(target), neuron, [](const Entry& a, Index b) { return a.neuron < b; });
  }

 private:
  template <typename Visit>
  static void each(const Synapses& synapses, Visit visit) {
    Index synapse = 0;
    for (Index neuron = 0; neuron < synapses.neurons; ++neuron) {
      for (const Index end = synapses.end(neuron); synapse < end; ++synapse) {
        const Index target = synapses.target(synapse);
        if (target < synapses.outputs) visit(neuron, synapse, target);
      }
    }
  }

  std::vector<Index> starts_;  // of each target, between which one is left free until all are sorted
  Borrowed<Entry> entries_;
};

// Of one place, what belongs to the two steps between which a spike is split: its shares, or the cotangents of both.
// They lie side by side, so that each synapse reads and writes them at once for each spike.
using Pair = float __attribute__((vector_size(2 * sizeof(float))));

// A share of 0 is nothing whatever the weight.
Pair shares(const Share& share, float weight) {
  return Pair{share.now == 0.0F ? 0.0F : share.now * weight, share.next == 0.0F ? 0.0F : share.next * weight};
}

// column[id] += value * pair for the places where a neuron spikes.
void scatter(const SpikeRow& spikes, Pair pair, Pair* column) {
  if (spikes.values != nullptr) {
    for (std::uint32_t k = 0; k < spikes.count; ++k) column[spikes.ids[k]] += spikes.values[k] * pair;
    return;
  }
  for (std::uint32_t k = 0; k < spikes.count; ++k) column[spikes.ids[k]] += pair;
}

// The sum of value * column[id]. Four sums at a time hide the latency of additions.
Pair gathered(const SpikeRow& spikes, const Pair* column) {
  constexpr std::uint32_t kSums = 4;
  Pair sums[kSums] = {};
  const auto add = [&](auto term) {
    std::uint32_t k = 0;
    for (; k + kSums <= spikes.count; k += kSums) {
      for (std::uint32_t i = 0; i < kSums; ++i) sums[i] += term(k + i);
    }
    for (; k < spikes.count; ++k) sums[0] += term(k);
  };
  if (spikes.values == nullptr) {
    add([&](std::uint32_t k) { return column[spikes.ids[k]]; });
  } else {
    add([&](std::uint32_t k) { return spikes.values[k] * column[spikes.ids[k]]; });
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// sums[k] += <pair, column[id]>.
void addProducts(const SpikeRow& spikes, Pair pair, const Pair* column, Pair* sums) {
  for (std::uint32_t k = 0; k < spikes.count; ++k) sums[k] += pair * column[spikes.ids[k]];
}

// Some targets of what arrives, as columns; where nothing arrives any more it is 0.
template <typename Write>
void readColumns(const Arriving<const float>& g, const DelayedSynapses& synapses, Index first, Index count,
                 Write write) {
  for (Index place = 0; place < synapses.arriving(); ++place) {
    const float* const row = g.row(synapses, place) + first;
    for (Index k = 0; k < count; ++k) write(k, place, row[k]);
  }
  for (Index place = synapses.arriving(); place < synapses.places(); ++place) {
    for (Index k = 0; k < count; ++k) write(k, place, 0.0F);
  }
}

// The cotangents of a few targets as columns of pairs, which stay in the second-level cache.
class Cotangents {
 public:
  Cotangents(const DelayedSynapses& synapses, const Arriving<const float>& g)
      : synapses_(synapses), g_(g), pairs_(kColumnsPerTask * synapses.places()) {}

  void read(Index first, Index count) {
    const Index batch = synapses_.batch, places = synapses_.places();
    readColumns(g_, synapses_, first, count, [&](Index k, Index place, float number) {
      Pair* const pair = pairs_.data() + k * places + place;
      (*pair)[0] = number;
      if (place >= batch) pair[-batch][1] = number;
    });
  }

  // The k-th of them, from where a spike at place 0 arrives.
  const Pair* column(Index k, const Share& share) const {
    return pairs_.data() + k * synapses_.places() + share.whole * synapses_.batch;
  }

 private:
  const DelayedSynapses& synapses_;
  const Arriving<const float>& g_;
  Borrowed<Pair> pairs_;
};

// What the targets receive, in columns of some samples: step t of the target k is row k * rows() + t, of samples().
class ArrivingColumns {
 public:
  explicit ArrivingColumns(const DelayedSynapses& synapses)
      : synapses_(synapses),
        groups_(tasksFor(synapses.batch, kSamplesAtOnce)),
        samples_(tasksFor(synapses.batch, groups_)),
        rows_(synapses.steps + synapses.longest + 1 + tasksFor(kSamplesAtOnce, samples_)),  // with zeros behind
        numbers_(groups_ * synapses.all.outputs * rows_ * samples_) {
    require32Bits(synapses.all.outputs * rows_);
  }

  Index groups() const { return groups_; }
  Index samples() const { return samples_; }
  Index samples(Index group) const { return std::min(samples_, synapses_.batch - group * samples_); }
  Index rows() const { return rows_; }
  Rows<const float> of(Index group) const { return {column(group, 0), samples_}; }

  void read(const Arriving<const float>& g, const Threads& threads) {
    const Index outputs = synapses_.all.outputs, lanes = kernels().lanes;
    threads.run(tasksFor(outputs, lanes) * groups_, [&](Index task, Index) {
      const Index group = task % groups_, first = task / groups_ * lanes;
      const Index count = std::min(lanes, outputs - first), size = rows_ * samples_;
      float* const to = column(group, first);
      const Index steps = synapses_.steps + synapses_.longest, behind = (rows_ - steps) * samples_;
      for (Index k = 0; k < count; ++k) std::fill_n(to + (k + 1) * size - behind, behind, 0.0F);
      Borrowed<float> block(kSamplesAtOnce * lanes);
      std::fill_n(block.data(), kSamplesAtOnce * lanes, 0.0F);
      for (Index step = 0; step < steps; ++step) {
        const float* const row = g.row(synapses_, step * synapses_.batch + group * samples_) + first;
        kernels().readVectors({row, outputs}, samples(group), count, {block.data(), lanes});
        kernels().transpose({block.data(), lanes}, samples_, count, {to + step * samples_, size});
      }
    });
  }

 private:
  float* column(Index group, Index target) {
    return numbers_.data() + (group * synapses_.all.outputs + target) * rows_ * samples_;
  }
  const float* column(Index group, Index target) const {
    return numbers_.data() + (group * synapses_.all.outputs + target) * rows_ * samples_;
  }

  const DelayedSynapses& synapses_;
  Index groups_, samples_, rows_;  // of which all but the last group have as many
  Borrowed<float> numbers_;
};

// Between which synapses each neuron's are: no synapse belongs to two of them, whatever the ends are.
std::vector<Index> startsOf(const Synapses& synapses) {
  std::vector<Index> starts(size(synapses.neurons + 1));
  for (Index i = 0; i < synapses.neurons; ++i) starts[size(i + 1)] = std::max(starts[size(i)], synapses.end(i));
  return starts;
}

// The shares of the synapses of some neurons, each by target. Targets come in blocks.
class SharesOfNeurons {
 public:
  // Of up to so many synapses; step 0 of the target k is row k * rows.
  SharesOfNeurons(const DelayedSynapses& synapses, Index count, Index rows, Index targets_of_block)
      : synapses_(synapses),
        targets_(static_cast<std::uint32_t>(synapses.all.outputs)),
        steps_(static_cast<std::uint32_t>(rows)),
        blocks_(std::max<Index>(tasksFor(synapses.all.outputs, targets_of_block), 1)),
        rows_of_block_(targets_of_block * rows),
        rows_(count),
        whole_(count),
        now_(count),
        next_(count),
        ends_{0} {}

  Index blocks() const { return blocks_; }

  // Those of the next neuron.
  void add(Index first, Index end) {
    const Index start = ends_.back(), count = end - first;
    kernels().splitShares(synapses_.weights + first, synapses_.delays + first, count, synapses_.longest + 1,
                          whole_.data() + start, now_.data() + start, next_.data() + start);
    const bool in_order = synapses_.all.targets_are_uint16 ? place<std::uint16_t>(first, count, start)
                                                           : place<std::uint32_t>(first, count, start);
    const std::uint32_t* const own = rows_.data() + start;
    const std::uint32_t* const behind = own + (in_order ? count : sort(first, count, start));
    for (Index block = 1; block < blocks_; ++block) {
      const auto limit = static_cast<std::uint32_t>(block * rows_of_block_);
      ends_.push_back(std::lower_bound(own, behind, limit) - rows_.data());
    }
    ends_.push_back(behind - rows_.data());
  }

  DelayedShares block(Index neuron, Index number) const {
    const std::size_t at = size(neuron * blocks_ + number);
    const Index start = ends_[at];
    return {rows_.data() + start, now_.data() + start, next_.data() + start, ends_[at + 1] - start};
  }

 private:
  // Whether targets are in ascending order, and none is out of range.
  template <typename Target>
  bool place(Index first, Index count, Index start) {
    const Target* const targets = static_cast<const Target*>(synapses_.all.targets) + first;
    const float* const whole = whole_.data() + start;
    std::uint32_t* const rows = rows_.data() + start;
    for (Index k = 0; k < count; ++k) {
      rows[k] = targets[k] * steps_ + static_cast<std::uint32_t>(static_cast<std::int32_t>(whole[k]));
    }
    bool in_order = count == 0 || targets[count - 1] < targets_;
    for (Index k = 1; k < count; ++k) in_order &= targets[k - 1] <= targets[k];
    return in_order;
  }

  // Sorts by target, and returns how many are in the range.
  Index sort(Index first, Index count, Index start) {
    std::vector<std::tuple<Index, float, float>> own;
    for (Index k = 0; k < count; ++k) {
      const Index target = synapses_.all.target(first + k);
      if (target >= synapses_.all.outputs) continue;
      own.emplace_back(target * steps_ + static_cast<Index>(whole_[start + k]), now_[start + k], next_[start + k]);
    }
    std::stable_sort(own.begin(), own.end(),
                     [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
    for (const auto& [row, now, next] : own) {
      rows_[start] = static_cast<std::uint32_t>(row);
      now_[start] = now;
      next_[start++] = next;
    }
    return static_cast<Index>(own.size());
  }

  const DelayedSynapses& synapses_;
  std::uint32_t targets_, steps_;
  Index blocks_, rows_of_block_;
  Borrowed<std::uint32_t> rows_;
  Borrowed<float> whole_, now_, next_;
  std::vector<Index> ends_;  // of the blocks of each neuron
};

}  // namespace

void sendDelayed(const ListedRows& sent, const DelayedSynapses& synapses, const Start& start,
                 const Arriving<float>& out, const Threads& threads) {
  const ByTarget by_target(synapses.all);
  const ListedRows by_neuron = sent.transposed();
  const Index batch = synapses.batch, places = synapses.places(), outputs = synapses.all.outputs;
  threads.run(tasksFor(outputs, kColumnsPerTask), [&](Index task, Index) {
    const Index first = task * kColumnsPerTask, count = std::min(kColumnsPerTask, outputs - first);
    Borrowed<Pair> columns(count * places);
    std::fill_n(columns.data(), count * places, Pair{});
    for (Index k = 0; k < count; ++k) {
      for (const auto* entry = by_target.begin(first + k); entry != by_target.end(first + k); ++entry) {
        const Share share = synapses.share(entry->synapse);
        scatter(by_neuron.row(entry->neuron), shares(share, synapses.weights[entry->synapse]),
                columns.data() + k * places + share.whole * batch);
      }
    }
    for (Index place = 0; place < synapses.arriving(); ++place) {
      float* const row = out.row(synapses, place) + first;
      const bool is_pending = start.pending != nullptr && place < synapses.longest * batch;
      const bool has_bias = start.bias != nullptr && place < synapses.sent();
      for (Index k = 0; k < count; ++k) {
        const Pair* const pair = columns.data() + k * places + place;
        row[k] = pair[0][0] + (place < batch ? 0.0F : pair[-batch][1]);
        if (is_pending) row[k] += start.pending[place * outputs + first + k];
        if (has_bias) row[k] += start.bias[first + k];
      }
    }
  });
}

void correlateDelayed(const ListedRows& sent, const DelayedSynapses& synapses, const Arriving<const float>& g,
                      float* g_weights, float* g_delays, const Threads& threads) {
  const ByTarget by_target(synapses.all);
  const ListedRows by_neuron = sent.transposed();
  std::fill_n(g_weights, synapses.all.count, 0.0F);
  if (g_delays != nullptr) std::fill_n(g_delays, synapses.all.count, 0.0F);
  threads.run(tasksFor(synapses.all.outputs, kColumnsPerTask), [&](Index task, Index) {
    const Index first = task * kColumnsPerTask, count = std::min(kColumnsPerTask, synapses.all.outputs - first);
    Cotangents received(synapses, g);
    received.read(first, count);
    for (Index k = 0; k < count; ++k) {
      for (const auto* entry = by_target.begin(first + k); entry != by_target.end(first + k); ++entry) {
        const Share share = synapses.share(entry->synapse);
        const Pair sum = gathered(by_neuron.row(entry->neuron), received.column(k, share));
        synapses.write(entry->synapse, share, sum[0], sum[1], g_weights, g_delays);
      }
    }
  });
}

void collectDelayedToSlots(const ListedRows& sent, Index capacity, const DelayedSynapses& synapses,
                           const Arriving<const float>& g, float* out, const Threads& threads) {
  const ByTarget by_target(synapses.all);
  Borrowed<std::uint32_t> places;
  const ListedRows by_neuron = sent.transposed(&places);
  Borrowed<Pair> sums(by_neuron.entries());
  std::fill_n(sums.data(), by_neuron.entries(), Pair{});
  const Index neurons = synapses.all.neurons, outputs = synapses.all.outputs;
  Cotangents received(synapses, g);
  for (Index first = 0; first < outputs; first += kColumnsPerTask) {
    const Index count = std::min(kColumnsPerTask, outputs - first);
    received.read(first, count);
    threads.run(tasksFor(neurons, kNeuronsPerTask), [&](Index task, Index) {
      const Index behind = std::min((task + 1) * kNeuronsPerTask, neurons);
      for (Index k = 0; k < count; ++k) {
        const auto* const end = by_target.from(first + k, behind);
        for (const auto* entry = by_target.from(first + k, task * kNeuronsPerTask); entry != end; ++entry) {
          const Share share = synapses.share(entry->synapse);
          addProducts(by_neuron.row(entry->neuron), shares(share, synapses.weights[entry->synapse]),
                      received.column(k, share), sums.data() + by_neuron.start(entry->neuron));
        }
      }
    });
  }
  std::fill_n(out, sent.rows() * capacity, 0.0F);
  for (Index row = 0; row < sent.rows(); ++row) {
    for (Index k = 0; k < sent.count(row); ++k) {
      const Pair sum = sums[places[sent.start(row) + k]];
      out[row * capacity + sent.slots(row)[k]] = sum[0] + sum[1];
    }
  }
}

void collectDelayed(const DelayedSynapses& synapses, const Arriving<const float>& g, float* out,
                    const Threads& threads) {
  const Index neurons = synapses.all.neurons, batch = synapses.batch;
  if (synapses.sent() == 0) return;
  ArrivingColumns columns(synapses);
  columns.read(g, threads);
  const Index samples = columns.samples(), parts_of_steps = tasksFor(synapses.steps * samples, kPlacesAtOnce);
  const Index steps_at_once = tasksFor(synapses.steps, parts_of_steps);
  const Index window = (steps_at_once + synapses.longest + 1) * samples;
  const Index targets = std::max(kLeastTargets, kWindowFloats / window);
  const std::vector<Index> starts = startsOf(synapses.all);
  const Index parts = tasksFor(neurons, kNeuronsAtOnce);
  threads.run(parts * columns.groups(), [&](Index task, Index) {
    const Index group = task / parts, first = task % parts * kNeuronsAtOnce;
    const Index count = std::min(kNeuronsAtOnce, neurons - first);
    const Index own = starts[size(first + count)] - starts[size(first)];
    SharesOfNeurons shares(synapses, own, columns.rows(), targets);
    for (Index i = first; i < first + count; ++i) shares.add(starts[size(i)], starts[size(i + 1)]);
    const Index stride = tasksFor(count, kernels().lanes) * kernels().lanes;
    Borrowed<float> collected(stride * kCollectedStride), rows(kCollectedStride * stride);
    for (Index step = 0; step < synapses.steps; step += steps_at_once) {
      const Index steps = std::min(steps_at_once, synapses.steps - step);
      const Rows<const float> arriving{columns.of(group).row(step), samples};
      std::fill_n(collected.data(), count * kCollectedStride, 0.0F);
      for (Index block = 0; block < shares.blocks(); ++block) {
        for (Index i = 0; i < count; ++i) {
          kernels().collectShares(shares.block(i, block), arriving, tasksFor(steps * samples, kernels().lanes),
                                  collected.data() + i * kCollectedStride);
        }
      }
      kernels().transpose({collected.data(), kCollectedStride}, count, steps * samples, {rows.data(), stride});
      for (Index k = 0; k < steps; ++k) {
        const Index row = (step + k) * batch + group * samples;
        kernels().streamRows({rows.data() + k * samples * stride, stride}, columns.samples(group), count, nullptr,
                             {out + row * neurons + first, neurons});
      }
    }
  });
}

}  // namespace snnjax
