#include "sample_groups.hpp"

#include <utility>

namespace snnjax {
namespace {

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

}  // namespace

SampleGroups::SampleGroups(const ListedRows& sent, const DelayedSynapses& synapses, Index length, Index most,
                           const Threads& threads, Borrowed<std::uint32_t>* positions)
    : synapses_(synapses),
      length_(length),
      samples_(std::clamp<Index>(most / length, 1, std::max<Index>(synapses.batch, 1))),
      starts_((synapses.all.neurons + 1) * count()),
      places_(sent.entries()) {
  require32Bits(sent.entries());
  require32Bits(places());
  if (sent.hasValues()) values_ = Borrowed<float>(sent.entries());
  if (positions != nullptr && sent.rows() > 0) {
    *positions = Borrowed<std::uint32_t>(sent.start(sent.rows() - 1) + sent.count(sent.rows() - 1));
  }
  std::vector<Index> entries(size(count() + 1));
  for (Index group = 0; group < count(); ++group) {
    Index& behind = entries[size(group + 1)];
    behind = entries[size(group)];
    eachRow(group, [&](Index row, Index) { behind += sent.count(row); });
  }
  threads.run(count(), [&](Index group, Index) {
    sort(sent, group, entries[size(group)], positions == nullptr ? nullptr : positions->data());
  });
}

bool SampleGroups::anySpike(Index neuron) const {
  for (Index group = 0; group < count(); ++group) {
    if (start(group, neuron) < start(group, neuron + 1)) return true;
  }
  return false;
}

// Calls visit(row, place) for all spikes of a group.
template <typename Visit>
void SampleGroups::eachRow(Index group, Visit visit) const {
  for (Index step = 0; step < synapses_.steps; ++step) {
    for (Index k = 0; k < samples(group); ++k) visit(step * synapses_.batch + first(group) + k, k * length_ + step);
  }
}

void SampleGroups::sort(const ListedRows& sent, Index group, Index entry, std::uint32_t* positions) {
  const Index neurons = synapses_.all.neurons;
  std::uint32_t* const starts = starts_.data() + group * (neurons + 1);
  std::vector<std::uint32_t> next(size(neurons));
  eachRow(group, [&](Index row, Index) {
    for (Index k = 0; k < sent.count(row); ++k) ++next[sent.ids(row)[k]];
  });
  for (Index neuron = 0; neuron < neurons; ++neuron) {
    starts[neuron] = static_cast<std::uint32_t>(entry);
    entry += std::exchange(next[size(neuron)], starts[neuron]);
  }
  starts[neurons] = static_cast<std::uint32_t>(entry);
  eachRow(group, [&](Index row, Index place) {
    const SpikeRow spikes = sent.row(row);
    for (std::uint32_t k = 0; k < spikes.count; ++k) {
      const std::uint32_t to = next[spikes.ids[k]]++;
      places_[to] = static_cast<std::uint32_t>(place);
      if (positions != nullptr) positions[sent.start(row) + k] = to;
      if (values_) values_[to] = spikes.values[k];
    }
  });
}

}  // namespace snnjax
