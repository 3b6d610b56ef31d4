// Axonal delays before a layer: when its inputs' spikes arrive, and how cotangents come back.
//
// What an input sends arrives in two shares: after the whole steps of its delay, and one step later. The earlier one of
// input i has the id i, the later one the id inputs + i.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/lists/spike_rows.hpp"
#include "cpu/memory.hpp"
#include "cpu/numbers.hpp"
#include "cpu/parallel.hpp"

namespace snnjax {

// A delay as whole steps and the share that arrives one step later.
struct SplitDelay {
  Index whole;
  float later;
};

// One outside of [0, longest] is clipped; NaN counts as 0. In float64: float32 rounds a longest delay from 2^24 on.
inline SplitDelay splitDelay(float delay, Index longest) {
  const double clipped = delay > 0.0F ? std::min(double{delay}, static_cast<double>(longest)) : 0.0;
  const double whole = std::floor(clipped);
  return {static_cast<Index>(whole), static_cast<float>(clipped - whole)};
}

// The delays of the inputs of a layer.
class Delays {
 public:
  // `rows` is the longest delay and 1; `more` steps come on top of each.
  Delays(Index rows, const float* delays, Index inputs, Index more = 0);

  Index rows() const { return rows_; }  // of steps in which something was sent that is still under way
  Index inputs() const { return static_cast<Index>(whole_.size()); }
  Index whole(Index input) const { return whole_[static_cast<std::size_t>(input)]; }
  float share(std::uint32_t id) const { return shares_[id]; }
  bool areSplit() const { return are_split_; }  // whether there are two shares of some
  const float* now() const { return shares_.data(); }
  const float* next() const { return shares_.data() + whole_.size(); }

 private:
  Index rows_;
  std::vector<std::int32_t> whole_;
  std::vector<float> shares_;  // by id
  bool are_split_ = false;
};

// What was sent before the first step, or the last one's end: rows of [batch, inputs], the oldest first. There are
// none, or as many as the delays have; the last one may lie apart.
struct UnderWay {
  Numbers numbers;
  Index rows;  // of these
  Numbers last = {};

  Index count() const { return rows + (last ? 1 : 0); }
  // Some of a row of `size` numbers.
  void read(Index row, Index size, Index first, Index count, float* out) const {
    row < rows ? numbers.read(row * size + first, count, out) : last.read(first, count, out);
  }
};

// What arrives in each row, by id, with the values as they were sent.
class Arrivals {
 public:
  // `all`: also the zero shares of whole delays, which matter for their cotangents.
  Arrivals(const SpikeRows& sent, const UnderWay& pending, const Extent& extent, const Delays& delays, bool all,
           const Threads& threads);

  SpikeRow row(Index row) const;
  Index longest() const { return longest_; }
  const Delays& delays() const { return delays_; }

 private:
  struct Sample {
    std::vector<std::uint32_t> starts;  // of each step, from as many before the first as may be under way, and the end
    Borrowed<std::uint32_t> ids;
    Borrowed<float> values;  // absent: all are 1
  };

  void sort(Index first, Index end);
  template <typename Visit>
  void eachSent(Index first, Index end, Visit visit) const;

  const SpikeRows& sent_;
  const UnderWay pending_;
  const Extent extent_;
  const Delays& delays_;
  const bool has_later_;
  std::vector<Sample> samples_;
  Index longest_ = 0;
};

// The rows of what arrives at a layer.
class ArrivingSource : public RowSource {
 public:
  explicit ArrivingSource(const Arrivals& arrivals) : arrivals_(arrivals) {}
  std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const override;
  Index longest() const override { return arrivals_.longest(); }
  void expand(Index row, float* dense) const override;
  bool isListed() const override { return true; }

 private:
  const Arrivals& arrivals_;
};

// The same with both shares separate and as they were sent, in rows of twice the inputs: what the weights' gradient
// needs to give the delays' as well.
class SplitSource : public RowSource {
 public:
  explicit SplitSource(const Arrivals& arrivals) : arrivals_(arrivals) {}
  std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const override;
  Index longest() const override { return arrivals_.longest(); }
  void expand(Index row, float* dense) const override;
  bool isListed() const override { return true; }

 private:
  const Arrivals& arrivals_;
};

// Writes `rows` rows of what is under way past the end of each sample, from the oldest one on.
void writeUnderWay(const SpikeRows& sent, const UnderWay& pending, const Extent& extent, const Delays& delays,
                   Index rows, const WritableNumbers& to, const Threads& threads);

// The cotangents of what was sent, from those of what arrived and of what is still under way.
class DelayedCotangents {
 public:
  // `arrived` are rows of [steps + rows of the delays, batch], 0 past the ends of the samples.
  DelayedCotangents(const Delays& delays, const Extent& extent, Rows<const float> arrived, const UnderWay& left);

  Index batch() const { return extent_.batch; }
  // to[i] += those of the inputs [first, first + count) in a step, which is negative for what was pending.
  void addTo(Index step, Index sample, Index first, Index count, float* to) const;
  // The cotangents of the delays, [inputs], from all `arrivals`.
  void sumDelays(const Arrivals& arrivals, const WritableNumbers& to, const Threads& threads) const;

 private:
  void addPending(Index step, Index sample, Index first, Index count, float* to) const;
  void addLeft(Index step, Index sample, Index first, Index count, float* to) const;

  const Delays& delays_;
  const Extent extent_;
  Rows<const float> arrived_;
  UnderWay left_;
  Index step_;                 // numbers of `arrived` from one step to the next
  std::vector<Index> places_;  // of each input, numbers from where a row begins to where what it sends arrives first
};

}  // namespace snnjax
