#include "late_synapses.hpp"

#include <algorithm>

#include "delayed_pairs.hpp"

namespace snnjax {
namespace {

// What neurons collect of a block of targets at once stays in a first-level cache.
constexpr Index kWindowFloats = 6 << 10;
constexpr Index kLeastTargets = 4;

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

}  // namespace

LateSynapses::LateSynapses(const std::optional<Synapses>& given, Index neurons, const Numbers& weights,
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
  require32Bits(neurons * slots());
  weights_.resize(static_cast<std::size_t>(all_.count));
  weights.read(0, all_.count, weights_.data());
}

LateShares::LateShares(const LateSynapses& of) : of_(of), places_(of.count()), shares_(of.count()) {
  const DelayedSynapses synapses = of.over(0, 0);
  const std::vector<Index> starts = startsOf(synapses.all);
  const auto slots = static_cast<std::uint32_t>(of.slots());
  Borrowed<float> whole(of.count()), now(of.count()), next(of.count());
  kernels().splitShares(synapses.weights, synapses.delays, of.count(), of.longest() + 1, whole.data(), now.data(),
                        next.data());
  Index kept = 0;
  starts_.push_back(0);
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    for (Index s = starts[i]; s < starts[i + 1]; ++s) {
      const Index target = synapses.all.target(s);
      if (target >= synapses.all.outputs) continue;
      places_[kept] = static_cast<std::uint32_t>(target) * slots + static_cast<std::uint32_t>(whole[s]);
      shares_[kept++] = Pair{now[s], next[s]};
    }
    starts_.push_back(kept);
  }
}

void LateShares::add(Index neuron, float value, float* lines) const {
  // Anywhere in a line, and part of an array of floats.
  using Place = float __attribute__((vector_size(2 * sizeof(float)), aligned(alignof(float)), may_alias));
  const Index end = starts_[static_cast<std::size_t>(neuron + 1)];
  Index s = starts_[static_cast<std::size_t>(neuron)];
  if (value == 1.0F) {
    for (; s < end; ++s) *reinterpret_cast<Place*>(lines + places_[s]) += shares_[s];
  } else {
    for (; s < end; ++s) *reinterpret_cast<Place*>(lines + places_[s]) += value * shares_[s];
  }
}

ArrivingLines::ArrivingLines(const LateShares& shares, Index samples)
    : shares_(shares),
      window_(shares.of().window()),
      slots_(shares.of().slots()),
      size_(shares.of().neurons() * slots_),
      samples_(samples),
      lines_(samples * size_) {}

void ArrivingLines::begin(const UnderWay& arriving, Index batch, Index first, Index samples) {
  samples_ = samples, first_ = first, step_ = 0, now_ = 0;
  std::fill_n(lines_.data(), samples * size_, 0.0F);
  const Index neurons = shares_.of().neurons();
  std::vector<float> row(static_cast<std::size_t>(neurons));
  for (Index step = 0; step < arriving.count(); ++step) {
    for (Index r = 0; r < samples; ++r) {
      arriving.read(step, batch * neurons, (first + r) * neurons, neurons, row.data());
      for (Index i = 0; i < neurons; ++i) lines(r)[i * slots_ + step] = row[static_cast<std::size_t>(i)];
    }
  }
}

void ArrivingLines::reach(Index step) {
  now_ += step - step_;
  step_ = step;
  if (now_ + window_ <= slots_) return;
  const Index live = slots_ - now_;
  for (Index line = 0; line < samples_ * shares_.of().neurons(); ++line) {
    float* const own = lines_.data() + line * slots_;
    std::copy(own + now_, own + slots_, own);
    std::fill(own + live, own + slots_, 0.0F);
  }
  now_ = 0;
}

void ArrivingLines::send(Index sample, const SpikeRow& spikes) {
  float* const own = lines(sample) + now_;
  for (std::uint32_t k = 0; k < spikes.count; ++k) {
    shares_.add(spikes.ids[k], spikes.values == nullptr ? 1.0F : spikes.values[k], own);
  }
}

void ArrivingLines::addTo(Index sample, float* current) const {
  const float* const own = lines(sample) + now_;
  for (Index i = 0; i < shares_.of().neurons(); ++i) current[i] += own[i * slots_];
}

void ArrivingLines::write(Index sample, Index batch, const WritableNumbers& to) const {
  const Index neurons = shares_.of().neurons();
  std::vector<float> row(static_cast<std::size_t>(neurons));
  for (Index step = 0; step < shares_.of().longest(); ++step) {
    const float* const own = lines(sample) + now_ + step;
    for (Index i = 0; i < neurons; ++i) row[static_cast<std::size_t>(i)] = own[i * slots_];
    to.write((step * batch + first_ + sample) * neurons, neurons, row.data());
  }
}

LateCotangents::LateCotangents(const LateSynapses& of, const Extent& extent, const UnderWay& left, const float* gain)
    : of_(of),
      extent_(extent),
      left_(left),
      gain_(gain),
      rows_((extent.steps + of.longest()) * extent.batch * of.neurons()) {
  const Index lanes = roundUp(std::max<Index>(extent.batch, 1), kernels().lanes);
  const Index targets = std::max(kWindowFloats / (of.window() * std::min<Index>(lanes, 16)), kLeastTargets);
  const DelayedSynapses synapses = of.over(0, 0);
  const std::vector<Index> starts = startsOf(synapses.all);
  shares_ = std::make_unique<SharesOfNeurons>(synapses, of.count(), of.slots(), targets);
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) shares_->add(starts[i], starts[i + 1]);
}

const float* LateCotangents::take(Index step, Index sample, const float* g_v) {
  const Index neurons = of_.neurons(), behind = step - extent_.ends[sample];
  float* const own = rows_.data() + (step * extent_.batch + sample) * neurons;
  if (behind < 0) {
    for (Index i = 0; i < neurons; ++i) own[i] = gain_[i] * g_v[i];
  } else if (behind < left_.count()) {
    left_.read(behind, extent_.batch * neurons, sample * neurons, neurons, own);
  } else {
    std::fill_n(own, neurons, 0.0F);
  }
  return own;
}

void LateCotangents::writeFirst(Index rows, const WritableNumbers& to) const {
  if (rows > 0) to.write(0, rows * extent_.batch * of_.neurons(), rows_.data());
}

void LateCotangents::correlate(const RowSource& sent, const WritableNumbers& g_weights, const WritableNumbers& g_delays,
                               const Threads& threads) const {
  if (!g_weights && !g_delays) return;
  const DelayedSynapses synapses = of_.over(extent_.steps, extent_.batch);
  const Arriving<const float> g{rows_.data(), rows_.data() + extent_.rows() * of_.neurons()};
  const ListedRows listed(UntilEnd(sent, extent_), extent_.rows(), of_.neurons(), threads);
  const bool is_in_place = g_weights && !g_weights.is_bfloat16;
  Borrowed<float> weights(is_in_place ? 0 : of_.count());
  float* const to = is_in_place ? g_weights.float32() : weights.data();
  const auto correlate = arePairsOfShortDelays(synapses) ? correlatePairs : correlateDelayed;
  correlate(listed, synapses, g, to, g_delays ? g_delays.float32() : nullptr, threads);
  if (g_weights.is_bfloat16) g_weights.write(0, of_.count(), to);
}

LateCollector::LateCollector(LateCotangents& of, Index samples, Index width)
    : of_(of),
      width_(width),
      lanes_(roundUp(samples, kernels().lanes)),
      window_(of.of().window()),
      slots_(of.of().slots()),
      lines_(width * slots_ * lanes_),
      row_(samples * width),
      sums_(width * lanes_) {}

void LateCollector::begin(Index first, Index samples) {
  first_ = first, samples_ = samples;
  now_ = slots_ - window_ + 1 + of_.of().longest();
  std::fill_n(lines_.data(), width_ * slots_ * lanes_, 0.0F);
  for (Index step = of_.extent().steps + of_.of().longest(); step-- > of_.extent().steps;) put(step, {nullptr, 0});
}

void LateCollector::put(Index step, Rows<const float> g_v) {
  if (now_ == 0) {  // what is under way, but for the oldest
    now_ = slots_ - window_ + 1;
    for (Index i = 0; i < width_; ++i) {
      float* const line = lines_.data() + i * slots_ * lanes_;
      std::copy_backward(line, line + (window_ - 1) * lanes_, line + slots_ * lanes_);
    }
  }
  --now_;
  for (Index r = 0; r < samples_; ++r) {
    const float* const own = of_.take(step, first_ + r, g_v.data == nullptr ? nullptr : g_v.row(r));
    std::copy_n(own, of_.of().neurons(), row_.data() + r * width_);
  }
  kernels().transpose({row_.data(), width_}, samples_, width_, {lines_.data() + now_ * lanes_, slots_ * lanes_});
}

void LateCollector::collect(Index step, Rows<const float> g_v, Rows<float> out) {
  put(step, g_v);
  std::fill_n(sums_.data(), width_ * lanes_, 0.0F);
  const Rows<const float> arriving{lines_.data() + now_ * lanes_, lanes_};
  const Index vectors = lanes_ / kernels().lanes;
  for (Index block = 0; block < of_.shares().blocks(); ++block) {
    for (Index i = 0; i < of_.of().neurons(); ++i) {
      kernels().collectShares(of_.shares().block(i, block), arriving, vectors, sums_.data() + i * lanes_);
    }
  }
  kernels().transpose({sums_.data(), lanes_}, width_, samples_, out);
}

}  // namespace snnjax
