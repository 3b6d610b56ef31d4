#include "sample_columns.hpp"

namespace snnjax {
namespace {

constexpr Index kColumnBytes = 16 << 10;  // of a group: two stay in a first-level cache

}  // namespace

// Behind the steps in which anything arrives lies a 0.
SampleGroups SampleColumns::groupsOf(const ListedRows& sent, const DelayedSynapses& synapses, const Threads& threads,
                                     Borrowed<std::uint32_t>* positions) {
  SampleGroups groups(sent, synapses, synapses.steps + synapses.longest + 1, kColumnBytes / Index{sizeof(float)},
                      threads, positions);
  require32Bits(kTargets * (groups.places() + kTargets));
  return groups;
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
