#include "synapses.hpp"

#include <algorithm>
#include <vector>

namespace snnjax {
namespace {

constexpr Index kSynapsesPerTask = Index{1} << 17;

Index tasksFor(Index count, Index each) { return (count + each - 1) / each; }

float asFloat(float number) { return number; }
float asFloat(std::uint16_t bits) { return fromBfloat16(bits); }
float asFloat(std::int8_t number) { return number; }

template <typename Work>
void withTargets(const Synapses& synapses, Work work) {
  if (synapses.targets_are_uint16) return work(static_cast<const std::uint16_t*>(synapses.targets));
  work(static_cast<const std::int32_t*>(synapses.targets));
}

// Calls work(targets, numbers) with the types that the arrays have.
template <typename Void, typename Work>
void withTypes(const Synapses& synapses, const BasicNumbers<Void>& numbers, Work work) {
  withTargets(synapses, [&](const auto* targets) {
    if (numbers.is_bfloat16) return work(targets, numbers.bfloat16());
    work(targets, numbers.float32());
  });
}

template <typename Work>
void withTypes(const Synapses& synapses, const SynapseWeights& weights, Work work) {
  if (!weights.isInt8()) return withTypes(synapses, weights.numbers(), work);
  withTargets(synapses, [&](const auto* targets) { work(targets, weights.int8()); });
}

// Negative targets become numbers that are out of range, too.
template <typename Target>
Index targetOf(const Target* targets, Index synapse) {
  return static_cast<Index>(static_cast<std::uint32_t>(targets[synapse]));
}

// Rows of g as floats, in place where they are.
class Cotangents {
 public:
  Cotangents(const Numbers& g, Index width)
      : g_(g), width_(width), row_(g.is_bfloat16 ? static_cast<std::size_t>(width) : 0) {}

  const float* row(Index index) {
    if (!g_.is_bfloat16) return g_.float32() + index * width_;
    g_.read(index * width_, width_, row_.data());
    return row_.data();
  }

 private:
  Numbers g_;
  Index width_;
  std::vector<float> row_;
};

// Four sums at a time hide the latency of additions; their order is the same for any number of threads.
template <typename Target, typename Weight>
float collected(const Synapses& synapses, const Target* targets, const Weight* weights, const float* g, Index neuron) {
  constexpr Index kSums = 4;
  float sums[kSums] = {};
  const auto add = [&](float& sum, Index s) {
    const Index target = targetOf(targets, s);
    if (target < synapses.outputs) sum += asFloat(weights[s]) * g[target];
  };
  Index s = synapses.first(neuron);
  const Index end = synapses.end(neuron);
  for (; s + kSums <= end; s += kSums) {
    for (Index k = 0; k < kSums; ++k) add(sums[k], s + k);
  }
  for (; s < end; ++s) add(sums[0], s);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Calls work(row, scratch) for all rows, each on one thread; `scratch` holds `width` floats of this thread.
template <typename Work>
void forRows(Index rows, Index width, const Threads& threads, Work work) {
  std::vector<std::vector<float>> scratch(static_cast<std::size_t>(threads.count()));
  threads.run(rows, [&](Index row, Index worker) {
    std::vector<float>& own = scratch[static_cast<std::size_t>(worker)];
    own.resize(static_cast<std::size_t>(width));
    work(row, own.data());
  });
}

// sums[target] += what the spikes of a row send, without any scale.
template <typename Target, typename Weight>
void addTo(float* sums, const SpikeRow& sent, const Synapses& synapses, const Target* targets, const Weight* weights) {
  for (std::uint32_t k = 0; k < sent.count; ++k) {
    const float value = sent.values == nullptr ? 1.0F : sent.values[k];
    const Index end = synapses.end(sent.ids[k]);
    for (Index s = synapses.first(sent.ids[k]); s < end; ++s) {
      const Index target = targetOf(targets, s);
      if (target < synapses.outputs) sums[target] += value * asFloat(weights[s]);
    }
  }
}

// The synapses that a call reads, if they are spread evenly over the neurons.
Index synapsesRead(const Synapses& synapses, Index entries) {
  return entries * (synapses.count / std::max<Index>(synapses.neurons, 1) + 1);
}

}  // namespace

void addSent(const SpikeRow& spikes, const Synapses& synapses, const SynapseWeights& weights, float* out,
             std::vector<float>& scratch) {
  if (weights.isInt8()) scratch.assign(static_cast<std::size_t>(synapses.outputs), 0.0F);
  float* const sums = weights.isInt8() ? scratch.data() : out;
  withTypes(synapses, weights,
            [&](const auto* targets, const auto* numbers) { addTo(sums, spikes, synapses, targets, numbers); });
  if (!weights.isInt8()) return;
  for (Index target = 0; target < synapses.outputs; ++target) out[target] += weights.scale()[target] * sums[target];
}

void send(const ListedRows& spikes, const Synapses& synapses, const SynapseWeights& weights, const WritableNumbers& out,
          const Threads& threads) {
  const Threads used = threadsFor(synapsesRead(synapses, spikes.entries()), threads);
  withTypes(synapses, weights, [&](const auto* targets, const auto* numbers) {
    forRows(spikes.rows(), out.is_bfloat16 ? synapses.outputs : 0, used, [&](Index row, float* scratch) {
      const Index first = row * synapses.outputs;
      float* const sums = out.is_bfloat16 ? scratch : out.float32() + first;
      std::fill_n(sums, synapses.outputs, 0.0F);
      addTo(sums, spikes.row(row), synapses, targets, numbers);
      if (weights.isInt8()) {  // sums of whole numbers, which are exact, are scaled once
        for (Index target = 0; target < synapses.outputs; ++target) sums[target] *= weights.scale()[target];
      }
      if (out.is_bfloat16) out.write(first, synapses.outputs, sums);
    });
  });
}

void collectToSlots(const ListedRows& spikes, Index capacity, const Synapses& synapses, const Numbers& weights,
                    const Numbers& g, const WritableNumbers& out, const Threads& threads) {
  const Threads used = threadsFor(synapsesRead(synapses, spikes.entries()), threads);
  withTypes(synapses, weights, [&](const auto* targets, const auto* numbers) {
    forRows(spikes.rows(), capacity, used, [&](Index row, float* sums) {
      std::fill_n(sums, capacity, 0.0F);
      Cotangents received(g, synapses.outputs);
      const float* const own = received.row(row);
      for (Index k = 0; k < spikes.count(row); ++k) {
        sums[spikes.slots(row)[k]] = collected(synapses, targets, numbers, own, spikes.ids(row)[k]);
      }
      out.write(row * capacity, capacity, sums);
    });
  });
}

void collect(Index rows, const Synapses& synapses, const Numbers& weights, const Numbers& g, const WritableNumbers& out,
             const Threads& threads) {
  const Threads used = threadsFor(rows * synapses.count, threads);
  withTypes(synapses, weights, [&](const auto* targets, const auto* numbers) {
    forRows(rows, synapses.neurons, used, [&](Index row, float* sums) {
      Cotangents received(g, synapses.outputs);
      const float* const own = received.row(row);
      for (Index i = 0; i < synapses.neurons; ++i) sums[i] = collected(synapses, targets, numbers, own, i);
      out.write(row * synapses.neurons, synapses.neurons, sums);
    });
  });
}

void correlate(const ListedRows& spikes, const Synapses& synapses, Rows<const float> g, const WritableNumbers& out,
               const Threads& threads) {
  std::vector<float> copy(static_cast<std::size_t>(out.is_bfloat16 ? synapses.count : 0));
  float* const sums = out.is_bfloat16 ? copy.data() : out.float32();
  std::fill_n(sums, synapses.count, 0.0F);
  // A task adds up row after row, which stays in the first-level cache, for the synapses of some neurons, which stay in
  // the second-level one. Ends that do not ascend may give synapses to several neurons: no two tasks may write to one.
  const bool ascends = std::is_sorted(synapses.ends, synapses.ends + synapses.neurons);
  const Threads used = threadsFor(synapsesRead(synapses, spikes.entries()), threads);
  const Index tasks = ascends ? std::max(used.count(), tasksFor(synapses.count, kSynapsesPerTask)) : 1;
  const Index each = tasksFor(synapses.neurons, tasks);
  withTargets(synapses, [&](const auto* targets) {
    used.run(tasks, [&](Index task, Index) {
      for (Index r = 0; r < spikes.rows(); ++r) {
        const SpikeRow sent = spikes.row(r);
        for (std::uint32_t k = 0; k < sent.count; ++k) {
          const Index neuron = sent.ids[k];
          if (neuron < task * each || neuron >= (task + 1) * each) continue;
          const float value = sent.values == nullptr ? 1.0F : sent.values[k];
          for (Index s = synapses.first(neuron); s < synapses.end(neuron); ++s) {
            const Index target = targetOf(targets, s);
            if (target < synapses.outputs) sums[s] += value * g.row(r)[target];
          }
        }
      }
    });
  });
  if (out.is_bfloat16) out.write(0, synapses.count, sums);
}

}  // namespace snnjax
