// The targets of `moments`: mean and variance of each channel in one pass, and what their cotangents add to those of
// the rows.
#include <algorithm>

#include "cpu/call.hpp"
#include "cpu/kernels.hpp"
#include "cpu/memory.hpp"

namespace snnjax::moments {
namespace {

using schema::Axis;

// Parts of the rows, which do not depend on the number of threads, so no bit does.
constexpr Index kParts = 64, kLeastRows = 128;
// Rows that are summed in float32 before their sums are added in float64.
constexpr Index kRowsAtOnce = 64;
// The largest square of a mean, in variances, up to which the difference of the mean of squares from it loses no more
// than six bits to rounding.
constexpr double kLargestMean = 64.0;

class Forward {
 public:
  Forward(const Operands<Operand>& from, Index rows, Index channels, Index group)
      : x_(from.x.at<float>(group)),
        inside_(from.is_inside ? from.is_inside.at<std::uint8_t>(group) : nullptr),
        rows_(rows),
        channels_(channels),
        part_(std::max(kLeastRows, (rows + kParts - 1) / kParts)),
        origin_(static_cast<std::size_t>(channels)) {}

  // Around a first guess of the mean; again around the mean if it was far from it.
  void run(float* mean, float* variance, const Threads& threads) {
    // Of a row that counts: what others hold, even NaN, has no influence.
    Index row = 0;
    while (row < rows_ && !isInside(row)) ++row;
    if (row < rows_) std::copy_n(x_ + row * channels_, channels_, origin_.data());
    sum(threads);
    if (isFar()) {
      for (Index c = 0; c < channels_; ++c) origin_[size(c)] = static_cast<float>(meanOf(c));
      sum(threads);
    }
    for (Index c = 0; c < channels_; ++c) {
      const double from_origin = first(c) / count();
      mean[c] = count_ == 0 ? 0.0F : static_cast<float>(meanOf(c));
      variance[c] = static_cast<float>(std::max(second(c) / count() - from_origin * from_origin, 0.0));
    }
  }

 private:
  static std::size_t size(Index index) { return static_cast<std::size_t>(index); }
  bool isInside(Index row) const { return inside_ == nullptr || inside_[row] != 0; }
  double count() const { return static_cast<double>(std::max<Index>(count_, 1)); }
  double first(Index c) const { return sums_[c]; }
  double second(Index c) const { return sums_[channels_ + c]; }
  double meanOf(Index c) const { return double{origin_[size(c)]} + first(c) / count(); }
  bool isFar() const {
    for (Index c = 0; c < channels_; ++c) {
      const double square = first(c) * first(c) / count();
      if (square > kLargestMean * (second(c) - square)) return true;
    }
    return false;
  }

  // The sums of the distances from the origin and of their squares.
  void sum(const Threads& threads) {
    const Index parts = (rows_ + part_ - 1) / part_;
    sums_ = Buffer<double>(2 * channels_ * std::max<Index>(parts, 1));
    std::vector<Index> counts(size(parts));
    threads.run(parts, [&](Index part, Index) {
      counts[size(part)] = sumRows(part * part_, std::min((part + 1) * part_, rows_), &sums_[2 * channels_ * part]);
    });
    count_ = 0;
    for (Index part = 0; part < parts; ++part) {
      count_ += counts[size(part)];
      for (Index i = 0; part > 0 && i < 2 * channels_; ++i) sums_[i] += sums_[2 * channels_ * part + i];
    }
  }

  Index sumRows(Index row, Index end, double* sums) const {
    std::vector<float> some(size(2 * channels_));
    float* const of_first = some.data();
    float* const of_second = of_first + channels_;
    Index counted = 0;
    while (row < end) {
      std::fill(some.begin(), some.end(), 0.0F);
      for (const Index stop = std::min(row + kRowsAtOnce, end); row < stop; ++row) {
        if (!isInside(row)) continue;
        ++counted;
        const float* x = x_ + row * channels_;
        for (Index c = 0; c < channels_; ++c) {
          const float distance = x[c] - origin_[size(c)];
          of_first[c] += distance;
          of_second[c] += distance * distance;
        }
      }
      for (Index i = 0; i < 2 * channels_; ++i) sums[i] += double{some[size(i)]};
    }
    return counted;
  }

  const float* x_;
  const std::uint8_t* inside_;
  const Index rows_, channels_, part_;
  Index count_ = 0;
  std::vector<float> origin_;
  Buffer<double> sums_;  // [parts, 2, channels]
};

// A row of channels for each pixel.
Index rowsOf(const schema::Lengths& lengths, const Operand& is_inside) {
  const Index neurons = lengths[Axis::kNeurons], channels = std::max<Index>(lengths[Axis::kChannels], 1);
  const Index pixels = neurons / channels;
  if (pixels * lengths[Axis::kChannels] != neurons || (is_inside && is_inside.length(2) != pixels)) {
    throw misfit("moments", "x", "have pixels of as many channels as the mean", std::to_string(neurons) + " neurons");
  }
  return lengths[Axis::kSteps] * lengths[Axis::kBatch] * pixels;
}

void moments(Call<Operands<Operand>, Results<Result>>& call) {
  const schema::Lengths lengths = call.check();
  const Index rows = rowsOf(lengths, call.from.is_inside);
  for (Index group = 0; group < call.groups(); ++group) {
    Forward(call.from, rows, lengths[Axis::kChannels], group)
        .run(call.to.mean.at<float>(group), call.to.variance.at<float>(group), call.threads);
  }
}

// `g_x` may lie over `g`.
void momentsBackward(Call<BackwardOperands<Operand>, BackwardResults<Result>>& call) {
  const schema::Lengths lengths = call.check();
  const Index rows = rowsOf(lengths, call.from.is_inside), channels = lengths[Axis::kChannels];
  constexpr Index kNumbersPerTask = 1 << 16;
  const Index some = std::max<Index>(1, kNumbersPerTask / std::max<Index>(channels, 1));
  for (Index group = 0; group < call.groups(); ++group) {
    const auto *g = call.from.g.at<float>(group), *x = call.from.x.at<float>(group);
    const auto *term = call.from.term.at<float>(group), *factor = call.from.factor.at<float>(group);
    const std::uint8_t* inside = call.from.is_inside ? call.from.is_inside.at<std::uint8_t>(group) : nullptr;
    auto* const out = call.to.g_x.at<float>(group);
    call.threads.run((rows + some - 1) / some, [&](Index task, Index) {
      std::vector<float> added(static_cast<std::size_t>(channels));
      for (Index row = task * some; row < std::min((task + 1) * some, rows); ++row) {
        const Index place = row * channels;
        if (inside != nullptr && inside[row] == 0) {
          if (out != g) std::copy_n(g + place, channels, out + place);
          continue;
        }
        kernels().affine(x + place, factor, term, channels, added.data());
        kernels().affine(g + place, nullptr, added.data(), channels, out + place);
      }
    });
  }
}

}  // namespace
}  // namespace snnjax::moments

SNNJAX_TARGET(snnjax_moments, "moments", snnjax::moments::moments);
SNNJAX_TARGET(snnjax_moments_backward, "moments", snnjax::moments::momentsBackward);
