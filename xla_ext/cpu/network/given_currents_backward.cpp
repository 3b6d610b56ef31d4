#include "given_currents_backward.hpp"

#include <algorithm>
#include <vector>

#include "lif_layer_record.hpp"

namespace snnjax {
namespace {

// Rows that are summed in float32 before their sums are added in float64.
constexpr Index kRowsAtOnce = 64;

bool hasAny(const GLIFConstants<WritableNumbers>& constants) {
  bool has_any = false;
  for (unsigned i = 0; i < kGlifConstants; ++i) has_any = has_any || constants.at(i);
  return has_any;
}

// Some columns of all samples.
class Columns {
 public:
  Columns(const LayerBackward& pass, Sums& sums, Index first, Index columns)
      : pass_(pass),
        sums_(sums),
        first_(first),
        columns_(columns),
        neurons_(pass.layer.neurons()),
        g_spikes_(static_cast<std::size_t>(pass.g_lists != nullptr ? pass.extent.steps * columns : columns)),
        float_sums_(static_cast<std::size_t>(sums.kinds() * columns)),
        v_(sizeOf(pass.first.v)),
        g_counts_(sizeOf(pass.g_counts)),
        g_last_(sizeOf(pass.g_last.v)) {
    const float *gain = pass.layer.constants.outerGain() + first, *factor = own(pass.layer.constants.factor());
    scale_.assign(gain, gain + columns);
    for (std::size_t c = 0; factor != nullptr && c < scale_.size(); ++c) scale_[c] *= factor[c];
  }

  void run() {
    Index summed = 0;
    for (Index sample = 0; sample < pass_.extent.batch; ++sample) {
      stepBack(sample);
      summed += pass_.extent.steps;
      if (summed + pass_.extent.steps <= kRowsAtOnce && sample + 1 < pass_.extent.batch) continue;
      addSums();
      summed = 0;
    }
  }

 private:
  std::size_t sizeOf(const Numbers& numbers) const { return static_cast<std::size_t>(numbers ? columns_ : 0); }
  const float* own(const float* of_all) const { return of_all == nullptr ? nullptr : of_all + first_; }
  // The sample's part of an array [batch, neurons]; nullptr if it is absent.
  const float* read(const Numbers& from, Index sample, std::vector<float>& to) const {
    if (!from) return nullptr;
    if (!from.is_bfloat16) return from.float32() + sample * neurons_ + first_;
    from.read(sample * neurons_ + first_, columns_, to.data());
    return to.data();
  }
  float* sumOf(unsigned kind) {
    const Index place = sums_.place(kind);
    return place < 0 ? nullptr : float_sums_.data() + place * columns_;
  }

  void stepBack(Index sample) {
    const Layer& layer = pass_.layer;
    const Index of_step = pass_.extent.batch * neurons_, start = sample * neurons_ + first_;
    const bool masks = pass_.listed && pass_.g_lists == nullptr;
    kernels().stepsBackward({
        .steps = pass_.extent.steps,
        .columns = columns_,
        .constants = layer.constants.from(first_),
        .reset = layer.reset,
        .detach_reset = layer.detach_reset,
        .surrogate = layer.surrogate,
        .end = pass_.extent.ends[sample],
        .current = {pass_.currents.float32() + start, of_step},
        .next = sample + 1 < pass_.extent.batch ? neurons_ : 0,
        .factor = own(layer.constants.factor()),
        .term = own(layer.constants.bias()),
        .first_v = read(pass_.first.v, sample, v_),
        .g_spikes = gather(sample),
        .listed = {masks ? pass_.listed.row(sample) + first_ / 64 : nullptr, pass_.extent.batch * pass_.listed.words()},
        .g_counts = read(pass_.g_counts, sample, g_counts_),
        .g_last = read(pass_.g_last.v, sample, g_last_),
        .scale = scale_.data(),
        .g_current = {pass_.g_currents.float32() + start, of_step},
        .sum_current = sumOf(kSumCurrent),
        .sum_given = sumOf(kSumGiven),
    });
  }

  // What reaches the sample's spikes, of all steps.
  Rows<const float> gather(Index sample) {
    if (pass_.g_spikes) {
      const Index batch = pass_.extent.batch;
      return {pass_.g_spikes.float32() + sample * neurons_ + first_, batch * neurons_};
    }
    if (pass_.g_lists == nullptr) return {g_spikes_.data(), 0};  // nothing
    for (Index step = 0; step < pass_.extent.steps; ++step) {
      float* const to = g_spikes_.data() + step * columns_;
      pass_.g_lists->expand(step * pass_.extent.batch + sample, first_, columns_, scratch_, to);
    }
    return {g_spikes_.data(), columns_};
  }

  void addSums() {
    for (const unsigned kind : {kSumCurrent, kSumGiven}) {
      float* const from = sumOf(kind);
      if (from == nullptr) continue;
      double* const to = sums_.of(0, sums_.place(kind)) + first_;
      for (Index c = 0; c < columns_; ++c) to[c] += double{from[c]};
      std::fill_n(from, columns_, 0.0F);
    }
  }

  const LayerBackward& pass_;
  Sums& sums_;
  const Index first_, columns_, neurons_;
  std::vector<float> g_spikes_;    // [steps, columns]
  std::vector<float> float_sums_;  // [kinds, columns]
  std::vector<float> v_, g_counts_, g_last_, scale_;
  ListedCotangents::Scratch scratch_;
};

}  // namespace

bool takesAllSteps(const LayerBackward& pass) {
  const auto bytes_of_vector = static_cast<std::uintptr_t>(kernels().lanes) * sizeof(float);
  const bool reads_in_place = areReadInPlace(pass.currents, pass.layer.neurons()) && !pass.g_spikes.is_bfloat16 &&
                              pass.g_currents && !pass.g_currents.is_bfloat16 &&
                              reinterpret_cast<std::uintptr_t>(pass.g_currents.data) % bytes_of_vector == 0;
  const bool is_plain = !pass.first.w && !pass.first.remaining && !pass.g_first.v && !hasAny(pass.g_constants);
  return computesAgain(pass) && reads_in_place && is_plain && takesStepsAtOnce(pass.extent.steps);
}

void runAllSteps(const LayerBackward& pass, Sums& sums, const Threads& threads) {
  constexpr Index kColumns = 1024;  // the cotangents of their spikes stay in the first-level cache
  const Index neurons = pass.layer.neurons(), tile = evenTile(neurons, 64, kColumns);
  threads.run((neurons + tile - 1) / tile, [&](Index task, Index) {
    Columns(pass, sums, task * tile, std::min(tile, neurons - task * tile)).run();
  });
}

}  // namespace snnjax
