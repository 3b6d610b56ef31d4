#include "block.hpp"

#include <cmath>

#include "cpu/lists/marks.hpp"
namespace snnjax::simulate {
namespace {

constexpr float kMostSteps = 1 << 24;         // that a float counts
constexpr Index kShortRun = 64;               // neurons: of shorter runs, on average, constants are read one by one
constexpr std::uint32_t kNoise = UINT32_MAX;  // the use of random words that is not the number of a source

}  // namespace

void Shared::list(Index step, std::vector<std::uint32_t>& ids) const {
  ids.clear();
  const auto& lists = spikes[static_cast<std::size_t>(step % 2)];
  for (Index block = 0; block < blocks; ++block) {
    for (const std::uint32_t place : lists[static_cast<std::size_t>(block)]) {
      ids.push_back(static_cast<std::uint32_t>(place * blocks + block));
    }
  }
  if (blocks > 1) std::sort(ids.begin(), ids.end());
}

template <typename T>
template <typename From>
Constants<T>::Constants(const Shared& shared, Index block, const From* from, Index rows, Index length)
    : is_shared_(length != shared.neurons || length == 1),
      rows_(rows),
      stride_((is_shared_ ? 0 : shared.stride) + kernels().lanes),
      all_(static_cast<std::size_t>(rows * stride_)) {
  read(shared, block, from, length);
}

template <typename T>
template <typename From>
void Constants<T>::read(const Shared& shared, Index block, const From* from, Index length) {
  for (Index row = 0; row < rows_; ++row) {
    for (Index i = 0; i < stride_ && length > 0; ++i) {
      const Index n = is_shared_ ? 0 : std::min(i * shared.blocks + block, length - 1);
      all_[static_cast<std::size_t>(row * stride_ + i)] = static_cast<T>(from[row * length + n]);
    }
  }
}

template <typename T>
NeuronConstant<T> Constants<T>::row(Index index, Index first, bool as_one) const {
  const T* const data = all_.data() + index * stride_;
  return {is_shared_ || !as_one ? data : data + first, is_shared_ || as_one};
}

template <typename T>
bool Constants<T>::differ(Index a, Index b) const {
  for (Index row = 0; row < rows_ && !is_shared_; ++row) {
    if (all_[static_cast<std::size_t>(row * stride_ + a)] != all_[static_cast<std::size_t>(row * stride_ + b)]) {
      return true;
    }
  }
  return false;
}

Constants<float> Block::constant(const Operand& from, Index rows) const {
  if (!from) return {};
  const auto axes = from.dimensions().size();
  return {shared_, number_, from.at<float>(shared_.group), rows, from.length(axes - 2)};
}

Block::Block(Shared& shared, Index number)
    : shared_(shared),
      number_(number),
      count_((shared.neurons - number + shared.blocks - 1) / shared.blocks),
      leak_(constant(shared.from.leak)),
      threshold_(constant(shared.from.threshold)),
      reset_(constant(shared.from.reset)),
      refractory_(shared, number, shared.from.refractory.at<std::int32_t>(shared.group), 1,
                  shared.from.refractory.length(0)),
      synaptic_decay_(constant(shared.from.synaptic_decay, shared.receptors)),
      effect_(constant(shared.from.effect, shared.receptors)),
      shares_(constant(shared.from.shares, shared.from.shares ? shared.from.shares.length(0) : 0)),
      noise_(constant(shared.from.noise)),
      row_(kPlaces),
      v_(static_cast<std::size_t>(shared.stride)),
      received_(static_cast<std::size_t>(shared.receptors * shared.stride)),
      remaining_(v_.size()),
      currents_(v_.size() + static_cast<std::size_t>(kernels().lanes)),
      counts_(v_.size()),
      due_(static_cast<std::size_t>(shared.arrivals)) {
  const Index group = shared.group;
  read(shared.from.v.at<float>(group), v_.data(), 1);
  read(shared.from.received.at<float>(group), received_.data(), shared.receptors);
  read(shared.from.remaining.at<std::int32_t>(group), remaining_.data(), 1);
  std::fill_n(row_.data(), received_.size(), 0.0F);
  if (shared.from.weights.scale) {
    scale_.resize(received_.size());
    read(shared.from.weights.scale.at<float>(group), scale_.data(), shared.receptors);
  }
  const Index recorded = shared.to.recorded.v ? shared.from.recorded.ids.length(0) : 0;
  for (Index k = 0; k < recorded; ++k) {
    const Index id = shared.from.recorded.ids.at<std::int32_t>(group)[k];
    const bool is_neuron = id >= 0 && id < shared.neurons;
    if (is_neuron ? id % shared.blocks == number : number == 0) {
      recorded_.push_back({k, is_neuron ? id / shared.blocks : -1});
    }
  }
  for (auto& lists : shared.spikes) lists[static_cast<std::size_t>(number)].reserve(v_.size());
  makeSources();
  makeRuns();
  makePlastic();
  scheduleEarlier();
}

template <typename From, typename To>
void Block::read(const From* from, To* to, Index rows) const {
  for (Index row = 0; row < rows; ++row) {
    const From* const own = from + row * shared_.neurons + number_;
    for (Index i = 0; i < count_; ++i) to[row * shared_.stride + i] = static_cast<To>(own[i * shared_.blocks]);
  }
}

template <typename From, typename To>
void Block::write(const From* from, To* to, Index rows) const {
  for (Index row = 0; row < rows; ++row) {
    To* const own = to + row * shared_.neurons + number_;
    for (Index i = 0; i < count_; ++i) own[i * shared_.blocks] = static_cast<To>(from[row * shared_.stride + i]);
  }
}

void Block::makeSources() {
  for (const auto& from : shared_.from.poisson) {
    sources_.push_back(
        {{shared_, number_, from.limits.at<std::int32_t>(shared_.group), from.limits.length(1), from.limits.length(2)},
         constant(from.weights),
         from.receptor.at<std::int32_t>(shared_.group)[0]});
  }
}

void Block::makeRuns() {
  const bool vary = std::ranges::any_of(shared_.from.poisson, [&](const auto& from) {
    return from.limits.length(0) > 1 && from.limits.length(2) > 1;  // in time, so that neurons may differ later
  });
  const auto differ = [&](Index a, Index b) {
    return vary || leak_.differ(a, b) || threshold_.differ(a, b) || reset_.differ(a, b) || refractory_.differ(a, b) ||
           synaptic_decay_.differ(a, b) || effect_.differ(a, b) || noise_.differ(a, b) ||
           std::ranges::any_of(sources_, [&](const Source& source) {
             return source.weights.differ(a, b) || source.limits.differ(a, b);
           });
  };
  std::vector<Index> firsts{0};
  for (Index n = 1; n < count_; ++n) {
    if (differ(n - 1, n)) firsts.push_back(n);
  }
  const auto runs = static_cast<Index>(firsts.size());
  const bool as_one = runs == 1 || runs * kShortRun <= count_;
  if (!as_one) firsts.resize(1);
  firsts.push_back(count_);
  for (std::size_t k = 0; k + 1 < firsts.size(); ++k) runs_.push_back(runOf(firsts[k], firsts[k + 1], as_one));
  for (Run& run : runs_) {  // which lie where they stay
    run.step.synaptic_decay = run.decay.data();
    run.step.effect = run.effect.data();
  }
}

Block::Run Block::runOf(Index first, Index end, bool as_one) {
  Run run;
  for (Index r = 0; r < shared_.receptors; ++r) {
    run.decay[static_cast<std::size_t>(r)] = synaptic_decay_.row(r, first, as_one);
    run.effect[static_cast<std::size_t>(r)] = effect_.row(r, first, as_one);
  }
  run.step = {.first = first,
              .end = end,
              .stride = shared_.stride,
              .receptors = shared_.receptors,
              .has_conductances = shared_.numbers.has_conductances,
              .leak = leak_.row(0, first, as_one),
              .threshold = threshold_.row(0, first, as_one),
              .reset = reset_.row(0, first, as_one),
              .refractory = refractory_.row(0, first, as_one),
              .synaptic_decay = nullptr,
              .effect = nullptr,
              .currents = {nullptr, true},
              .v = v_.data(),
              .remaining = remaining_.data(),
              .received = received_.data(),
              .arriving = row_.data()};
  addDraws(run, as_one);
  return run;
}

// Those that add something: a source of some populations costs nothing in the others.
void Block::addDraws(Run& run, bool as_one) {
  const Index first = run.step.first, end = run.step.end;
  const auto isSilent = [&](const Constants<float>& scale) {
    return (as_one || scale.isShared()) && scale.of(0, first) == 0.0F;
  };
  const RandomStep random{.key = {},
                          .first = first,
                          .end = end,
                          .number = static_cast<std::uint32_t>(number_),
                          .blocks = static_cast<std::uint32_t>(shared_.blocks)};
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    const Source& source = sources_[k];
    if (first == end || isSilent(source.weights)) continue;
    Draw draw{.source = k, .limits = {}, .step = {}};
    const Index levels = shared_.from.poisson[k].limits.length(1);
    for (Index level = 0; level < levels; ++level) draw.limits.push_back(source.limits.row(level, first, as_one));
    draw.step = {.random = random,
                 .levels = levels,
                 .limits = draw.limits.data(),
                 .weights = source.weights.row(0, first, as_one),
                 .arriving = row_.data() + source.receptor * shared_.stride};
    run.draws.push_back(std::move(draw));
  }
  if (shared_.from.noise && first < end && !isSilent(noise_)) {
    run.noise = {.random = random, .scale = noise_.row(0, first, as_one), .currents = currents_.data()};
  }
}

// A constant of each neuron.
std::vector<float> Block::each(const Operand& from) const {
  std::vector<float> all(v_.size());
  const auto* const own = from.at<float>(shared_.group);
  const bool is_shared = from.length(0) == 1;
  for (Index i = 0; i < count_; ++i)
    all[static_cast<std::size_t>(i)] = own[is_shared ? 0 : i * shared_.blocks + number_];
  return all;
}

void Block::makePlastic() {
  const auto& [from, to] = std::tie(shared_.from, shared_.to);
  const Index group = shared_.group, steps = shared_.arrivals;
  const auto readRows = [&](const Operand& rows, const History& history) {
    for (Index k = 0; k < steps; ++k) {
      read(rows.at<float>(group) + k * shared_.neurons, history.row(k - steps, number_), 1);
    }
  };
  if (from.stdp.before) {
    const auto pair = [&](const Operand& of) {
      return std::array<float, 2>{of.at<float>(group)[0], of.at<float>(group)[1]};
    };
    after_.resize(v_.size());
    read(from.stdp.after.at<float>(group), after_.data(), 1);
    readRows(from.stdp.before, shared_.before);
    const Index bytes = from.sent.length(1);
    for (Index k = 0; k < steps; ++k) {
      const auto* const bits = from.sent.at<std::uint8_t>(group) + k * bytes;
      for (Index i = 0; i < count_; ++i) {
        const Index id = i * shared_.blocks + number_;
        shared_.sent.row(k - steps, number_)[i] = static_cast<float>(bits[id / 8] >> (id % 8) & 1);
      }
    }
    const auto bounds = pair(from.stdp.bounds);
    SpikeTimingPlasticity::Rule rule{pair(from.stdp.decay), pair(from.stdp.rates), {bounds[0], bounds[1]}};
    if (shared_.third) rule.third = &*shared_.third;
    if (from.stdp.keep) {
      rule.keep = *from.stdp.keep.at<float>(group);
      rule.eligibility = to.stdp.eligibility.at<float>(group);
      rule.known = shared_.known.data();
    }
    stdp_.emplace(shared_.synapses, number_, static_cast<Index>(received_.size()), from.stdp.plastic.at<bool>(group),
                  rule, to.stdp.weights.at<float>(group), shared_.before, shared_.sent, after_.data());
  }
  if (from.short_term.used) {
    used_.resize(v_.size()), available_.resize(v_.size());
    read(from.short_term.used.at<float>(group), used_.data(), 1);
    read(from.short_term.available.at<float>(group), available_.data(), 1);
    readRows(from.short_term.released, shared_.release);
    short_term_.emplace(ShortTermPlasticity::Rule{each(from.short_term.use), each(from.short_term.recovery),
                                                  each(from.short_term.facilitation)},
                        used_.data(), available_.data());
  }
}

// Lists the synapses of a spike in the steps in which it arrives, but for those before this call.
void Block::schedule(Index step, std::uint32_t sender) {
  shared_.synapses.each(number_, sender, [&](const Segment& segment) {
    const Index delay = segment.delay, arrival = step + delay;
    if (delay < 1 || delay > shared_.arrivals || arrival < 0 || segment.count == 0) return;
    due_[static_cast<std::size_t>(arrival % shared_.arrivals)].push_back(segment);
  });
}

void Block::scheduleEarlier() {
  const Index bytes = shared_.from.sent.length(1);
  for (Index k = 0; k < shared_.arrivals; ++k) {
    const auto* const bits = shared_.from.sent.at<std::uint8_t>(shared_.group) + k * bytes;
    for (Index byte = 0; byte < bytes; ++byte) {
      for (unsigned left = bits[byte]; left != 0; left &= left - 1) {
        const Index id = byte * 8 + __builtin_ctz(left);
        if (id < shared_.neurons) schedule(k - shared_.arrivals, static_cast<std::uint32_t>(id));
      }
    }
  }
}

void Block::step(Index t) {
  if (t > 0) {
    shared_.list(t - 1, senders_);
    for (const std::uint32_t sender : senders_) schedule(t - 1, sender);
    if (number_ == 0) recordAll(t - 1, senders_);
  }
  receive(t);
  draw(t);
  auto& spikes = shared_.spikes[static_cast<std::size_t>(t % 2)][static_cast<std::size_t>(number_)];
  spikes.resize(v_.size());
  const NeuronConstant<float> currents = currentsOf(t);
  Index found = 0;
  for (Run& run : runs_) {
    run.step.currents = currents;
    found += kernels().stepSynaptic(run.step, spikes.data() + found);
  }
  spikes.resize(static_cast<std::size_t>(found));
  give(t, spikes);
  for (const std::uint32_t i : spikes) ++counts_[i];
  learn(t, spikes);
  due_[static_cast<std::size_t>(t % shared_.arrivals)].clear();
  record(t);
}

// Random words of a step: the state counts steps, so that those of pieces are those of the whole.
Words Block::wordsOf(Index t, std::uint32_t use) const {
  const auto now = static_cast<std::uint32_t>(shared_.from.step.at<std::int32_t>(shared_.group)[0] + t);
  const auto* const key = shared_.from.key.at<std::uint32_t>(shared_.group);
  return threefry({key[0], key[1]}, now, use);
}

void Block::draw(Index t) {
  if (sources_.empty()) return;
  std::vector<Words> words(sources_.size());
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    words[k] = wordsOf(t, static_cast<std::uint32_t>(k));
    const Operand& limits = shared_.from.poisson[k].limits;
    if (limits.length(0) == 1) continue;
    const Index length = limits.length(2);
    sources_[k].limits.read(shared_, number_, limits.at<std::int32_t>(shared_.group) + t * limits.length(1) * length,
                            length);
  }
  for (Run& run : runs_) {
    for (Draw& draw : run.draws) {
      std::copy(words[draw.source].begin(), words[draw.source].end(), draw.step.random.key);
      kernels().addPoisson(draw.step);
    }
  }
}

// Lets neurons spike whose spikes are given: ids in any order, of steps that ascend.
void Block::give(Index t, std::vector<std::uint32_t>& spikes) {
  if (!shared_.from.given.ids) return;
  const auto* const steps = shared_.from.given.steps.at<std::int32_t>(shared_.group);
  const auto* const ids = shared_.from.given.ids.at<std::int32_t>(shared_.group);
  const Index events = shared_.from.given.ids.length(0), own = static_cast<Index>(spikes.size());
  const Index now = shared_.from.step.at<std::int32_t>(shared_.group)[0] + t;
  if (t == 0) given_ = std::lower_bound(steps, steps + events, now) - steps;
  for (; given_ < events && steps[given_] <= now; ++given_) {
    const Index id = ids[given_];
    if (steps[given_] < now || id < 0 || id >= shared_.neurons || id % shared_.blocks != number_) continue;
    const auto place = static_cast<std::uint32_t>(id / shared_.blocks);
    spikes.push_back(place);
    v_[place] = reset_.of(0, place);
    remaining_[place] = refractory_.of(0, place);
  }
  if (static_cast<Index>(spikes.size()) == own) return;
  std::ranges::sort(spikes);
  spikes.erase(std::unique(spikes.begin(), spikes.end()), spikes.end());
}

void Block::receive(Index t) {
  if (stdp_) stdp_->update(t - 1, due_[static_cast<std::size_t>(t % shared_.arrivals)]);
  addSegments(due_[static_cast<std::size_t>(t % shared_.arrivals)], shared_.synapses, t, shared_.release, row_.data());
  for (std::size_t i = 0; i < scale_.size(); ++i) row_.data()[i] *= scale_[i];
}

NeuronConstant<float> Block::currentsOf(Index t) {
  const Operand& all = shared_.from.currents;
  const bool has_noise = static_cast<bool>(shared_.from.noise), has_shares = static_cast<bool>(shared_.from.shares);
  const Index length = all.length(1);
  const bool is_one = !has_shares && (length != shared_.neurons || length == 1);
  if (all.length(0) == 0 && !has_noise) return {nullptr, true};
  const float* const row = all.at<float>(shared_.group) + t * length;
  if (all.length(0) == 0 || has_shares) {
    std::ranges::fill(currents_, 0.0F);
    for (Index k = 0; has_shares && all.length(0) > 0 && k < length; ++k) {
      for (Index i = 0; i < count_; ++i) currents_[static_cast<std::size_t>(i)] += row[k] * shares_.of(k, i);
    }
  } else if (is_one) {
    std::ranges::fill(currents_, *row);
  } else if (shared_.blocks == 1 && !has_noise) {
    return {row, false};
  } else {
    read(row, currents_.data(), 1);
  }
  if (!has_noise) return {currents_.data(), is_one};
  const Words words = wordsOf(t, kNoise);
  for (Run& run : runs_) {
    if (!run.noise) continue;
    std::copy(words.begin(), words.end(), run.noise->random.key);
    kernels().addNoise(*run.noise);
  }
  return {currents_.data(), false};
}

void Block::learn(Index t, const std::vector<std::uint32_t>& spikes) {
  if (stdp_) {
    const float decay = shared_.from.stdp.decay.at<float>(shared_.group)[0];
    float *const now = shared_.before.row(t, number_), *const sent = shared_.sent.row(t, number_);
    const float *const earlier = shared_.before.row(t - 1, number_), *const last = shared_.sent.row(t - 1, number_);
    for (Index i = 0; i < shared_.stride; ++i) now[i] = decay * (earlier[i] + last[i]), sent[i] = 0.0F;
    for (const std::uint32_t i : spikes) sent[i] = 1.0F;
    stdp_->step(t, due_[static_cast<std::size_t>(t % shared_.arrivals)], spikes);
  }
  if (short_term_) {
    float* const row = shared_.release.row(t, number_);
    std::fill_n(row, shared_.stride, 0.0F);
    short_term_->release(spikes, row);
    short_term_->step(spikes);
  }
}

// Its part of the sums that are recorded; of an id that is no neuron's, not a number.
void Block::record(Index t) {
  const auto& to = shared_.to.recorded;
  const Index every = shared_.numbers.every;
  if (!to.v || (t + 1) % every != 0) return;
  const Index sample = (t + 1) / every - 1, columns = to.v.length(2), receptors = shared_.receptors;
  const Index place = sample * shared_.blocks + number_;
  float* const v = to.v.at<float>(shared_.group) + place * columns;
  float* const received = to.received ? to.received.at<float>(shared_.group) + place * receptors * columns : nullptr;
  std::fill_n(v, columns, 0.0F);
  if (received != nullptr) std::fill_n(received, receptors * columns, 0.0F);
  const auto& from = shared_.from.recorded;
  for (const auto& [k, i] : recorded_) {
    const Index column = from.columns.at<std::int32_t>(shared_.group)[k];
    const float share = i < 0 ? std::nanf("") : from.shares.at<float>(shared_.group)[k];
    if (column < 0 || column >= columns) continue;
    const Index own = std::max<Index>(i, 0);
    v[column] += share * v_[static_cast<std::size_t>(own)];
    for (Index r = 0; received != nullptr && r < receptors; ++r) {
      received[r * columns + column] += share * received_[static_cast<std::size_t>(r * shared_.stride + own)];
    }
  }
  if (to.weights) recordWeights(sample, t);
}

// Of the synapses that lead to this block.
void Block::recordWeights(Index sample, Index t) {
  const Index group = shared_.group, watched = shared_.to.recorded.weights.length(1);
  float* const row = shared_.to.recorded.weights.at<float>(group) + sample * watched;
  const auto [first, end] = shared_.synapses.rangeOf(number_);
  for (Index k = 0; k < watched; ++k) {
    const Index synapse = shared_.from.recorded.synapses.at<std::int32_t>(group)[k];
    if (synapse < first || synapse >= end) continue;
    stdp_->update(t, synapse);
    row[k] = shared_.to.stdp.weights.at<float>(group)[synapse];
  }
}

// Counts the spikes of a step, and lists as many as there are slots, ids ascending; and their bits, if they are still
// under way when the call ends.
void Block::recordAll(Index t, const std::vector<std::uint32_t>& ids) const {
  const auto& to = shared_.to;
  const auto count = static_cast<Index>(ids.size());
  to.num_spikes.at<std::int32_t>(shared_.group)[t] = static_cast<std::int32_t>(count);
  const Index capacity = to.ids.length(1);
  const IdArray listed{to.ids.at(shared_.group), shared_.neurons};
  const Index first = t * capacity, kept = std::min(count, capacity);
  listed.write(first, ids.data(), kept);
  listed.writeUnused(first + kept, capacity - kept);
  const Index row = t - (shared_.steps - shared_.arrivals);
  if (row < 0) return;
  auto* const bits = to.sent.at<std::uint8_t>(shared_.group) + row * to.sent.length(1);
  for (const std::uint32_t id : ids) bits[id / 8] = static_cast<std::uint8_t>(bits[id / 8] | 1U << id % 8);
}

void Block::finish() {
  const auto& to = shared_.to;
  const Index group = shared_.group, steps = shared_.arrivals;
  if (number_ == 0 && shared_.steps > 0) {
    shared_.list(shared_.steps - 1, senders_);
    recordAll(shared_.steps - 1, senders_);
  }
  write(v_.data(), to.v.at<float>(group), 1);
  write(received_.data(), to.received.at<float>(group), shared_.receptors);
  write(counts_.data(), to.counts.at<std::int32_t>(group), 1);
  for (float& left : remaining_) left = std::clamp(left, -kMostSteps, kMostSteps);
  write(remaining_.data(), to.remaining.at<std::int32_t>(group), 1);
  const auto writeRows = [&](const History& history, const Result& rows) {
    for (Index k = 0; k < steps; ++k) {
      write(history.row(shared_.steps + k - steps, number_), rows.at<float>(group) + k * shared_.neurons, 1);
    }
  };
  if (stdp_) {
    stdp_->updateAll(shared_.steps - 1);
    write(after_.data(), to.stdp.after.at<float>(group), 1);
    writeRows(shared_.before, to.stdp.before);
  }
  if (short_term_) {
    write(used_.data(), to.short_term.used.at<float>(group), 1);
    write(available_.data(), to.short_term.available.at<float>(group), 1);
    writeRows(shared_.release, to.short_term.released);
  }
}

}  // namespace snnjax::simulate
