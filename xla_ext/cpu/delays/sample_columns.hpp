// What targets receive over time, by columns: one for each target, in which the steps of a sample lie side by side, and
// samples one after another. Both steps between which a spike is split are neighbours there, and a column of a group of
// samples is so short that it stays in the first-level cache.
#pragma once

#include "sample_groups.hpp"

namespace snnjax {

// The columns of a few targets, of one group of samples at a time.
class SampleColumns {
 public:
  static constexpr Index kTargets = 16;  // whole cache lines of rows

  static SampleGroups groupsOf(const ListedRows& sent, const DelayedSynapses& synapses, const Threads& threads,
                               Borrowed<std::uint32_t>* positions = nullptr);

  SampleColumns(const DelayedSynapses& synapses, const SampleGroups& groups);

  float* data() { return columns_.data(); }
  const float* data() const { return columns_.data(); }
  Index stride() const { return stride_; }  // from one target to the next

  void fill(const Start& start, Index group, Index first, Index count);
  void read(const Arriving<const float>& from, Index group, Index first, Index count);
  void write(const Arriving<float>& to, Index group, Index first, Index count);

 private:
  // Calls visit(rows, steps, own) for what arrives within the steps and behind them; `own` are rows of this object.
  template <typename T, typename Visit>
  void eachPart(const Arriving<T>& all, Index sample, Index first, Visit visit);

  const DelayedSynapses& synapses_;
  const SampleGroups& groups_;
  Index stride_;
  Borrowed<float> columns_, rows_;  // rows of a sample
};

}  // namespace snnjax
