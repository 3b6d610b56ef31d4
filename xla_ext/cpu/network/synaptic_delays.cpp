#include "synaptic_delays.hpp"

#include <algorithm>
#include <utility>

#include "cpu/delays/delayed_pairs.hpp"
#include "cpu/products/products.hpp"

namespace snnjax {
namespace {

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

// The rows of a source until the end of each sample.
class UntilEnd : public RowSource {
 public:
  UntilEnd(const RowSource& source, const Extent& extent) : source_(source), extent_(extent) {}
  std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const override {
    *all_ones = true;
    return isInside(row) ? source_.list(row, ids, values, all_ones) : 0;
  }
  Index longest() const override { return source_.longest(); }
  void expand(Index row, float* dense) const override {
    if (isInside(row)) source_.expand(row, dense);
  }

 private:
  bool isInside(Index row) const { return row / extent_.batch < extent_.ends[row % extent_.batch]; }

  const RowSource& source_;
  const Extent& extent_;
};

// So many targets that some steps of each, which their senders collect from, stay in a first-level cache of 48 KiB, but
// enough to make up for a sender's turn; these stay in a second-level cache of 1 MiB.
Index targetsOfBlock(const SynapticDelays& of, Index steps) {
  constexpr Index kSynapses = 32, kFast = Index{12} << 10, kNumbers = Index{1} << 17;
  const Index numbers = (steps + 1) * longestCollected(kernels().lanes);
  const Index enough = kSynapses * of.neurons() * of.neurons() / std::max<Index>(of.count(), 1);
  return std::max(kFast / numbers, std::min(enough, std::max(kNumbers / numbers, kSynapses)));
}

}  // namespace

SynapticDelays::SynapticDelays(const std::optional<Synapses>& given, Index neurons, const Numbers& weights,
                               const float* delays, Index longest)
    : ends_(given ? 0 : neurons), targets_(given ? 0 : neurons * neurons), delays_(delays), longest_(longest) {
  if (given) {
    all_ = *given;
  } else {
    require32Bits(2 * neurons * neurons);
    for (Index i = 0; i < neurons; ++i) {
      ends_[i] = static_cast<std::int32_t>((i + 1) * neurons);
      for (Index j = 0; j < neurons; ++j) targets_[i * neurons + j] = static_cast<std::int32_t>(j);
    }
    all_ = {ends_.data(), targets_.data(), false, neurons, neurons * neurons, neurons};
  }
  require32Bits(2 * neurons * (taps() + 1));  // places in lines of all neurons
  weights_ = Borrowed<float>(all_.count);
  weights.read(0, all_.count, weights_.data());
}

template <typename Visit>
void SynapticDelays::each(Visit visit) const {
  constexpr Index kAtOnce = 256;
  float whole[kAtOnce], now[kAtOnce], next[kAtOnce];
  Index first = 0;
  for (Index neuron = 0; neuron < all_.neurons; ++neuron) {
    for (const Index end = all_.end(neuron); first < end;) {  // none belongs to two neurons, whatever the ends are
      const Index count = std::min(end - first, kAtOnce);
      kernels().splitShares(weights_.data() + first, delays_ + first, count, longest_ + 1, whole, now, next);
      for (Index k = 0; k < count; ++k) {
        const Index target = all_.target(first + k);
        if (target < all_.outputs) visit(neuron, target, static_cast<Index>(whole[k]), now[k], next[k]);
      }
      first += count;
    }
  }
}

SynapticShares::SynapticShares(const SynapticDelays& of)
    : of_(of), ends_(size(of.neurons())), places_(of.count()), shares_(of.count()) {
  Index kept = 0, last = 0;
  of.each([&](Index neuron, Index target, Index whole, float now, float next) {
    for (; last < neuron; ++last) ends_[size(last)] = kept;
    places_[kept] = static_cast<std::uint32_t>(whole * of.neurons() + target);
    shares_[kept++] = StepPair{now, next};
  });
  for (; last < of.neurons(); ++last) ends_[size(last)] = kept;
}

void SynapticShares::add(Index neuron, float value, StepPair* rows) const {
  const std::uint32_t* const places = places_.data();
  const StepPair* const shares = shares_.data();
  const Index first = neuron == 0 ? 0 : ends_[size(neuron - 1)], end = ends_[size(neuron)];
  if (value == 1.0F) {
    for (Index s = first; s < end; ++s) rows[places[s]] += shares[s];
  } else {
    for (Index s = first; s < end; ++s) rows[places[s]] += value * shares[s];
  }
}

ArrivingPairs::ArrivingPairs(const SynapticShares& shares, Index samples)
    : shares_(shares),
      neurons_(shares.of().neurons()),
      reach_(shares.of().taps()),
      size_(2 * (reach_ + 1) * neurons_),
      samples_(samples),
      pairs_(samples * size_) {}

void ArrivingPairs::begin(const UnderWay& arriving, Index batch, Index first, Index samples) {
  samples_ = samples, first_ = first, now_ = 1;  // behind a row of the step before
  std::fill_n(pairs_.data(), samples * size_, StepPair{});
  std::vector<float> numbers(size(neurons_));
  for (Index step = 0; step < arriving.count(); ++step) {
    for (Index r = 0; r < samples; ++r) {
      arriving.read(step, batch * neurons_, (first + r) * neurons_, neurons_, numbers.data());
      for (Index i = 0; i < neurons_; ++i) row(r, step)[i] = StepPair{numbers[size(i)], 0.0F};
    }
  }
}

void ArrivingPairs::advance() {
  ++now_;
  if (now_ + reach_ < 2 * (reach_ + 1)) return;
  for (Index r = 0; r < samples_; ++r) {  // the row of the step before, and those with what is under way
    StepPair* const first = row(r, -now_);
    std::copy_n(row(r, -1), reach_ * neurons_, first);
    std::fill_n(first + reach_ * neurons_, (reach_ + 2) * neurons_, StepPair{});
  }
  now_ = 1;
}

void ArrivingPairs::send(Index sample, const SpikeRow& spikes) {
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    shares_.add(spikes.ids[k], spikes.values == nullptr ? 1.0F : spikes.values[k], row(sample, 0));
  }
}

void ArrivingPairs::addTo(Index sample, float* current) const { addArriving(sample, 0, current); }

void ArrivingPairs::addArriving(Index sample, Index later, float* to) const {
  const StepPair *const before = row(sample, later - 1), *const now = row(sample, later);
  for (Index i = 0; i < neurons_; ++i) to[i] += before[i][1] + now[i][0];
}

void ArrivingPairs::write(Index sample, Index batch, const WritableNumbers& to) const {
  std::vector<float> numbers(size(neurons_));
  for (Index step = 0; step < shares_.of().longest(); ++step) {
    std::fill(numbers.begin(), numbers.end(), 0.0F);
    addArriving(sample, step, numbers.data());
    to.write((step * batch + first_ + sample) * neurons_, neurons_, numbers.data());
  }
}

CollectingShares::CollectingShares(const SynapticDelays& of, Index slots) {
  const Index neurons = of.neurons();
  std::array<Index, kLevels + 1> firsts{};  // blocks of each level
  std::vector<std::uint32_t> block_of(size(kLevels * neurons));
  for (Index level = 0; level < kLevels; ++level) {
    const Index targets = targetsOfBlock(of, level + 1 < kLevels ? steps(level) : of.taps());
    for (Index target = 0; target < neurons; ++target) {
      block_of[size(level * neurons + target)] = static_cast<std::uint32_t>(firsts[size(level)] + target / targets);
    }
    firsts[size(level + 1)] = firsts[size(level)] + (neurons + targets - 1) / targets;
  }
  std::vector<Block> blocks(size(firsts.back()));
  const auto each = [&](auto visit) {
    for (Block& block : blocks) block.last = -1;
    of.each([&](Index neuron, Index target, Index whole, float now, float next) {
      const Index level = whole == 0 ? 0 : whole < 3 ? 1 : 2;
      Block& block = blocks[block_of[size(level * neurons + target)]];
      if (block.last != neuron) ++block.runs;
      block.last = neuron;
      visit(block, neuron, level, target * slots + whole + 1 - steps(level), now, next);
      ++block.synapses;
    });
  };
  each([](const Block&, Index, Index, Index, float, float) {});
  reserve(blocks, firsts);
  each([&](const Block& block, Index neuron, Index level, Index row, float now, float next) {
    const Index in_level = block.synapses - starts_[size(level)].synapses;
    runs_[block.runs - 1] = {static_cast<std::uint32_t>(neuron), static_cast<std::uint32_t>(in_level + 1)};
    const Index to = block.synapses;
    rows_[to] = static_cast<std::uint32_t>(row), now_[to] = now, next_[to] = next;
  });
}

// Turns counts of each block into those of all before it.
void CollectingShares::reserve(std::vector<Block>& blocks, const std::array<Index, kLevels + 1>& firsts) {
  Block before;
  for (Block& block : blocks) {
    before.synapses += std::exchange(block.synapses, before.synapses);
    before.runs += std::exchange(block.runs, before.runs);
  }
  for (std::size_t level = 0; level <= size(kLevels); ++level) {
    starts_[level] = firsts[level] < firsts.back() ? blocks[size(firsts[level])] : before;
  }
  runs_ = Borrowed<SenderRun>(before.runs), rows_ = Borrowed<std::uint32_t>(before.synapses);
  now_ = Borrowed<float>(before.synapses), next_ = Borrowed<float>(before.synapses);
}

SenderShares CollectingShares::of(Index level) const {
  const Block &first = starts_[size(level)], &end = starts_[size(level + 1)];
  return {runs_.data() + first.runs, end.runs - first.runs, rows_.data() + first.synapses, now_.data() + first.synapses,
          next_.data() + first.synapses};
}

SynapticCotangents::SynapticCotangents(const SynapticDelays& of, const Extent& extent, const UnderWay& left,
                                       const float* gain)
    : of_(of),
      extent_(extent),
      left_(left),
      gain_(gain),
      shares_(of, slots()),
      rows_((extent.steps + of.longest()) * extent.batch * of.neurons() + kernels().lanes) {}

Rows<const float> SynapticCotangents::take(Index step, Index first, Index samples, Rows<const float> g_v) {
  const Index neurons = of_.neurons();
  const Rows<float> rows{rows_.data() + (step * extent_.batch + first) * neurons, neurons};
  for (Index r = 0; r < samples; ++r) {
    const Index sample = first + r, behind = step - extent_.ends[sample];
    float* const own = rows.row(r);
    if (behind < 0) {
      const float* const g = g_v.row(r);
      for (Index i = 0; i < neurons; ++i) own[i] = gain_[i] * g[i];
    } else if (behind < left_.count()) {
      left_.read(behind, extent_.batch * neurons, sample * neurons, neurons, own);
    } else {
      std::fill_n(own, neurons, 0.0F);
    }
  }
  return {rows.data, rows.stride};
}

void SynapticCotangents::writeFirst(Index rows, const WritableNumbers& to) const {
  if (rows > 0) to.write(0, rows * extent_.batch * of_.neurons(), rows_.data());
}

void SynapticCotangents::correlate(const RowSource& sent, const WritableNumbers& g_weights,
                                   const WritableNumbers& g_delays, const Threads& threads) const {
  // Steps that all delays have are those between a spike and where its cotangents begin: the fewer are left, the
  // faster.
  DelayedSynapses synapses = of_.over(extent_.steps, extent_.batch);
  Index least = of_.longest();
  of_.each([&](Index, Index, Index whole, float, float) { least = std::min(least, whole); });
  std::vector<float> delays(size(of_.count()));
  for (Index s = 0; s < of_.count(); ++s) {
    const Share share = synapses.share(s);
    delays[size(s)] = static_cast<float>(share.whole - least) + share.next;
  }
  synapses.delays = delays.data();
  synapses.longest -= least;
  const float* const first = rows_.data() + least * extent_.batch * of_.neurons();
  const Arriving<const float> g{first, first + extent_.rows() * of_.neurons()};
  const ListedRows listed(UntilEnd(sent, extent_), extent_.rows(), of_.neurons(), threads);
  const bool is_in_place = g_weights && !g_weights.is_bfloat16;
  Borrowed<float> weights(is_in_place ? 0 : of_.count());
  float* const to = is_in_place ? g_weights.float32() : weights.data();
  const auto correlate = arePairsOfShortDelays(synapses) ? correlatePairs : correlateDelayed;
  correlate(listed, synapses, g, to, g_delays ? g_delays.float32() : nullptr, threads);
  if (g_weights.is_bfloat16) g_weights.write(0, of_.count(), to);
}

SynapticCollector::SynapticCollector(SynapticCotangents& of, Index samples, Index width)
    : of_(of),
      width_(width),
      slots_(of.slots()),
      lines_(width * slots_ * roundUp(samples, kernels().lanes)),
      sums_(width * CollectingShares::kMostSteps * roundUp(samples, kernels().lanes)) {}

void SynapticCollector::begin(Index first, Index samples) {
  first_ = first, samples_ = samples, lanes_ = roundUp(samples, kernels().lanes), ahead_ = 0;
  const Index longest = of_.of_.longest();
  now_ = slots_ - of_.of_.taps() + longest;
  std::fill_n(lines_.data(), width_ * slots_ * lanes_, 0.0F);
  for (Index step = of_.extent_.steps + longest; step-- > of_.extent_.steps;) put(step, {nullptr, 0});
}

void SynapticCollector::put(Index step, Rows<const float> g_v) {
  if (now_ == 0) {  // what is under way, but for the last step of it
    now_ = slots_ - of_.of_.taps();
    for (Index i = 0; i < width_; ++i) {
      float* const line = lines_.data() + i * slots_ * lanes_;
      std::copy_n(line, of_.of_.taps() * lanes_, line + now_ * lanes_);
    }
  }
  --now_;
  kernels().transpose(of_.take(step, first_, samples_, g_v), samples_, of_.of_.neurons(),
                      {lines_.data() + now_ * lanes_, slots_ * lanes_});
}

void SynapticCollector::collect(Index step, Rows<const float> g_v, Rows<float> out) {
  put(step, g_v);
  constexpr Index kMostSteps = CollectingShares::kMostSteps;
  const Index stride = kMostSteps * lanes_;
  if (ahead_ == 0) std::fill_n(sums_.data(), width_ * stride, 0.0F), ahead_ = kMostSteps;
  for (Index level = 0; level < CollectingShares::kLevels; ++level) {
    const Index steps = CollectingShares::steps(level);
    if (ahead_ % steps != 0) continue;
    kernels().collectSteps(of_.shares_.of(level), steps, lines_.data() + now_ * lanes_, lanes_ / kernels().lanes,
                           {sums_.data() + (ahead_ - steps) * lanes_, stride});
  }
  --ahead_;
  kernels().transpose({sums_.data() + ahead_ * lanes_, stride}, width_, samples_, out);
}

}  // namespace snnjax
