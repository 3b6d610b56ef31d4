#include "products.hpp"

#include <unistd.h>

#include <algorithm>
#include <vector>

namespace snnjax {
namespace {

constexpr Index kWord = 64;     // neurons of one word of spike bits
constexpr Index kWidest = 128;  // columns; wider tiles no longer fit into registers

Index secondLevelCache() {  // bytes of one core's cache that a tile may take
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  constexpr long kUsual = 1 << 20;
  return static_cast<Index>(bytes > 0 ? bytes : kUsual) * 3 / 4;
}

constexpr Index kDenseRows = 8;  // that are multiplied at once

// The dense rows among those of a product, gathered to be multiplied together.
class DenseRows {
 public:
  DenseRows(const SpikeRows& spikes, Rows<const float> weights, Index columns, Rows<const float> start,
            Rows<float> out)
      : spikes_(spikes),
        weights_(weights),
        columns_(columns),
        start_(start),
        out_(out),
        dense_(static_cast<std::size_t>(kDenseRows * spikes.width())),
        sums_(static_cast<std::size_t>(kDenseRows * columns)) {}

  // Row `index` of the spikes makes row r of the result.
  void add(Index index, Index r) {
    spikes_.expand(index, 1, dense_.data() + count_ * spikes_.width());
    float* sums = sums_.data() + count_ * columns_;
    if (start_.data == nullptr) {
      std::fill_n(sums, columns_, 0.0F);
    } else {
      std::copy_n(start_.row(r), columns_, sums);
    }
    indices_[count_] = index;
    rows_[count_++] = r;
    if (count_ == kDenseRows) flush();
  }

  void flush() {
    if (count_ == 0) return;
    const Index width = spikes_.width();
    const Rows<float> sums{sums_.data(), columns_};
    const bool finite = kernels().multiplyRows({dense_.data(), width}, count_, width, weights_, columns_,
                                               {sums.data, sums.stride}, sums);
    for (Index i = 0; i < count_; ++i) {
      if (finite) {
        std::copy_n(sums.row(i), columns_, out_.row(rows_[i]));
      } else {  // a product of 0 with a weight that is not finite may have entered the sums
        const ListedRow listed(spikes_, indices_[i]);
        const Rows<const float> start{start_.data == nullptr ? nullptr : start_.row(rows_[i]), 0};
        kernels().sumRows(&listed.row(), 1, weights_, columns_, start, {out_.row(rows_[i]), 0});
      }
    }
    count_ = 0;
  }

 private:
  const SpikeRows& spikes_;
  Rows<const float> weights_;
  Index columns_;
  Rows<const float> start_;
  Rows<float> out_;
  std::vector<float> dense_, sums_;
  Index indices_[kDenseRows], rows_[kDenseRows], count_ = 0;
};

}  // namespace

Index columnsOfTile(Index neurons, Index rows_of_weights) {
  const Index lanes = kernels().lanes;
  if (neurons <= kWord) return std::max(roundUp(neurons, lanes), lanes);
  static const Index cache = secondLevelCache();
  const Index fitting = cache / (std::max<Index>(rows_of_weights, 1) * static_cast<Index>(sizeof(float)));
  // At least two tiles, so that two threads have work.
  return fitting >= kWidest && neurons > kWidest ? kWidest : kWord;
}

void PackedWeights::resize(Index rows, Index columns) {
  columns_ = columns;
  if (rows * columns > size_) {
    size_ = rows * columns;
    memory_ = Buffer<float>(size_);
  }
}

void PackedWeights::clear(Index rows) { std::fill_n(memory_.data(), rows * columns_, 0.0F); }

void packColumns(const Weights& weights, Index first, Index columns, PackedWeights& out) {
  for (Index k = 0; k < weights.inputs; ++k) {
    float* row = out.rows().row(k);
    weights.numbers.read(k * weights.outputs + first, columns, row);
    std::fill(row + columns, row + out.columns(), 0.0F);
  }
}

void packTransposed(const Weights& weights, Index first, Index rows, const float* scale, PackedWeights& out) {
  constexpr Index kPatch = 16;  // rows read together: they fill whole cache lines of the result
  std::vector<float> patch(static_cast<std::size_t>(kPatch * weights.outputs));
  for (Index start = 0; start < out.columns(); start += kPatch) {
    const Index there = std::clamp<Index>(rows - start, 0, kPatch), width = std::min(kPatch, out.columns() - start);
    if (there > 0) weights.numbers.read((first + start) * weights.outputs, there * weights.outputs, patch.data());
    for (Index n = 0; n < weights.outputs; ++n) {
      float* to = out.rows().row(n) + start;
      for (Index k = 0; k < there; ++k) {
        to[k] = scale[n] * patch[static_cast<std::size_t>(k * weights.outputs + n)];
      }
      std::fill(to + there, to + width, 0.0F);
    }
  }
}

void unpackColumns(const PackedWeights& from, Index first, Index columns, const Weights& weights) {
  for (Index k = 0; k < weights.inputs; ++k) {
    weights.numbers.write(k * weights.outputs + first, columns, from.rows().row(k));
  }
}

void multiply(const SpikeRows& spikes, Index first_row, Index rows, Rows<const float> weights, Index columns,
              Rows<const float> start, Rows<float> out) {
  const SpikeRow* listed = spikes.row(first_row);
  const auto isDense = [](const SpikeRow& row) { return row.is_dense; };
  if (std::none_of(listed, listed + rows, isDense)) {
    kernels().sumRows(listed, rows, weights, columns, start, out);
    return;
  }
  DenseRows dense(spikes, weights, columns, start, out);
  for (Index r = 0; r < rows; ++r) {
    if (listed[r].is_dense) {
      dense.add(first_row + r, r);
      continue;
    }
    const Rows<const float> own_start{start.data == nullptr ? nullptr : start.row(r), 0};
    kernels().sumRows(listed + r, 1, weights, columns, own_start, {out.row(r), 0});
  }
  dense.flush();
}

}  // namespace snnjax
