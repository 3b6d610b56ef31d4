#include "products.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
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

bool anyDense(const SpikeRow* rows, Index count) {
  return std::any_of(rows, rows + count, [](const SpikeRow& row) { return row.is_dense; });
}

// The rows of one block as lists, those that were too long for one included.
class ListedBlock {
 public:
  ListedBlock(const SpikeRows& spikes, Index first, Index rows, const float* dense) {
    ids_.resize(static_cast<std::size_t>(rows * spikes.width()));
    values_.resize(ids_.size());
    for (Index r = 0; r < rows; ++r) {
      const auto start = static_cast<std::size_t>(r * spikes.width());
      std::uint32_t count = 0;
      for (Index i = 0; i < spikes.width(); ++i) {
        const float value = dense[r * spikes.width() + i];
        if (value == 0.0F) continue;
        ids_[start + count] = static_cast<std::uint32_t>(i);
        values_[start + count++] = value;
      }
      const SpikeRow& listed = *spikes.row(first + r);
      rows_[r] = listed.is_dense ? SpikeRow{&ids_[start], &values_[start], count, false} : listed;
    }
  }

  const SpikeRow* rows() const { return rows_; }

 private:
  std::vector<std::uint32_t> ids_;
  std::vector<float> values_;
  SpikeRow rows_[kBlockRows];
};

bool allFinite(Rows<const float> rows, Index count, Index columns) {
  for (Index r = 0; r < count; ++r) {
    for (Index c = 0; c < columns; ++c) {
      if (!std::isfinite(rows.row(r)[c])) return false;
    }
  }
  return true;
}

std::vector<float> copyOf(Rows<const float> rows, Index count, Index columns) {
  std::vector<float> copy(static_cast<std::size_t>(count * columns));
  for (Index r = 0; r < count; ++r) std::copy_n(rows.row(r), columns, copy.data() + r * columns);
  return copy;
}

// Scratch for the dense form of a block, kept from block to block by each thread.
float* denseBlock(Index width) {
  thread_local std::vector<float> memory;
  memory.resize(std::max(memory.size(), static_cast<std::size_t>(kBlockRows * width)));
  return memory.data();
}

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
  for (Index r = 0; r < rows; r += kBlockRows) {
    const Index first = first_row + r, count = std::min(kBlockRows, rows - r);
    const Rows<float> own_out{out.row(r), out.stride};
    const Rows<const float> own_start{start.data == nullptr ? nullptr : start.row(r), start.stride};
    if (!anyDense(spikes.row(first), count)) {
      kernels().sumRows(spikes.row(first), count, weights, columns, own_start, own_out);
      continue;
    }
    float* dense = denseBlock(spikes.width());
    spikes.expand(first, count, dense);
    // A start that is `out` itself would be lost if the sums had to be done again.
    const std::vector<float> kept = start.data == out.data ? copyOf(own_start, count, columns) : std::vector<float>();
    const Rows<const float> block{dense, spikes.width()};
    if (kernels().multiplyRows(block, count, spikes.width(), weights, columns, own_start, own_out)) continue;
    // A product of 0 with a weight that is not finite may have entered the sums.
    const Rows<const float> again = kept.empty() ? own_start : Rows<const float>{kept.data(), columns};
    kernels().sumRows(ListedBlock(spikes, first, count, dense).rows(), count, weights, columns, again, own_out);
  }
}

void accumulate(const SpikeRows& spikes, Index first_row, Index rows, Rows<float> weights, Index columns,
                Rows<const float> g) {
  for (Index start = 0; start < rows; start += kBlockRows) {
    const Index first = first_row + start, count = std::min(kBlockRows, rows - start);
    const Rows<const float> own_g{g.row(start), g.stride};
    if (!anyDense(spikes.row(first), count)) {
      kernels().addRows(spikes.row(first), count, weights, columns, own_g);
      continue;
    }
    float* dense = denseBlock(spikes.width());
    spikes.expand(first, count, dense);
    if (allFinite(own_g, count, columns)) {
      kernels().addProducts({dense, spikes.width()}, count, spikes.width(), weights, columns, own_g);
    } else {
      kernels().addRows(ListedBlock(spikes, first, count, dense).rows(), count, weights, columns, own_g);
    }
  }
}

}  // namespace snnjax
