#include "sample_columns.hpp"

#include <utility>

namespace snnjax {
namespace {

constexpr Index kColumnBytes = 16 << 10;  // of a group: two stay in a first-level cache
constexpr Index kTargets = SampleColumns::kTargets;

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

}  // namespace

SampleGroups::SampleGroups(const ListedRows& sent, const DelayedSynapses& synapses, const Threads& threads,
                           Borrowed<std::uint32_t>* positions)
    : synapses_(synapses),
      length_(synapses.steps + synapses.longest + 1),
      samples_(
          std::clamp<Index>(kColumnBytes / (length_ * Index{sizeof(float)}), 1, std::max<Index>(synapses.batch, 1))),
      starts_((synapses.all.neurons + 1) * count()),
      places_(sent.entries()) {
  require32Bits(sent.entries());
  require32Bits(kTargets * (places() + kTargets));
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

Index SampleGroups::count() const { return (synapses_.batch + samples_ - 1) / samples_; }

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

SampleColumns::SampleColumns(const DelayedSynapses& synapses, const SampleGroups& groups)
    : synapses_(synapses),
      groups_(groups),
      stride_(groups.places() + kTargets),  // whole vectors are written
      columns_(kTargets * stride_),
      rows_((groups.length() + kTargets) * kTargets) {
  std::fill_n(rows_.data(), (groups.length() + kTargets) * kTargets, 0.0F);
}

void SampleColumns::fill(const Start& start, Index group, Index first, Index count) {
  const Index length = groups_.length(), batch = synapses_.batch, outputs = synapses_.all.outputs;
  std::fill_n(columns_.data(), count * stride_, 0.0F);
  for (Index k = 0; k < count; ++k) {
    for (Index sample = 0; sample < groups_.samples(group); ++sample) {
      float* const own = columns_.data() + k * stride_ + sample * length;
      if (start.bias != nullptr) std::fill_n(own, synapses_.steps, start.bias[first + k]);
      const Index pending = start.pending == nullptr ? 0 : synapses_.longest;
      for (Index step = 0; step < pending; ++step) {
        own[step] += start.pending[(step * batch + groups_.first(group) + sample) * outputs + first + k];
      }
    }
  }
}

template <typename T, typename Visit>
void SampleColumns::eachPart(const Arriving<T>& all, Index sample, Index first, Visit visit) {
  const Index outputs = synapses_.all.outputs;
  const auto visitPart = [&](T* numbers, Index step, Index steps) {
    if (steps == 0) return;
    visit(Rows<T>{numbers + sample * outputs + first, synapses_.batch * outputs}, steps,
          Rows<float>{rows_.data() + step * kTargets, kTargets});
  };
  visitPart(all.currents, 0, synapses_.steps);
  visitPart(all.left, synapses_.steps, synapses_.longest);
}

void SampleColumns::read(const Arriving<const float>& from, Index group, Index first, Index count) {
  const Index lanes = kernels().lanes;
  for (Index sample = 0; sample < groups_.samples(group); ++sample) {
    eachPart(from, groups_.first(group) + sample, first, [&](Rows<const float> all, Index steps, Rows<float> own) {
      for (Index k = 0; k < count; k += lanes) {
        kernels().readVectors({all.data + k, all.stride}, steps, std::min(lanes, count - k),
                              {own.data + k, own.stride});
      }
    });
    kernels().transpose({rows_.data(), kTargets}, groups_.length(), count,
                        {columns_.data() + sample * groups_.length(), stride_});
  }
}

void SampleColumns::write(const Arriving<float>& to, Index group, Index first, Index count) {
  for (Index sample = 0; sample < groups_.samples(group); ++sample) {
    kernels().transpose({columns_.data() + sample * groups_.length(), stride_}, count, groups_.length() - 1,
                        {rows_.data(), kTargets});
    eachPart(to, groups_.first(group) + sample, first, [&](Rows<float> all, Index steps, Rows<float> own) {
      kernels().streamRows({own.data, own.stride}, steps, count, nullptr, all);
    });
  }
}

}  // namespace snnjax
