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

std::vector<float> copyOf(Rows<const float> rows, Index count, Index columns) {
  std::vector<float> copy(static_cast<std::size_t>(count * columns));
  for (Index r = 0; r < count; ++r) std::copy_n(rows.row(r), columns, copy.data() + r * columns);
  return copy;
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
    memory_ = Borrowed<float>(size_);
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
              Rows<const float> start, Rows<float> out, std::vector<float>& scratch) {
  const SpikeRow* listed = spikes.row(first_row);
  if (std::none_of(listed, listed + rows, [](const SpikeRow& row) { return row.is_dense; })) {
    kernels().sumRows(listed, rows, weights, columns, start, out);
    return;
  }
  // A start that is `out` itself would be lost if the sums had to be done again.
  const std::vector<float> kept = start.data == out.data ? copyOf(start, rows, columns) : std::vector<float>();
  const Rows<const float> dense = spikes.dense(first_row, rows, scratch);
  if (kernels().multiplyRows(dense, rows, spikes.width(), weights, columns, start, out)) return;
  // A product of 0 with a weight that is not finite may have entered the sums.
  const Rows<const float> again = kept.empty() ? start : Rows<const float>{kept.data(), columns};
  for (Index r = 0; r < rows; ++r) {
    const ListedRow row(spikes, first_row + r);
    const Rows<const float> own_start{again.data == nullptr ? nullptr : again.row(r), 0};
    kernels().sumRows(&row.row(), 1, weights, columns, own_start, {out.row(r), 0});
  }
}

}  // namespace snnjax
