#include "recurrent_delays.hpp"

#include <algorithm>

#include "cpu/products/products.hpp"

namespace snnjax {

DelayLine::DelayLine(const Delays& delays, Index steps, Index samples)
    : SpikeRows(samples, delays.inputs()),
      delays_(delays),
      steps_(steps),
      samples_(samples),
      size_(std::max<Index>(std::min(delays.rows(), steps), 1)),
      lists_(static_cast<std::size_t>(size_ * samples)) {}

void DelayLine::begin(const UnderWay& pending, Index batch, Index first, Index samples) {
  for (List& list : lists_) list.clear();
  std::vector<float> dense(static_cast<std::size_t>(width_)), values(dense.size() + kListSlack);
  std::vector<std::uint32_t> ids(values.size());
  for (Index row = 0; row < pending.count(); ++row) {
    for (Index r = 0; r < samples; ++r) {
      pending.read(row, batch * width_, (first + r) * width_, width_, dense.data());
      bool all_ones = false;
      const std::uint32_t count = kernels().listNonZero(dense.data(), width_, ids.data(), values.data(), &all_ones);
      send(row - pending.count(), r, {ids.data(), all_ones ? nullptr : values.data(), count, false});
    }
  }
}

void DelayLine::send(Index step, Index sample, const SpikeRow& row) {
  for (std::uint32_t k = 0; k < row.count; ++k) {
    const std::uint32_t id = row.ids[k];
    const Index arrival = step + delays_.whole(id);
    const float value = row.values == nullptr ? 1.0F : row.values[k], later = delays_.next()[id];
    add(arrival, sample, id, value * delays_.now()[id]);
    if (later != 0.0F) add(arrival + 1, sample, id, value * later);
  }
}

void DelayLine::add(Index step, Index sample, std::uint32_t id, float value) {
  if (step < 0 || step >= steps_) return;
  List& list = at(step, sample);
  list.ids.push_back(id);
  list.values.push_back(value);
}

void DelayLine::arrive(Index step) {
  for (Index r = 0; r < samples_; ++r) {
    if (step > 0) at(step - 1, r).clear();
    const List& list = at(step, r);
    const auto count = static_cast<std::uint32_t>(list.ids.size());
    rows_[r] = {list.ids.data(), list.values.data(), count, Index{count} > longest_listed_};
  }
}

void DelayLine::expand(Index first, Index count, float* dense) const {
  std::fill_n(dense, count * width_, 0.0F);
  for (Index r = 0; r < count; ++r) {
    const SpikeRow& row = rows_[first + r];
    for (std::uint32_t k = 0; k < row.count; ++k) dense[r * width_ + row.ids[k]] += row.values[k];
  }
}

RecurrentCotangents::RecurrentCotangents(const Delays& delays, const UnderWay& left, const Extent& extent,
                                         Index samples, Index width)
    : delays_(delays),
      left_(left),
      extent_(extent),
      width_(width),
      lanes_(roundUp(samples, kernels().lanes)),
      size_(std::max<Index>(std::min(delays.rows() - 1, extent.steps), 1)),
      arrived_((size_ + 1) * width * lanes_),
      sent_(width * lanes_),
      row_(static_cast<std::size_t>(delays.inputs())) {}

void RecurrentCotangents::put(Index step, Rows<const float> arrived, Index samples) {
  kernels().transpose(arrived, samples, width_, {columns(step), lanes_});
}

void RecurrentCotangents::gather(Index step, Index first, Index samples, Rows<float> out) {
  const Index lanes = lanes_;
  for (Index i = 0; i < delays_.inputs(); ++i) {
    const float now = delays_.now()[i], next = delays_.next()[i];
    const Index arrival = step + delays_.whole(i), place = i * lanes;
    const float* const soon = columns(arrival) + place;
    const float* const later = columns(next == 0.0F ? -1 : arrival + 1) + place;
    float* const __restrict to = sent_.data() + place;
    for (Index r = 0; r < lanes; ++r) to[r] = now * soon[r] + next * later[r];
  }
  kernels().transpose({sent_.data(), lanes_}, width_, samples, out);
  for (Index r = 0; r < samples; ++r) addLeft(step, first + r, out.row(r));
}

// What comes back through the state after the last step.
void RecurrentCotangents::addLeft(Index step, Index sample, float* to) {
  const Index row = step - (extent_.ends[sample] - left_.count()), neurons = delays_.inputs();
  if (row < 0 || row >= left_.count()) return;
  left_.read(row, extent_.batch * neurons, sample * neurons, neurons, row_.data());
  for (std::size_t i = 0; i < row_.size(); ++i) to[i] += row_[i];
}

}  // namespace snnjax
