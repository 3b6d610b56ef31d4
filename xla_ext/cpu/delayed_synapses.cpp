#include "delayed_synapses.hpp"

#include <algorithm>
#include <cmath>

namespace snnjax {
namespace {

constexpr Index kColumnsPerTask = 16;  // whole cache lines of rows
constexpr Index kNeuronsPerTask = 64;

std::size_t size(Index count) { return static_cast<std::size_t>(count); }
Index tasksFor(Index count, Index each) { return (count + each - 1) / each; }

// The synapses of each target, by ascending neuron. A target out of range has none, and each synapse belongs to one
// neuron at most, whatever the ends are.
class ByTarget {
 public:
  struct Entry {
    std::uint32_t neuron, synapse;
  };

  explicit ByTarget(const Synapses& synapses)
      : starts_(size(synapses.outputs + 2)), entries_(synapses.count) {
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

// Columns [first, first + count) of a matrix of rows, each `stride` numbers behind the one before.
void toColumns(const float* rows, Index places, Index width, Index first, Index count, float* columns, Index stride) {
  for (Index place = 0; place < places; ++place) {
    const float* const row = rows + place * width + first;
    for (Index k = 0; k < count; ++k) columns[k * stride + place] = row[k];
  }
}

void toRows(const float* columns, Index stride, Index places, Index width, Index first, Index count, float* rows) {
  for (Index place = 0; place < places; ++place) {
    float* const row = rows + place * width + first;
    for (Index k = 0; k < count; ++k) row[k] = columns[k * stride + place];
  }
}

void scatter(const SpikeRow& spikes, float weight, float* column) {
  if (spikes.values != nullptr) {
    for (std::uint32_t k = 0; k < spikes.count; ++k) column[spikes.ids[k]] += spikes.values[k] * weight;
    return;
  }
  for (std::uint32_t k = 0; k < spikes.count; ++k) column[spikes.ids[k]] += weight;
}

// Four sums at a time hide the latency of additions.
float gathered(const SpikeRow& spikes, const float* column) {
  constexpr std::uint32_t kSums = 4;
  float sums[kSums] = {};
  const auto term = [&](std::uint32_t k) {
    return spikes.values == nullptr ? column[spikes.ids[k]] : spikes.values[k] * column[spikes.ids[k]];
  };
  std::uint32_t k = 0;
  for (; k + kSums <= spikes.count; k += kSums) {
    for (std::uint32_t i = 0; i < kSums; ++i) sums[i] += term(k + i);
  }
  for (; k < spikes.count; ++k) sums[0] += term(k);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The cotangents of all targets as columns, and behind each those of one step more, 0: where a share of 0 arrives.
class Cotangents {
 public:
  Cotangents(const DelayedSynapses& synapses, const float* g, const Threads& threads)
      : stride_(synapses.arriving() + synapses.batch), columns_(synapses.all.outputs * stride_) {
    threads.run(tasksFor(synapses.all.outputs, kColumnsPerTask), [&](Index task, Index) {
      const Index first = task * kColumnsPerTask, count = std::min(kColumnsPerTask, synapses.all.outputs - first);
      for (Index target = first; target < first + count; ++target) {
        std::fill_n(columns_.data() + target * stride_ + synapses.arriving(), synapses.batch, 0.0F);
      }
      toColumns(g, synapses.arriving(), synapses.all.outputs, first, count, columns_.data() + first * stride_, stride_);
    });
  }

  Index stride() const { return stride_; }
  const float* column(Index target) const { return columns_.data() + target * stride_; }

 private:
  Index stride_;
  Borrowed<float> columns_;
};

}  // namespace

Share DelayedSynapses::share(Index synapse) const {
  const float delay = delays[synapse] > 0.0F ? std::min(delays[synapse], static_cast<float>(longest)) : 0.0F;
  const float whole = std::min(std::floor(delay), static_cast<float>(std::max<Index>(longest - 1, 0)));
  return {static_cast<Index>(whole), 1.0F - (delay - whole), delay - whole};
}

void sendDelayed(const ListedRows& by_neuron, const DelayedSynapses& synapses, float* out, const Threads& threads) {
  const ByTarget by_target(synapses.all);
  const Index batch = synapses.batch, stride = synapses.arriving() + batch, outputs = synapses.all.outputs;
  threads.run(tasksFor(outputs, kColumnsPerTask), [&](Index task, Index) {
    const Index first = task * kColumnsPerTask, count = std::min(kColumnsPerTask, outputs - first);
    Borrowed<float> columns(count * stride);
    std::fill_n(columns.data(), count * stride, 0.0F);
    for (Index k = 0; k < count; ++k) {
      float* const column = columns.data() + k * stride;
      for (const auto* entry = by_target.begin(first + k); entry != by_target.end(first + k); ++entry) {
        const SpikeRow spikes = by_neuron.row(entry->neuron);
        if (spikes.count == 0) continue;
        const Share share = synapses.share(entry->synapse);
        const float weight = synapses.weights[entry->synapse];
        if (share.now != 0.0F) scatter(spikes, share.now * weight, column + share.whole * batch);
        if (share.next != 0.0F) scatter(spikes, share.next * weight, column + (share.whole + 1) * batch);
      }
    }
    toRows(columns.data(), stride, synapses.arriving(), outputs, first, count, out);
  });
}

void correlateDelayed(const ListedRows& by_neuron, const DelayedSynapses& synapses, const float* g, float* g_weights,
                      float* g_delays, const Threads& threads) {
  const ByTarget by_target(synapses.all);
  const Index batch = synapses.batch;
  std::fill_n(g_weights, synapses.all.count, 0.0F);
  if (g_delays != nullptr) std::fill_n(g_delays, synapses.all.count, 0.0F);
  const Cotangents received(synapses, g, threads);
  threads.run(tasksFor(synapses.all.outputs, kColumnsPerTask), [&](Index task, Index) {
    const Index first = task * kColumnsPerTask;
    for (Index target = first; target < std::min(first + kColumnsPerTask, synapses.all.outputs); ++target) {
      for (const auto* entry = by_target.begin(target); entry != by_target.end(target); ++entry) {
        const SpikeRow spikes = by_neuron.row(entry->neuron);
        if (spikes.count == 0) continue;
        const Share share = synapses.share(entry->synapse);
        const float* const place = received.column(target) + share.whole * batch;
        const bool reads_next = share.next != 0.0F || g_delays != nullptr;
        const float now = gathered(spikes, place), next = reads_next ? gathered(spikes, place + batch) : 0.0F;
        g_weights[entry->synapse] = share.next == 0.0F ? now : share.now * now + share.next * next;
        if (g_delays != nullptr) g_delays[entry->synapse] = synapses.weights[entry->synapse] * (next - now);
      }
    }
  });
}

void collectDelayedToSlots(const ListedRows& sent, Index capacity, const DelayedSynapses& synapses, const float* g,
                           float* out, const Threads& threads) {
  const ByTarget by_target(synapses.all);
  const Cotangents received(synapses, g, threads);
  Borrowed<std::uint32_t> places;
  const ListedRows by_neuron = sent.transposed(&places);
  Borrowed<float> sums(by_neuron.entries());
  const Index neurons = synapses.all.neurons, batch = synapses.batch;
  threads.run(tasksFor(neurons, kNeuronsPerTask), [&](Index task, Index) {
    const Index first = task * kNeuronsPerTask, behind = std::min(first + kNeuronsPerTask, neurons);
    for (Index i = first; i < behind; ++i) std::fill_n(sums.data() + by_neuron.start(i), by_neuron.count(i), 0.0F);
    for (Index target = 0; target < synapses.all.outputs; ++target) {
      const auto* const end = by_target.from(target, behind);
      for (const auto* entry = by_target.from(target, first); entry != end; ++entry) {
        const SpikeRow spikes = by_neuron.row(entry->neuron);
        const Share share = synapses.share(entry->synapse);
        const float weight = synapses.weights[entry->synapse], now = share.now * weight, next = share.next * weight;
        const float* const place = received.column(target) + share.whole * batch;
        float* const own = sums.data() + by_neuron.start(entry->neuron);
        if (share.next == 0.0F) {
          for (std::uint32_t k = 0; k < spikes.count; ++k) own[k] += now * place[spikes.ids[k]];
          continue;
        }
        for (std::uint32_t k = 0; k < spikes.count; ++k) {
          own[k] += now * place[spikes.ids[k]] + next * place[spikes.ids[k] + batch];
        }
      }
    }
  });
  std::fill_n(out, sent.rows() * capacity, 0.0F);
  for (Index row = 0; row < sent.rows(); ++row) {
    for (Index k = 0; k < sent.count(row); ++k) {
      out[row * capacity + sent.slots(row)[k]] = sums[places[sent.start(row) + k]];
    }
  }
}

void collectDelayed(const DelayedSynapses& synapses, const float* g, float* out, const Threads& threads) {
  const Cotangents received(synapses, g, threads);
  const Index neurons = synapses.all.neurons, batch = synapses.batch, columns = synapses.sent();
  if (columns == 0) return;
  // Where a share arrives is a row of the columns, which overlap: `batch` numbers from one to the next.
  const Index steps = received.stride() / batch;
  require32Bits(synapses.all.outputs * steps);
  threads.run(tasksFor(neurons, kColumnsPerTask), [&](Index task, Index) {
    const Index first = task * kColumnsPerTask, count = std::min(kColumnsPerTask, neurons - first);
    Borrowed<float> collected(count * columns);
    std::vector<std::uint32_t> ids;
    std::vector<float> values;
    for (Index i = first; i < first + count; ++i) {
      ids.clear();
      values.clear();
      for (Index s = synapses.all.first(i); s < synapses.all.end(i); ++s) {
        const Index target = synapses.all.target(s);
        if (target >= synapses.all.outputs) continue;
        const Share share = synapses.share(s);
        const auto id = static_cast<std::uint32_t>(target * steps + share.whole);
        ids.insert(ids.end(), {id, id + 1});
        values.insert(values.end(), {share.now * synapses.weights[s], share.next * synapses.weights[s]});
      }
      const SpikeRow shares{ids.data(), values.data(), static_cast<std::uint32_t>(ids.size()), false};
      kernels().sumRows(&shares, 1, {received.column(0), batch}, columns, {nullptr, 0},
                        {collected.data() + (i - first) * columns, columns});
    }
    toRows(collected.data(), columns, columns, neurons, first, count, out);
  });
}

}  // namespace snnjax
