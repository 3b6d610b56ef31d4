#include "delays.hpp"

#include <algorithm>
#include <cmath>

namespace snnjax {
namespace {

// From ids of shares to the inputs that send them.
std::uint32_t inputOf(std::uint32_t id, std::uint32_t inputs) { return id < inputs ? id : id - inputs; }

// Asks for numbers that are read soon: the hardware foresees no row of another page.
void fetch(const float* numbers, Index count) {
  constexpr Index kFloatsPerLine = static_cast<Index>(kCacheLine / sizeof(float));
  for (Index i = 0; i < count; i += kFloatsPerLine) __builtin_prefetch(numbers + i);
}

}  // namespace

Delays::Delays(Index rows, const float* delays, Index inputs)
    : rows_(rows), whole_(static_cast<std::size_t>(inputs)), shares_(2 * whole_.size()) {
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    const float delay = delays[i] > 0.0F ? std::min(delays[i], static_cast<float>(rows - 1)) : 0.0F;  // 0 also for NaN
    const float whole = std::floor(delay);
    whole_[i] = static_cast<std::int32_t>(whole);
    shares_[i] = 1.0F - (delay - whole);
    shares_[whole_.size() + i] = delay - whole;
  }
}

Arrivals::Arrivals(const SpikeRows& sent, const UnderWay& pending, const Extent& extent, const Delays& delays, bool all,
                   const Threads& threads)
    : sent_(sent),
      pending_(pending),
      extent_(extent),
      delays_(delays),
      samples_(static_cast<std::size_t>(extent.batch)) {
  threads.run(extent.batch, [&](Index sample, Index) { sort(sample, all); });
  for (const Sample& sample : samples_) {
    for (std::size_t step = 1; step < sample.starts.size(); ++step) {
      longest_ = std::max<Index>(longest_, sample.starts[step] - sample.starts[step - 1]);
    }
  }
}

SpikeRow Arrivals::row(Index row) const {
  const Sample& sample = samples_[static_cast<std::size_t>(row % extent_.batch)];
  const auto step = static_cast<std::size_t>(row / extent_.batch);
  const std::uint32_t start = sample.starts[step];
  return {sample.ids.data() + start, sample.values ? sample.values.data() + start : nullptr,
          sample.starts[step + 1] - start, false};
}

template <typename Visit>
void Arrivals::eachSent(Index sample, Visit visit) const {
  const Index inputs = delays_.inputs();
  const auto visitRow = [&](Index step, const SpikeRow& row) {
    for (std::uint32_t k = 0; k < row.count; ++k) {
      visit(step, row.ids[k], row.values == nullptr ? 1.0F : row.values[k]);
    }
  };
  std::vector<float> dense(static_cast<std::size_t>(pending_.rows > 0 ? inputs : 0)), values(dense.size() + kListSlack);
  std::vector<std::uint32_t> ids(values.size());
  for (Index row = 0; row < pending_.rows; ++row) {
    pending_.numbers.read((row * extent_.batch + sample) * inputs, inputs, dense.data());
    bool all_ones = false;
    const std::uint32_t count = kernels().listNonZero(dense.data(), inputs, ids.data(), values.data(), &all_ones);
    visitRow(row - pending_.rows, {ids.data(), all_ones ? nullptr : values.data(), count, false});
  }
  for (Index step = 0; step < extent_.ends[sample]; ++step) {
    const Index row = step * extent_.batch + sample;
    const SpikeRow& listed = *sent_.row(row);
    visitRow(step, listed.is_dense ? ListedRow(sent_, row).row() : listed);
  }
}

// A counting sort by the step of arrival.
void Arrivals::sort(Index sample, bool all) {
  Sample& own = samples_[static_cast<std::size_t>(sample)];
  const Index end = extent_.ends[sample];
  const auto inputs = static_cast<std::uint32_t>(delays_.inputs());
  own.starts.resize(static_cast<std::size_t>(extent_.steps) + 1);
  const auto eachShare = [&](auto visit) {
    eachSent(sample, [&](Index step, std::uint32_t input, float value) {
      const Index arrival = step + delays_.whole(input);
      const std::uint32_t later = inputs + input;
      if (arrival >= 0 && arrival < end) visit(arrival, input, value);
      if (arrival >= -1 && arrival + 1 < end && (all || delays_.share(later) != 0.0F)) visit(arrival + 1, later, value);
    });
  };
  bool all_ones = true;
  eachShare([&](Index step, std::uint32_t, float value) {
    ++own.starts[static_cast<std::size_t>(step) + 1];
    all_ones = all_ones && value == 1.0F;
  });
  for (std::size_t step = 1; step < own.starts.size(); ++step) own.starts[step] += own.starts[step - 1];
  own.ids = Borrowed<std::uint32_t>(own.starts.back());
  if (!all_ones) own.values = Borrowed<float>(own.starts.back());
  std::vector<std::uint32_t> next = own.starts;
  eachShare([&](Index step, std::uint32_t id, float value) {
    const std::uint32_t place = next[static_cast<std::size_t>(step)]++;
    own.ids[place] = id;
    if (!all_ones) own.values[place] = value;
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
                   const WritableNumbers& to, const Threads& threads) {
  const Index inputs = delays.inputs(), rows = delays.rows();
  threads.run(extent.batch, [&](Index sample, Index) {
    std::vector<float> dense(static_cast<std::size_t>(inputs));
    for (Index row = 0; row < rows; ++row) {
      const Index step = extent.ends[sample] - rows + row;
      if (step >= 0) {
        sent.expand(step * extent.batch + sample, 1, dense.data());
      } else if (pending.rows > 0) {
        pending.numbers.read(((rows + step) * extent.batch + sample) * inputs, inputs, dense.data());
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
  for (Index i = 0; i < delays.inputs(); ++i) distance_.push_back(delays.whole(i) * step_);
}

void DelayedCotangents::addTo(Index step, Index sample, Index first, Index count, float* to) const {
  if (step >= extent_.ends[sample]) return;
  if (left_.rows > 0) addLeft(step, sample, first, count, to);
  if (step < 0) return addPending(step, sample, first, count, to);
  const float* const from = arrived_.row(step * extent_.batch + sample) + first;
  if (step > 0) fetch(from - step_, count);
  const Index* const distance = distance_.data() + first;
  const float *const now = delays_.now() + first, *const next = delays_.next() + first;
  for (Index i = 0; i < count; ++i) {
    const float* const soon = from + i + distance[i];
    const float later = next[i] * soon[step_];
    to[i] += now[i] * *soon + (next[i] == 0.0F ? 0.0F : later);
  }
}

// The same of what was sent before the first step, and may have arrived before it.
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
  const Index row = step - (extent_.ends[sample] - left_.rows);
  if (row < 0) return;
  std::vector<float> g(static_cast<std::size_t>(count));
  left_.numbers.read((row * extent_.batch + sample) * delays_.inputs() + first, count, g.data());
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
