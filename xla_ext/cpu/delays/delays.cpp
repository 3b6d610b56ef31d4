#include "delays.hpp"

#include <algorithm>

namespace snnjax {
namespace {

// From ids of shares to the inputs that send them.
std::uint32_t inputOf(std::uint32_t id, std::uint32_t inputs) { return id < inputs ? id : id - inputs; }

std::size_t index(Index count) { return static_cast<std::size_t>(count); }

// Asks for numbers that are read soon: the hardware foresees no row of another page.
void fetch(const float* numbers, Index count) {
  constexpr Index kFloatsPerLine = static_cast<Index>(kCacheLine / sizeof(float));
  for (Index i = 0; i < count; i += kFloatsPerLine) prefetch(numbers + i);
}

// Samples that are sorted together: their rows are adjacent.
constexpr Index kBlock = 8;

}  // namespace

Delays::Delays(Index rows, const float* delays, Index inputs, Index more)
    : rows_(rows + more), whole_(static_cast<std::size_t>(inputs)), shares_(2 * whole_.size()) {
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    const SplitDelay delay = splitDelay(delays[i], rows - 1);
    whole_[i] = static_cast<std::int32_t>(delay.whole + more);
    shares_[i] = 1.0F - delay.later;
    shares_[whole_.size() + i] = delay.later;
    are_split_ = are_split_ || delay.later != 0.0F;
  }
}

Arrivals::Arrivals(const SpikeRows& sent, const UnderWay& pending, const Extent& extent, const Delays& delays, bool all,
                   const Threads& threads)
    : sent_(sent),
      pending_(pending),
      extent_(extent),
      delays_(delays),
      has_later_(all || delays.areSplit()),
      samples_(static_cast<std::size_t>(extent.batch)) {
  threads.run((extent.batch + kBlock - 1) / kBlock, [&](Index block, Index) {
    const Index first = block * kBlock;
    sort(first, std::min(first + kBlock, extent.batch));
  });
  for (Index r = 0; r < extent.rows(); ++r) longest_ = std::max<Index>(longest_, row(r).count);
}

SpikeRow Arrivals::row(Index row) const {
  const Index sample = row % extent_.batch, step = row / extent_.batch;
  const Sample& own = samples_[index(sample)];
  if (step >= extent_.ends[sample]) return {own.ids.data(), nullptr, 0, false};
  const std::uint32_t* const start = own.starts.data() + delays_.rows() + step;
  return {own.ids.data() + start[0], own.values ? own.values.data() + start[0] : nullptr, start[1] - start[0], false};
}

// Calls visit(step, sample, row) for all that was sent to some samples, in the order of the steps.
template <typename Visit>
void Arrivals::eachSent(Index first, Index end, Visit visit) const {
  const Index inputs = delays_.inputs(), batch = extent_.batch, pending = pending_.count();
  std::vector<float> dense(static_cast<std::size_t>(pending > 0 ? inputs : 0)), values(dense.size() + kListSlack);
  std::vector<std::uint32_t> ids(values.size());
  for (Index row = 0; row < pending; ++row) {
    for (Index sample = first; sample < end; ++sample) {
      pending_.read(row, batch * inputs, sample * inputs, inputs, dense.data());
      bool all_ones = false;
      const std::uint32_t count = kernels().listNonZero(dense.data(), inputs, ids.data(), values.data(), &all_ones);
      visit(row - pending, sample, {ids.data(), all_ones ? nullptr : values.data(), count, false});
    }
  }
  for (Index step = 0; step < extent_.steps; ++step) {
    for (Index sample = first; sample < end; ++sample) {
      if (step >= extent_.ends[sample]) continue;
      const Index row = step * batch + sample;
      const SpikeRow& listed = *sent_.row(row);
      visit(step, sample, listed.is_dense ? ListedRow(sent_, row).row() : listed);
    }
  }
}

// A counting sort by the step of arrival, which may lie before the first step or behind the last.
void Arrivals::sort(Index first, Index end) {
  const Index before = delays_.rows(), longest = before + extent_.steps + before;
  bool all_ones = true;
  for (Index sample = first; sample < end; ++sample) samples_[index(sample)].starts.resize(index(longest) + 1);
  eachSent(first, end, [&](Index step, Index sample, const SpikeRow& row) {
    std::uint32_t* const counts = samples_[index(sample)].starts.data() + before + step + 1;
    for (std::uint32_t k = 0; k < row.count; ++k) ++counts[delays_.whole(row.ids[k])];
    all_ones = all_ones && (row.values == nullptr || row.count == 0);
  });
  std::vector<std::vector<std::uint32_t>> places;
  for (Index sample = first; sample < end; ++sample) {
    Sample& own = samples_[index(sample)];
    std::uint32_t earlier = 0;  // shares of the step before arrive once more
    Index all = 0;
    for (std::size_t step = 1; step < own.starts.size(); ++step) {
      const std::uint32_t count = own.starts[step];
      all += Index{count} + earlier;
      require32Bits(all);
      own.starts[step] = static_cast<std::uint32_t>(all);
      earlier = has_later_ ? count : 0;
    }
    own.ids = Borrowed<std::uint32_t>(own.starts.back());
    if (!all_ones) own.values = Borrowed<float>(own.starts.back());
    places.push_back(own.starts);
  }
  const auto inputs = static_cast<std::uint32_t>(delays_.inputs());
  eachSent(first, end, [&](Index step, Index sample, const SpikeRow& row) {
    Sample& own = samples_[index(sample)];
    std::uint32_t* const next = places[index(sample - first)].data() + before + step;
    std::uint32_t* const ids = own.ids.data();
    for (std::uint32_t k = 0; k < row.count; ++k) {
      const std::uint32_t id = row.ids[k];
      std::uint32_t* const arrival = next + delays_.whole(id);
      const float value = row.values == nullptr ? 1.0F : row.values[k];
      ids[arrival[0]] = id;
      if (!all_ones) own.values[arrival[0]] = value;
      ++arrival[0];
      if (!has_later_) continue;
      ids[arrival[1]] = inputs + id;
      if (!all_ones) own.values[arrival[1]] = value;
      ++arrival[1];
    }
  });
}

std::uint32_t ArrivingSource::list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const {
  const SpikeRow from = arrivals_.row(row);
  const Delays& delays = arrivals_.delays();
  const auto inputs = static_cast<std::uint32_t>(delays.inputs());
  std::uint32_t count = 0;
  *all_ones = true;
  for (std::uint32_t k = 0; k < from.count; ++k) {
    const float share = delays.share(from.ids[k]), value = from.values == nullptr ? share : share * from.values[k];
    ids[count] = inputOf(from.ids[k], inputs);
    values[count] = value;
    count += share != 0.0F && value != 0.0F ? 1 : 0;
    *all_ones = *all_ones && (share == 0.0F || value == 1.0F);
  }
  return count;
}

void ArrivingSource::expand(Index row, float* dense) const {
  const SpikeRow from = arrivals_.row(row);
  const Delays& delays = arrivals_.delays();
  const auto inputs = static_cast<std::uint32_t>(delays.inputs());
  for (std::uint32_t k = 0; k < from.count; ++k) {
    const float share = delays.share(from.ids[k]);
    if (share != 0.0F) dense[inputOf(from.ids[k], inputs)] += from.values == nullptr ? share : share * from.values[k];
  }
}

std::uint32_t SplitSource::list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const {
  const SpikeRow from = arrivals_.row(row);
  std::copy_n(from.ids, from.count, ids);
  *all_ones = from.values == nullptr;
  if (!*all_ones) std::copy_n(from.values, from.count, values);
  return from.count;
}

void SplitSource::expand(Index row, float* dense) const {
  const SpikeRow from = arrivals_.row(row);
  for (std::uint32_t k = 0; k < from.count; ++k) dense[from.ids[k]] += from.values == nullptr ? 1.0F : from.values[k];
}

void writeUnderWay(const SpikeRows& sent, const UnderWay& pending, const Extent& extent, const Delays& delays,
                   Index rows, const WritableNumbers& to, const Threads& threads) {
  const Index inputs = delays.inputs(), size = extent.batch * inputs;
  threads.run(extent.batch, [&](Index sample, Index) {
    std::vector<float> dense(static_cast<std::size_t>(inputs));
    for (Index row = 0; row < rows; ++row) {
      const Index step = extent.ends[sample] - delays.rows() + row;
      if (step >= 0) {
        sent.expand(step * extent.batch + sample, 1, dense.data());
      } else if (pending.count() + step >= 0) {
        pending.read(pending.count() + step, size, sample * inputs, inputs, dense.data());
      } else {
        std::fill(dense.begin(), dense.end(), 0.0F);
      }
      to.write((row * extent.batch + sample) * inputs, inputs, dense.data());
    }
  });
}

DelayedCotangents::DelayedCotangents(const Delays& delays, const Extent& extent, Rows<const float> arrived,
                                     const UnderWay& left)
    : delays_(delays), extent_(extent), arrived_(arrived), left_(left), step_(extent.batch * arrived.stride) {
  for (Index i = 0; i < delays.inputs(); ++i) places_.push_back(delays.whole(i) * step_ + i);
}

void DelayedCotangents::addTo(Index step, Index sample, Index first, Index count, float* to) const {
  if (step >= extent_.ends[sample]) return;
  if (left_.count() > 0) addLeft(step, sample, first, count, to);
  if (step < 0) return addPending(step, sample, first, count, to);
  const float* const from = arrived_.row(step * extent_.batch + sample);
  if (step > 0) fetch(from - step_ + first, count);
  const Index* const places = places_.data() + first;
  const float *const now = delays_.now() + first, *const next = delays_.next() + first;
  for (Index i = 0; i < count; ++i) {
    const float* const soon = from + places[i];
    const float later = next[i] * soon[step_];
    to[i] += now[i] * *soon + (next[i] == 0.0F ? 0.0F : later);
  }
}

// The same for what was sent before the first step, and may have arrived before it.
void DelayedCotangents::addPending(Index step, Index sample, Index first, Index count, float* to) const {
  const auto arrivedAt = [&](Index arrival, Index input) {
    return arrival < 0 ? 0.0F : arrived_.row(arrival * extent_.batch + sample)[input];
  };
  for (Index i = 0; i < count; ++i) {
    const Index input = first + i, arrival = step + delays_.whole(input);
    to[i] += delays_.now()[input] * arrivedAt(arrival, input);
    const float share = delays_.next()[input];
    if (share != 0.0F) to[i] += share * arrivedAt(arrival + 1, input);
  }
}

// What comes back through what is still under way at the end.
void DelayedCotangents::addLeft(Index step, Index sample, Index first, Index count, float* to) const {
  const Index row = step - (extent_.ends[sample] - left_.count());
  if (row < 0) return;
  std::vector<float> g(static_cast<std::size_t>(count));
  left_.read(row, extent_.batch * delays_.inputs(), sample * delays_.inputs() + first, count, g.data());
  for (Index i = 0; i < count; ++i) to[i] += g[static_cast<std::size_t>(i)];
}

void DelayedCotangents::sumDelays(const Arrivals& arrivals, const WritableNumbers& to, const Threads& threads) const {
  const Index inputs = delays_.inputs();
  Buffer<double> sums(extent_.batch * inputs);  // of each sample, added up in their order
  threads.run(extent_.batch, [&](Index sample, Index) {
    double* const own = sums.data() + sample * inputs;
    for (Index step = 0; step < extent_.ends[sample]; ++step) {
      const SpikeRow row = arrivals.row(step * extent_.batch + sample);
      const float* const g = arrived_.row(step * extent_.batch + sample);
      for (std::uint32_t k = 0; k < row.count; ++k) {
        const std::uint32_t input = inputOf(row.ids[k], static_cast<std::uint32_t>(inputs));
        const float change = (row.values == nullptr ? 1.0F : row.values[k]) * g[input];
        own[input] += double{row.ids[k] == input ? -change : change};
      }
    }
  });
  for (Index i = 0; i < inputs; ++i) {
    double sum = 0.0;
    for (Index sample = 0; sample < extent_.batch; ++sample) sum += sums[sample * inputs + i];
    const auto rounded = static_cast<float>(sum);
    to.write(i, 1, &rounded);
  }
}

}  // namespace snnjax
