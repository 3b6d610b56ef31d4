#include "delayed_synapses.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "cpu/synapses/incoming_synapses.hpp"
#include "sample_columns.hpp"

namespace snnjax {
namespace {

constexpr Index kTargets = SampleColumns::kTargets;
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

// Of one place, what belongs to the two steps between which a spike is split: its shares, or the cotangents of both.
using Pair = float __attribute__((vector_size(2 * sizeof(float))));
using PairInColumn = Pair __attribute__((aligned(sizeof(float)), may_alias));

Pair load(const float* from) { return *reinterpret_cast<const PairInColumn*>(from); }
void store(float* to, Pair pair) { *reinterpret_cast<PairInColumn*>(to) = pair; }

// The synapses of kTargets targets each.
IncomingSynapses incomingOf(const Synapses& synapses) {
  return {synapses, tasksFor(synapses.outputs, kTargets), [](Index, Index target) { return target / kTargets; }};
}

// The shares of the synapses of kTargets targets, and the place of the columns of these, `stride` apart, where the
// first share arrives of what is sent at place 0. They are sorted by pairs of targets, whose columns stay in the cache
// together, and then by sender, so that both synapses of a neuron read its spikes at once.
class ShareColumns {
 public:
  // `weights` of all synapses, or nullptr for the shares of 1.
  ShareColumns(const IncomingSynapses& incoming, const DelayedSynapses& of, const float* weights, Index task,
               Index stride)
      : entries_(incoming.begin(task)),
        count_(incoming.end(task) - entries_),
        slots_(count_),
        senders_(count_),
        places_(count_),
        shares_(count_) {
    Borrowed<float> numbers(5 * count_);
    float *const own = numbers.data(), *const delays = own + count_, *const whole = delays + count_;
    float *const now = whole + count_, *const next = now + count_;
    for (Index k = 0; k < count_; ++k) {
      own[k] = weights == nullptr ? 1.0F : weights[entries_[k].synapse];
      delays[k] = of.delays[entries_[k].synapse];
      slots_[k] = static_cast<std::uint32_t>(of.all.target(entries_[k].synapse) - task * kTargets);
      ++starts_[slots_[k] / 2 + 1];
    }
    kernels().splitShares(own, delays, count_, of.longest + 1, whole, now, next);
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    std::array<Index, kPairs + 1> free = starts_;
    for (Index k = 0; k < count_; ++k) {
      const Index column = slots_[k], slot = free[size(column / 2)]++;
      slots_[k] = static_cast<std::uint32_t>(slot);
      senders_[slot] = entries_[k].sender;
      places_[slot] = static_cast<std::uint32_t>(column * stride + static_cast<Index>(whole[k]));
      shares_[slot] = Pair{now[k], next[k]};
    }
  }

  Index count() const { return count_; }
  std::uint32_t sender(Index slot) const { return senders_[slot]; }
  const std::uint32_t* places(Index slot) const { return places_.data() + slot; }
  const Pair* shares(Index slot) const { return shares_.data() + slot; }

  // Calls visit.operator()<n>(slot, spikes) for the n synapses from a slot on of each neuron in [first, end) that
  // spikes.
  template <typename Visit>
  void eachSender(const SampleGroups& groups, Index group, Index first, Index end, Visit visit) const {
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      const std::uint32_t* const senders = senders_.data();
      Index slot = std::lower_bound(senders + starts_[pair], senders + starts_[pair + 1], first) - senders;
      while (slot < starts_[pair + 1] && senders[slot] < end) {
        const SpikeRow spikes = groups.row(group, senders[slot]);
        const bool are_two = slot + 1 < starts_[pair + 1] && senders[slot + 1] == senders[slot];
        if (spikes.count > 0) {
          are_two ? visit.template operator()<2>(slot, spikes) : visit.template operator()<1>(slot, spikes);
        }
        slot += are_two ? 2 : 1;
      }
    }
  }
  // Calls visit(synapse, slot), by ascending synapse.
  template <typename Visit>
  void eachSynapse(Visit visit) const {
    for (Index k = 0; k < count_; ++k) visit(Index{entries_[k].synapse}, Index{slots_[k]});
  }

 private:
  static constexpr std::size_t kPairs = kTargets / 2;

  const IncomingSynapses::Entry* entries_;
  Index count_;
  std::array<Index, kPairs + 1> starts_{};  // of the slots of each pair
  Borrowed<std::uint32_t> slots_;           // of the entries
  Borrowed<std::uint32_t> senders_, places_;
  Borrowed<Pair> shares_;
};

// column[place] += value * share where a neuron spikes, of the columns of its `kCount` synapses.
template <int kCount>
void scatter(const SpikeRow& spikes, const Pair* shares, const std::uint32_t* places, float* columns) {
  Pair own[kCount];
  float* column[kCount];
  for (int i = 0; i < kCount; ++i) own[i] = shares[i], column[i] = columns + places[i];
  const std::uint32_t* const ids = spikes.ids;
  const auto add = [&](auto value) {
    for (std::uint32_t k = 0, count = spikes.count; k < count; ++k) {
      const Index place = ids[k];
      for (int i = 0; i < kCount; ++i) {
        store(column[i] + place, load(column[i] + place) + value(k, own[i]));
      }
    }
  };
  if (spikes.values == nullptr) {
    add([](std::uint32_t, Pair share) { return share; });
  } else {
    add([values = spikes.values](std::uint32_t k, Pair share) { return values[k] * share; });
  }
}

// sums += value * column[place]. Four sums at a time hide the latency of additions.
template <int kCount>
void gather(const SpikeRow& spikes, const std::uint32_t* places, const float* columns, Pair* sums) {
  constexpr std::uint32_t kAtOnce = 4 / kCount;
  Pair own[kAtOnce][kCount] = {};
  const float* column[kCount];
  for (int i = 0; i < kCount; ++i) column[i] = columns + places[i];
  const std::uint32_t *const ids = spikes.ids, count = spikes.count;
  const auto add = [&](auto value) {
    std::uint32_t k = 0;
    for (; k + kAtOnce <= count; k += kAtOnce) {
      for (std::uint32_t j = 0; j < kAtOnce; ++j) {
        for (int i = 0; i < kCount; ++i) own[j][i] += value(k + j, load(column[i] + ids[k + j]));
      }
    }
    for (; k < count; ++k) {
      for (int i = 0; i < kCount; ++i) own[0][i] += value(k, load(column[i] + ids[k]));
    }
  };
  if (spikes.values == nullptr) {
    add([](std::uint32_t, Pair met) { return met; });
  } else {
    add([values = spikes.values](std::uint32_t k, Pair met) { return values[k] * met; });
  }
  for (int i = 0; i < kCount; ++i) {
    for (std::uint32_t j = 0; j < kAtOnce; ++j) sums[i] += own[j][i];
  }
}

// sums[k] += <share, column[place]> for each spike.
template <int kCount>
void addProducts(const SpikeRow& spikes, const Pair* shares, const std::uint32_t* places, const float* columns,
                 Pair* sums) {
  Pair own[kCount];
  const float* column[kCount];
  for (int i = 0; i < kCount; ++i) own[i] = shares[i], column[i] = columns + places[i];
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    Pair sum = sums[k];
    for (int i = 0; i < kCount; ++i) sum += own[i] * load(column[i] + spikes.ids[k]);
    sums[k] = sum;
  }
}

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
  const IncomingSynapses incoming = incomingOf(synapses.all);
  const SampleGroups groups = SampleColumns::groupsOf(sent, synapses, threads);
  threads.run(tasksFor(synapses.all.outputs, kTargets), [&](Index task, Index) {
    const Index first = task * kTargets, count = std::min(kTargets, synapses.all.outputs - first);
    SampleColumns columns(synapses, groups);
    const ShareColumns own(incoming, synapses, synapses.weights, task, columns.stride());
    for (Index group = 0; group < groups.count(); ++group) {
      columns.fill(start, group, first, count);
      own.eachSender(groups, group, 0, synapses.all.neurons, [&]<int kCount>(Index slot, const SpikeRow& spikes) {
        scatter<kCount>(spikes, own.shares(slot), own.places(slot), columns.data());
      });
      columns.write(out, group, first, count);
    }
  });
}

void correlateDelayed(const ListedRows& sent, const DelayedSynapses& synapses, const Arriving<const float>& g,
                      float* g_weights, float* g_delays, const Threads& threads) {
  const IncomingSynapses incoming = incomingOf(synapses.all);
  const SampleGroups groups = SampleColumns::groupsOf(sent, synapses, threads);
  std::fill_n(g_weights, synapses.all.count, 0.0F);
  if (g_delays != nullptr) std::fill_n(g_delays, synapses.all.count, 0.0F);
  threads.run(tasksFor(synapses.all.outputs, kTargets), [&](Index task, Index) {
    const Index first = task * kTargets, count = std::min(kTargets, synapses.all.outputs - first);
    SampleColumns columns(synapses, groups);
    const ShareColumns own(incoming, synapses, nullptr, task, columns.stride());
    Borrowed<Pair> sums(own.count());
    std::fill_n(sums.data(), own.count(), Pair{});
    for (Index group = 0; group < groups.count(); ++group) {
      columns.read(g, group, first, count);
      own.eachSender(groups, group, 0, synapses.all.neurons, [&]<int kCount>(Index slot, const SpikeRow& spikes) {
        gather<kCount>(spikes, own.places(slot), columns.data(), sums.data() + slot);
      });
    }
    own.eachSynapse([&](Index synapse, Index slot) {
      const Pair share = *own.shares(slot), sum = sums[slot];
      g_weights[synapse] = share[1] == 0.0F ? sum[0] : share[0] * sum[0] + share[1] * sum[1];
      if (g_delays != nullptr) g_delays[synapse] = synapses.weights[synapse] * (sum[1] - sum[0]);
    });
  });
}

void collectDelayedToSlots(const ListedRows& sent, Index capacity, const DelayedSynapses& synapses,
                           const Arriving<const float>& g, float* out, const Threads& threads) {
  const IncomingSynapses incoming = incomingOf(synapses.all);
  Borrowed<std::uint32_t> positions;
  const SampleGroups groups = SampleColumns::groupsOf(sent, synapses, threads, &positions);
  const Index neurons = synapses.all.neurons, outputs = synapses.all.outputs;
  std::vector<SampleColumns> columns;
  for (Index group = 0; group < groups.count(); ++group) columns.emplace_back(synapses, groups);
  Borrowed<Pair> sums(sent.entries());
  std::fill_n(sums.data(), sent.entries(), Pair{});
  for (Index first = 0; first < outputs && groups.count() > 0; first += kTargets) {
    const ShareColumns own(incoming, synapses, synapses.weights, first / kTargets, columns[0].stride());
    threads.run(groups.count(), [&](Index group, Index) {
      columns[size(group)].read(g, group, first, std::min(kTargets, outputs - first));
    });
    threads.run(groups.count() * tasksFor(neurons, kNeuronsPerTask), [&](Index task, Index) {
      const Index group = task % groups.count(), neuron = task / groups.count() * kNeuronsPerTask;
      own.eachSender(groups, group, neuron, std::min(neuron + kNeuronsPerTask, neurons),
                     [&]<int kCount>(Index slot, const SpikeRow& spikes) {
                       addProducts<kCount>(spikes, own.shares(slot), own.places(slot), columns[size(group)].data(),
                                           sums.data() + groups.start(group, own.sender(slot)));
                     });
    });
  }
  std::fill_n(out, sent.rows() * capacity, 0.0F);
  for (Index row = 0; row < sent.rows(); ++row) {
    for (Index k = 0; k < sent.count(row); ++k) {
      const Pair sum = sums[positions[sent.start(row) + k]];
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
