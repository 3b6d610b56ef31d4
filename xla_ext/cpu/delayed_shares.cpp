#include "delayed_shares.hpp"

#include <algorithm>
#include <tuple>

namespace snnjax {

std::vector<Index> startsOf(const Synapses& synapses) {
  std::vector<Index> starts{0};
  for (Index i = 0; i < synapses.neurons; ++i) starts.push_back(std::max(starts.back(), synapses.end(i)));
  return starts;
}

SharesOfNeurons::SharesOfNeurons(const DelayedSynapses& synapses, Index count, Index rows, Index targets_of_block)
    : synapses_(synapses),
      targets_(static_cast<std::uint32_t>(synapses.all.outputs)),
      steps_(static_cast<std::uint32_t>(rows)),
      blocks_(std::max<Index>((synapses.all.outputs + targets_of_block - 1) / targets_of_block, 1)),
      rows_of_block_(targets_of_block * rows),
      rows_(count),
      whole_(count),
      now_(count),
      next_(count),
      ends_{0} {}

void SharesOfNeurons::add(Index first, Index end) {
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

template <typename Target>
bool SharesOfNeurons::place(Index first, Index count, Index start) {
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

Index SharesOfNeurons::sort(Index first, Index count, Index start) {
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

}  // namespace snnjax
