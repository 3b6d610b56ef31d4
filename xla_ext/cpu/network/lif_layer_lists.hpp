// The lists of a layer's rows: which of their neurons are kept, and the membranes that are recorded of these.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

#include "cpu/lists/blocks.hpp"
#include "lif_layer.hpp"

namespace snnjax {

// The membranes above the second threshold, which lists are cut by. Few are above it: they are kept one after another,
// in the order in which a tile of columns of a block of samples computes them, so that little memory is touched.
class ReachedMembranes {
 public:
  ReachedMembranes() = default;
  // A tile is one of whole words, unless it has all neurons.
  ReachedMembranes(const Extent& extent, Index neurons, Index tile)
      : batch_(extent.batch),
        rows_(extent.rows()),
        neurons_(neurons),
        tile_(std::min(tile, roundUp(neurons, 64))),
        tiles_((neurons + tile_ - 1) / tile_),
        blocks_((batch_ + kForwardBlock - 1) / kForwardBlock),
        starts_(tiles_ * rows_),
        kept_(static_cast<std::size_t>(tiles_ * blocks_)) {}

  explicit operator bool() const { return static_cast<bool>(starts_); }

  // Those of a tile's neurons: `reached`, from its first one on, whose membranes begin at `v`. The rows of a block of
  // samples are put by one thread.
  void put(Index row, Index first, Index neurons, const std::uint64_t* reached, const float* v) {
    const Index tile = first / tile_;
    Blocks<float>& kept = kept_[static_cast<std::size_t>(tile * blocks_ + row % batch_ / kForwardBlock)];
    float* const to = kept.room(neurons + kListSlack);
    starts_[tile * rows_ + row] = to;
    kernels().compressMarked(reached, neurons, v, to);
    kept.use(kernels().countMarks(reached, wordsOf(neurons)));
  }

  // Those of a row at the places of their neurons, 0 in between.
  void expand(Index row, const std::uint64_t* reached, float* out) const {
    for (Index tile = 0; tile < tiles_; ++tile) {
      const Index first = tile * tile_, neurons = std::min(tile_, neurons_ - first);
      kernels().expandMarked({reached + first / 64, at(row, tile), neurons}, neurons, out + first);
    }
  }

  // Those of a row side by side; up to kListSlack numbers are written behind them.
  void join(Index row, const std::uint64_t* reached, float* out) const {
    constexpr Index kAtOnce = 16;  // few are reached
    for (Index tile = 0; tile < tiles_; ++tile) {
      const Index first = tile * tile_, neurons = std::min(tile_, neurons_ - first);
      const Index count = kernels().countMarks(reached + first / 64, wordsOf(neurons));
      for (Index i = 0; i < count; i += kAtOnce) std::memcpy(out + i, at(row, tile) + i, kAtOnce * sizeof(float));
      out += count;
    }
  }

  // Prefetches a row: its tiles were computed by several threads.
  void fetch(Index row) const {
    for (Index tile = 0; tile < tiles_; ++tile) prefetch(at(row, tile));
  }

 private:
  const float* at(Index row, Index tile) const { return starts_[tile * rows_ + row]; }

  Index batch_ = 0, rows_ = 0, neurons_ = 0, tile_ = 0, tiles_ = 0, blocks_ = 0;
  Borrowed<const float*> starts_;    // [tiles, rows], in what is kept
  std::vector<Blocks<float>> kept_;  // [tiles, blocks]
};

// Records the membranes of the listed neurons of a row, if they are asked for.
class ListedRecord {
 public:
  explicit ListedRecord(const LayerForward& pass)
      : pass_(pass),
        capacity_(pass.listed_record ? pass.layer.capacity : 0),
        row_(static_cast<std::size_t>(capacity_ > 0 ? std::min(capacity_, neurons()) + kListSlack : 0)) {
    if (!pass.listed_record.is_bfloat16) return;
    const float* threshold = pass.layer.constants.from(0).threshold;
    origins_.resize(static_cast<std::size_t>(neurons()));
    std::transform(threshold, threshold + neurons(), origins_.begin(), originOf);
    own_origins_.resize(row_.size());
  }

  // The `count` marked ones of all membranes of the row.
  void write(Index row, const std::uint64_t* listed, Index count, const float* v) {
    if (capacity_ == 0) return;
    kernels().compressMarked(listed, neurons(), v, row_.data());
    finish(row, listed, count);
  }

  // Those above the second threshold, all of which are listed.
  void write(Index row, const std::uint64_t* listed, Index count, const ReachedMembranes& reached) {
    if (capacity_ == 0) return;
    reached.join(row, listed, row_.data());
    finish(row, listed, count);
  }

  // Of a row after the end of its sample.
  void writeNone(Index row) {
    if (capacity_ > 0) finish(row, nullptr, 0);
  }

 private:
  Index neurons() const { return pass_.layer.neurons(); }

  void finish(Index row, const std::uint64_t* listed, Index count) {
    if (count > 0 && !origins_.empty()) {
      kernels().compressMarked(listed, neurons(), origins_.data(), own_origins_.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) row_[i] -= own_origins_[i];
    }
    const Index first = row * capacity_;
    pass_.listed_record.write(first, count, row_.data());
    pass_.listed_record.fill(first + count, capacity_ - count, 0.0F);
  }

  const LayerForward& pass_;
  const Index capacity_;  // 0: nothing is recorded
  std::vector<float> row_;
  std::vector<float> origins_, own_origins_;  // of a record in bfloat16: of all neurons, and of those listed
};

// Cuts whole rows of spikes and of neurons near the threshold to lists, one thread's.
class RowLister {
 public:
  // `reached`: where the membranes are, unless each row brings its own.
  RowLister(LayerForward& pass, const ReachedMembranes& reached)
      : pass_(pass),
        reached_(reached),
        words_(pass.spikes.words()),
        selection_(pass.layer.capacity, words_),
        record_(pass),
        listed_(static_cast<std::size_t>(words_)),
        v_(static_cast<std::size_t>(reached ? words_ * 64 : 0)) {}

  // `v`: all membranes of the row, or nullptr.
  void list(Index row, const float* v) {
    if (!pass_.layer.hasLists() && pass_.num_spikes == nullptr) return;
    const Index sample = row % pass_.extent.batch;
    if (row / pass_.extent.batch >= pass_.extent.ends[sample]) return record_.writeNone(row);
    const Index spiking = kernels().countMarks(pass_.spikes.row(row), words_);
    if (pass_.num_spikes != nullptr) pass_.num_spikes[row] = static_cast<std::int32_t>(spiking);
    if (!pass_.layer.hasLists()) return;
    const Index dropped = spiking - pass_.layer.capacity;
    if (pass_.dropped != nullptr && dropped > 0) {  // by several threads: they have other steps of the sample
      std::atomic_ref(pass_.dropped[sample]).fetch_add(static_cast<std::int32_t>(dropped), std::memory_order_relaxed);
    }
    cut(row, {spiking, kernels().countMarks(pass_.near.row(row), words_)}, v);
  }

 private:
  void cut(Index row, const Selection::Counts& counts, const float* v) {
    mark(row);
    const Index count = counts.spikes + counts.near;
    if (count <= pass_.layer.capacity) {
      v == nullptr ? record_.write(row, listed_.data(), count, reached_) : record_.write(row, listed_.data(), count, v);
      return;
    }
    if (v == nullptr) {
      reached_.expand(row, listed_.data(), v_.data());
      v = v_.data();
    }
    selection_.cut(counts, pass_.spikes.row(row), pass_.near.row(row), v);
    mark(row);
    record_.write(row, listed_.data(), pass_.layer.capacity, v);
  }

  // What is now listed of a row.
  void mark(Index row) {
    const std::uint64_t* spikes = pass_.spikes.row(row);
    std::transform(spikes, spikes + words_, pass_.near.row(row), listed_.begin(), std::bit_or<>());
  }

  LayerForward& pass_;
  const ReachedMembranes& reached_;
  const Index words_;
  Selection selection_;
  ListedRecord record_;
  std::vector<std::uint64_t> listed_;
  std::vector<float> v_;  // of a row that is cut
};

}  // namespace snnjax
