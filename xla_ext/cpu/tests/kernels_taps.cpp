// Taps of every instruction set of this machine compared with plain loops, of every number of taps.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernel_checks.hpp"

namespace {

using namespace kernel_checks;

constexpr Index kRows = 60;

void sharesAreSpread(const Case& of, Random& random) {
  const Index lanes = of.kernels.lanes, taps = of.size % (lanes - 1) + 2, targets = of.size % lanes + 1;
  const auto longest = static_cast<float>(taps - 1);
  Floats weights = random.eighths(targets), delays, got = random.eighths(taps * lanes);
  for (Index i = 0; i < targets; ++i) delays.push_back(static_cast<float>(random.below(8 * taps)) / 8.0F);
  delays[0] = std::array{-1.0F, std::nanf(""), 2 * longest, longest}[sizeOf(of.size % 4)];
  Floats want(got.size());
  for (Index i = 0; i < targets; ++i) {
    const float delay = delays[sizeOf(i)] > 0.0F ? std::min(delays[sizeOf(i)], longest) : 0.0F;
    const Index whole = std::min(static_cast<Index>(delay), taps - 2);
    const float next = delay - static_cast<float>(whole);
    want[sizeOf(whole * lanes + i)] = (1.0F - next) * weights[sizeOf(i)];
    want[sizeOf((whole + 1) * lanes + i)] = next * weights[sizeOf(i)];
  }
  of.kernels.spreadShares(weights.data(), delays.data(), targets, taps, got.data());
  expectSame(of, got, want);
}

void tapsAreAddedSummedAndDotted(const Case& of, Random& random) {
  const Index lanes = of.kernels.lanes, taps = of.size % (lanes - 1) + 2;
  const std::vector<std::uint32_t> ids = random.ids(kRows - taps, 0.3);
  const Floats values = random.eighths(static_cast<Index>(ids.size())), own = random.eighths(taps * lanes);
  for (const bool weighted : {false, true}) {
    const SpikeRow spikes{ids.data(), weighted ? values.data() : nullptr, static_cast<std::uint32_t>(ids.size()),
                          false};
    const Floats rows = random.eighths(kRows * lanes);
    Floats want_rows = rows, want_sums = random.eighths(taps * lanes), want_dots = values;
    Floats got_rows = want_rows, got_sums = want_sums, got_dots = want_dots;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      for (std::size_t i = 0; i < own.size(); ++i) {
        const std::size_t at = ids[k] * sizeOf(lanes) + i;
        want_rows[at] += (weighted ? values[k] : 1.0F) * own[i];
        want_sums[i] += (weighted ? values[k] : 1.0F) * rows[at];
        want_dots[k] += own[i] * rows[at];
      }
    }
    of.kernels.addTaps(spikes, own.data(), taps, got_rows.data());
    of.kernels.sumTaps(spikes, rows.data(), taps, got_sums.data());
    of.kernels.dotTaps(ids.data(), static_cast<Index>(ids.size()), own.data(), taps, rows.data(), got_dots.data());
    expectSame(of, got_rows, want_rows);
    expectSame(of, got_sums, want_sums);
    expectSame(of, got_dots, want_dots);
  }
}

// As the products with the taps, which have another test: of synapses at one place each.
void sharesAreCollected(const Case& of, Random& random) {
  const Index lanes = of.kernels.lanes, taps = of.size % (lanes - 1) + 2, count = of.size % 21;
  const Index stride = std::array{Index{1}, Index{3}, lanes, 2 * lanes, Index{5}}[sizeOf(of.size % 5)];
  const Index vectors = of.size % 19, rows = kRows + taps;
  const Floats weights = random.eighths(count), arriving = random.eighths((rows + vectors * lanes) * stride);
  Floats delays, whole(sizeOf(count)), now(sizeOf(count)), next(sizeOf(count)), one(sizeOf(taps * lanes));
  Floats want = random.eighths(vectors * lanes), got = want;
  std::vector<std::uint32_t> at;
  for (Index k = 0; k < count; ++k) delays.push_back(static_cast<float>(random.below(8 * taps)) / 8.0F);
  of.kernels.splitShares(weights.data(), delays.data(), count, taps, whole.data(), now.data(), next.data());
  for (Index k = 0; k < count; ++k) {
    const auto first = static_cast<Index>(random.below(kRows));
    at.push_back(static_cast<std::uint32_t>(first + static_cast<Index>(whole[sizeOf(k)])));
    of.kernels.spreadShares(&weights[sizeOf(k)], &delays[sizeOf(k)], 1, taps, one.data());
    for (Index i = 0; i < vectors * lanes; ++i) {
      for (Index tap = 0; tap < taps; ++tap) {
        want[sizeOf(i)] += one[sizeOf(tap * lanes)] * arriving[sizeOf((first + tap) * stride + i)];
      }
    }
  }
  of.kernels.collectShares({at.data(), now.data(), next.data(), count}, {arriving.data(), stride}, vectors, got.data());
  expectSame(of, got, want);
}

// Runs of none, one, and several synapses, of senders that come again.
void stepsAreCollected(const Case& of, Random& random) {
  const Index lanes = of.kernels.lanes, vectors = of.size % (longestCollected(lanes) / lanes) + 1;
  const Index width = vectors * lanes, count = of.size % 7;
  constexpr Index kSenders = 5, kMostSteps = 4;
  const Floats rows = random.eighths((kRows + kMostSteps) * width);
  std::vector<SenderRun> runs;
  std::vector<std::uint32_t> at;
  for (Index run = 0; run < count; ++run) {
    for (std::uint64_t k = random.below(4); k > 0; --k) at.push_back(static_cast<std::uint32_t>(random.below(kRows)));
    runs.push_back({static_cast<std::uint32_t>(random.below(kSenders)), static_cast<std::uint32_t>(at.size())});
  }
  const auto all = static_cast<Index>(at.size());
  const Floats now = random.eighths(all), next = random.eighths(all);
  const Index stride = kMostSteps * width;
  for (const Index steps : {1, 2, 4}) {
    Floats want = random.eighths(kSenders * stride), got = want;
    std::size_t k = 0;
    for (const SenderRun& run : runs) {
      for (; k < run.end; ++k) {
        for (std::size_t i = 0; i < sizeOf(steps * width); ++i) {
          const std::size_t first = at[k] * sizeOf(width) + i;
          want[run.sender * sizeOf(stride) + i] += now[k] * rows[first] + next[k] * rows[first + sizeOf(width)];
        }
      }
    }
    of.kernels.collectSteps({runs.data(), count, at.data(), now.data(), next.data()}, steps, rows.data(), vectors,
                            {got.data(), stride});
    expectSame(of, got, want);
  }
}

void vectorsAreReadAndWritten(const Case& of, Random& random) {
  constexpr Index kApart = 40;
  const Index lanes = of.kernels.lanes, columns = of.size % lanes + 1, rows = of.size;
  const Floats from = random.eighths(rows * kApart), to = random.eighths(rows * kApart);
  Floats vectors = random.eighths(rows * lanes + 3), want = vectors, got = to, joined = to;
  for (Index i = 0; i < rows * lanes; ++i) {
    want[sizeOf(i)] = i % lanes < columns ? from[sizeOf(i / lanes * kApart + i % lanes)] : 0.0F;
    if (i % lanes < columns) joined[sizeOf(i / lanes * kApart + i % lanes)] = want[sizeOf(i)];
  }
  of.kernels.readVectors({from.data(), kApart}, rows, columns, {vectors.data(), lanes});
  expectSame(of, vectors, want);
  of.kernels.writeVectors({vectors.data(), lanes}, rows, columns, {got.data(), kApart});
  of.kernels.finishStream();
  expectSame(of, got, joined);
}

// As the products with taps of weights of 1, and with their changes by an eighth of a step.
void tapsArePicked(const Case& of, Random& random) {
  const Index lanes = of.kernels.lanes, taps = of.size % (lanes - 1) + 2, targets = of.size % lanes + 1;
  const Floats sums = random.eighths(taps * lanes), weights = random.eighths(targets), ones(sizeOf(targets), 1.0F);
  Floats delays, later;
  for (Index i = 0; i < targets; ++i) {
    delays.push_back(static_cast<float>(random.below(8 * (taps - 1))) / 8.0F);
    later.push_back(delays.back() + 0.125F);
  }
  const auto dots = [&](const Floats& at) {
    Floats shares(sums.size()), out(sizeOf(targets));
    of.kernels.spreadShares(ones.data(), at.data(), targets, taps, shares.data());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (i % sizeOf(lanes) < out.size()) out[i % sizeOf(lanes)] += shares[i] * sums[i];
    }
    return out;
  };
  const Floats want = dots(delays);
  Floats want_delays = dots(later), got(sizeOf(targets)), got_delays = got;
  for (std::size_t i = 0; i < got.size(); ++i) want_delays[i] = 8.0F * weights[i] * (want_delays[i] - want[i]);
  of.kernels.pickTaps(sums.data(), taps, weights.data(), delays.data(), targets, got.data(), got_delays.data());
  expectSame(of, got, want);
  expectSame(of, got_delays, want_delays);
}

}  // namespace

int main() {
  forEachSet(sharesAreSpread);
  forEachSet(tapsAreAddedSummedAndDotted);
  forEachSet(sharesAreCollected);
  forEachSet(stepsAreCollected);
  forEachSet(vectorsAreReadAndWritten);
  forEachSet(tapsArePicked);
  return check::failures;
}
