#include "products.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace snnjax {
namespace {

constexpr Index kWord = 64;     // neurons of one word of spike bits
constexpr Index kWidest = 128;  // columns; wider tiles no longer fit into registers

// A gradient above this size has left the second-level cache by the time the optimiser reads it.
constexpr Index kStreamedBytes = Index{1} << 20;

constexpr Index kDenseRows = 32;  // that are multiplied at once: each pass reads and writes the whole gradient

std::vector<float> copyOf(Rows<const float> rows, Index count, Index columns) {
  std::vector<float> copy(static_cast<std::size_t>(count * columns));
  for (Index r = 0; r < count; ++r) std::copy_n(rows.row(r), columns, copy.data() + r * columns);
  return copy;
}

// In panels, out[n][k] = scale[n] * weights[first + k][n] for `rows` rows.
void packPanels(const Weights& weights, Index first, Index rows, const float* scale, PackedWeights& out) {
  const Index panel = 2 * kernels().lanes, columns = out.columns();
  std::vector<float> patch(static_cast<std::size_t>(panel * weights.outputs));
  for (Index start = 0; start < columns;) {
    const Index width = columns - start >= panel ? panel : kernels().lanes;
    const Index there = std::clamp<Index>(rows - start, 0, width);
    if (there > 0) weights.numbers.read((first + start) * weights.outputs, there * weights.outputs, patch.data());
    float* to = out.rows().data + start * weights.outputs;
    for (Index n = 0; n < weights.outputs; ++n, to += width) {
      for (Index k = 0; k < there; ++k) {
        to[k] = scale[n] * patch[static_cast<std::size_t>(k * weights.outputs + n)];
      }
      std::fill(to + there, to + width, 0.0F);
    }
    start += width;
  }
}

}  // namespace

Index bytesOfTile() {
  static const Index bytes = static_cast<Index>(secondLevelCache());
  constexpr Index kUsual = 1 << 20;
  return (bytes > 0 ? bytes : kUsual) * 3 / 4;
}

Index columnsOfTile(Index neurons, Index rows_of_weights) {
  const Index lanes = kernels().lanes;
  if (neurons <= kWord) return std::max(roundUp(neurons, lanes), lanes);
  const Index fitting = bytesOfTile() / (std::max<Index>(rows_of_weights, 1) * static_cast<Index>(sizeof(float)));
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
    weights.read(k * weights.outputs + first, columns, row);
    std::fill(row + columns, row + out.columns(), 0.0F);
  }
}

void PanelProduct::pack(const Weights& weights, Index first, Index rows, Index width, const float* scale, bool rounds) {
  // Shorter sums are over before tiles of a matrix unit, 32 numbers deep, would pay.
  constexpr Index kShortest = 32;
  depth_ = weights.outputs;
  width_ = width;
  parts_ = rounds ? 1 : kernels().parts_of_float;
  if (depth_ < kShortest && !rounds) parts_ = 0;
  panels_.resize(depth_, width);
  packPanels(weights, first, rows, scale, panels_);
  if (parts_ == 0) return;
  split_.resize(width, kernels().splitLength(depth_, parts_));
  kernels().splitPanels(std::as_const(panels_).rows().data, depth_, width, parts_, split_.rows().data);
}

void PanelProduct::multiply(const RowBlocks& g, Rows<float> out, PackedWeights& scratch) const {
  if (parts_ > 0) {
    // An odd number of cache lines, so that rows do not compete for a few sets.
    constexpr Index kFloatsOfLine = kCacheLine / sizeof(float);
    const Index lines = roundUp(kernels().splitLength(depth_, parts_), kFloatsOfLine) / kFloatsOfLine;
    scratch.resize(g.count(), (lines | 1) * kFloatsOfLine);
    kernels().splitRows(g, depth_, parts_, scratch.rows());
    const bool is_done = kernels().multiplySplit(std::as_const(scratch).rows(), g.count(), depth_, parts_,
                                                 split_.rows().data, width_, out);
    if (is_done || parts_ == 1) return;
  }
  kernels().multiplyPanels(g, depth_, panels_.rows().data, width_, {nullptr, 0}, out);
}

void packRows(const Weights& weights, Index first, Index rows, const float* scale, PackedWeights& out) {
  out.resize(rows, weights.outputs);
  for (Index k = 0; k < rows; ++k) {
    float* row = out.rows().row(k);
    weights.numbers.read((first + k) * weights.outputs, weights.outputs, row);
    for (Index n = 0; n < weights.outputs; ++n) row[n] *= scale[n];
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

void WeightTile::take(const Weights& weights, Index first, Index columns, Index width, double uses) {
  weights_ = weights;
  first_ = first;
  columns_ = read_ = columns;
  width_ = width;
  stride_ = weights.outputs;
  is_packed_ = has_floats_ = false;
  left_ = kUsesToPack * static_cast<double>(weights.inputs);
  if (weights.isInt8()) {
    scale_.assign(static_cast<std::size_t>(width), 0.0F);
    weights.scale.read(first, columns, scale_.data());
    data_ = weights.int8() + first;
  } else {
    data_ = weights.numbers.from(first).data;
  }
  if (uses >= kUsesToPack) pack();
}

void WeightTile::count(const SpikeRow* listed, Index rows) {
  for (Index r = 0; r < rows; ++r) left_ -= listed[r].count;
  if (left_ < 0.0) pack();
}

void WeightTile::pack() {
  if (weights_.isInt8()) {
    bytes_ = Borrowed<std::int8_t>(weights_.inputs * width_);
    packAsTheyAre(weights_, first_, columns_, width_, bytes_.data());
    data_ = bytes_.data();
  } else if (weights_.numbers.is_bfloat16) {
    halves_ = Borrowed<std::uint16_t>(weights_.inputs * width_);
    packAsTheyAre(weights_, first_, columns_, width_, halves_.data());
    data_ = halves_.data();
  } else {
    packFloats();
    data_ = std::as_const(floats_).rows().data;
  }
  read_ = stride_ = width_;
  is_packed_ = true;
}

void WeightTile::packFloats() {
  if (has_floats_) return;
  floats_.resize(weights_.inputs, width_);
  packColumns(weights_, first_, columns_, floats_);
  has_floats_ = true;
}

void WeightTile::multiplyDense(const SpikeRows& spikes, Index first_row, Index rows, Rows<const float> start,
                               Rows<float> out, std::vector<float>& scratch) {
  packFloats();
  if (weights_.isInt8()) return multiplyScaled(spikes, first_row, rows, start, out, scratch);
  snnjax::multiply(spikes, first_row, rows, std::as_const(floats_).rows(), width_, start, out, scratch);
}

// The sums are scaled once, and then added to the start.
void WeightTile::multiplyScaled(const SpikeRows& spikes, Index first_row, Index rows, Rows<const float> start,
                                Rows<float> out, std::vector<float>& scratch) {
  sums_.resize(std::max(sums_.size(), static_cast<std::size_t>(rows * width_)));
  snnjax::multiply(spikes, first_row, rows, std::as_const(floats_).rows(), width_, {nullptr, 0}, {sums_.data(), width_},
                   scratch);
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < width_; ++c) {
      const float scaled = scale_[static_cast<std::size_t>(c)] * sums_[static_cast<std::size_t>(r * width_ + c)];
      out.row(r)[c] = start.data == nullptr ? scaled : start.row(r)[c] + scaled;
    }
  }
}

// visit(spikes, their row, their row of g) for all rows of a chunk.
template <typename Visit>
void TransposedSpikes::visitRows(Index index, Visit visit) const {
  const Chunk chunk = chunking_.at(index);
  const Index stride = layout_ == Layout::kPacked ? chunk.samples : chunking_.extent.batch;
  for (Index step = 0; step < chunk.steps; ++step) {
    const Index first = chunk.firstRow(chunking_.extent) + step * chunking_.extent.batch;
    for (Index sample = 0; sample < chunk.samples; ++sample) {
      visit(*spikes_.row(first + sample), first + sample, static_cast<std::uint32_t>(step * stride + sample));
    }
  }
}

TransposedSpikes::TransposedSpikes(const SpikeLists& spikes, const Chunking& chunking, Layout layout,
                                   const Threads& threads)
    : spikes_(spikes), chunking_(chunking), layout_(layout), chunks_(static_cast<std::size_t>(chunking.count())) {
  threads.run(chunking.count(), [&](Index chunk, Index) { fill(chunk); });
}

// A counting sort by neuron.
void TransposedSpikes::fill(Index index) {
  Lists& lists = chunks_[static_cast<std::size_t>(index)];
  std::vector<std::uint32_t> next(static_cast<std::size_t>(spikes_.width()) + 1, 0);
  Index entries = 0;
  bool all_ones = true;
  visitRows(index, [&](const SpikeRow& row, Index spikes, std::uint32_t r) {
    if (row.is_dense) {
      lists.dense_rows.push_back(r);
      lists.dense_spikes.push_back(spikes);
      return;
    }
    for (std::uint32_t k = 0; k < row.count; ++k) ++next[row.ids[k] + 1];
    entries += row.count;
    all_ones = all_ones && (row.values == nullptr || row.count == 0);
  });
  require32Bits(entries);
  lists.rows = Borrowed<std::uint32_t>(entries);
  if (!all_ones) lists.values = Borrowed<float>(entries);
  std::uint32_t* rows = lists.rows.data();
  float* values = lists.values.data();
  lists.neurons.resize(static_cast<std::size_t>(spikes_.width()));
  for (std::size_t k = 0; k < lists.neurons.size(); ++k) {
    lists.neurons[k] = {rows + next[k], values == nullptr ? nullptr : values + next[k], next[k + 1], false};
    next[k + 1] += next[k];
  }
  visitRows(index, [&](const SpikeRow& row, Index, std::uint32_t r) {
    for (std::uint32_t k = 0; !row.is_dense && k < row.count; ++k) {
      const std::uint32_t place = next[row.ids[k]]++;
      rows[place] = r;
      if (values != nullptr) values[place] = row.values == nullptr ? 1.0F : row.values[k];
    }
  });
}

void TransposedSpikes::accumulate(Index chunk, bool is_first, Rows<float> weights, Index columns,
                                  Rows<const float> g) const {
  const Lists& lists = chunks_[static_cast<std::size_t>(chunk)];
  const Rows<const float> start{is_first ? nullptr : weights.data, weights.stride};
  kernels().sumRows(lists.neurons.data(), spikes_.width(), g, columns, start, weights);
  if (!lists.dense_rows.empty()) addDense(lists, weights, columns, g);
}

// Dense rows are usually not adjacent, so they are gathered, and so are their rows of g.
void TransposedSpikes::addDense(const Lists& lists, Rows<float> weights, Index columns, Rows<const float> g) const {
  const Index width = spikes_.width();
  std::vector<float> dense(static_cast<std::size_t>(kDenseRows * width)), scratch;
  std::vector<float> own_g(static_cast<std::size_t>(kDenseRows * columns));
  Index count = 0;
  const auto flush = [&] {
    kernels().addProducts({dense.data(), width}, count, width, weights, columns, {own_g.data(), columns});
    count = 0;
  };
  for (std::size_t i = 0; i < lists.dense_rows.size(); ++i) {
    const float* from = g.row(lists.dense_rows[i]);
    if (!areFinite(from, columns)) {  // 0 times it would not be 0
      const ListedRow listed(spikes_, lists.dense_spikes[i]);
      kernels().addRows(&listed.row(), 1, weights, columns, {from, 0});
      continue;
    }
    std::copy_n(spikes_.dense(lists.dense_spikes[i], 1, scratch).data, width, dense.data() + count * width);
    std::copy_n(from, columns, own_g.data() + count * columns);
    if (++count == kDenseRows) flush();
  }
  if (count > 0) flush();
}

void DelayGradient::fold(Rows<float> sums, Index first, Index columns, const Weights& weights, const float* gain) {
  double* const to = sums_.data() + first / kTile * delays_->inputs();
  std::vector<float> row(static_cast<std::size_t>(columns));
  for (Index i = 0; i < delays_->inputs(); ++i) {
    float* const soon = sums.row(i);
    const float *const later = sums.row(delays_->inputs() + i), now = delays_->now()[i];
    const float next = delays_->next()[i];
    weights.numbers.read(i * weights.outputs + first, columns, row.data());
    double change = 0.0;
    for (Index c = 0; c < columns; ++c) {
      change += double{gain[first + c] * row[static_cast<std::size_t>(c)] * (later[c] - soon[c])};
      soon[c] = now * soon[c] + (next == 0.0F ? 0.0F : next * later[c]);
    }
    to[i] += change;
  }
}

void DelayGradient::write(const WritableNumbers& to) const {
  for (Index i = 0; i < delays_->inputs(); ++i) {
    double sum = 0.0;
    for (Index tile = 0; tile < tiles_; ++tile) sum += sums_[tile * delays_->inputs() + i];
    const auto rounded = static_cast<float>(sum);
    to.write(i, 1, &rounded);
  }
}

namespace {

// What the products of some columns, summed without the gain, add to its gradient.
void addToGain(Rows<const float> sums, Index first, Index columns, const WeightGradient& of) {
  std::vector<float> weights(static_cast<std::size_t>(columns));
  for (Index k = 0; k < of.weights.inputs; ++k) {
    const float* sum = sums.row(k);
    of.weights.numbers.read(k * of.weights.outputs + first, columns, weights.data());
    for (Index c = 0; c < columns; ++c) {
      if (sum[c] != 0.0F) of.sum_gain[first + c] += double{weights[static_cast<std::size_t>(c)]} * double{sum[c]};
    }
  }
}

}  // namespace

void finishWeightGradient(Rows<float> sums, Index first, Index columns, const WeightGradient& of) {
  if (of.delays != nullptr) of.delays->fold(sums, first, columns, of.weights, of.gain);
  const Rows<const float> from{sums.data, sums.stride};
  if (of.sum_gain != nullptr) addToGain(from, first, columns, of);
  if (!of.g_weights) return;
  const Index inputs = of.weights.inputs, outputs = of.weights.outputs;
  const float* gain = of.gain + first;
  if (!of.g_weights.is_bfloat16) {
    const Rows<float> to{of.g_weights.float32() + first, outputs};
    if (inputs * outputs * 4 > kStreamedBytes) return kernels().streamRows(from, inputs, columns, gain, to);
    for (Index k = 0; k < inputs; ++k) kernels().affine(from.row(k), gain, nullptr, columns, to.row(k));
    return;
  }
  std::vector<float> g(static_cast<std::size_t>(columns));
  for (Index k = 0; k < inputs; ++k) {
    std::transform(gain, gain + columns, from.row(k), g.begin(), std::multiplies<>());
    of.g_weights.write(k * outputs + first, columns, g.data());
  }
}

void computeWeightGradient(const WeightGradient& of, const Threads& threads) {
  if (!of.g_weights && of.sum_gain == nullptr && of.delays == nullptr) return;
  const Index neurons = of.weights.outputs, tile = columnsOfTile(neurons, of.weights.inputs);
  std::vector<PackedWeights> scratch(static_cast<std::size_t>(threads.count()));
  threads.run((neurons + tile - 1) / tile, [&](Index task, Index worker) {
    const Index first = task * tile, columns = std::min(tile, neurons - first);
    const Index padded = roundUp(columns, kernels().lanes);
    PackedWeights& sums = scratch[static_cast<std::size_t>(worker)];
    sums.resize(of.spikes.width(), padded);
    const Chunking& chunking = of.spikes.chunking();
    if (chunking.count() == 0) sums.clear(of.spikes.width());
    for (Index chunk = 0; chunk < chunking.count(); ++chunk) {
      const float* g_v = of.g_v.row(chunking.at(chunk).firstRow(chunking.extent)) + first;
      of.spikes.accumulate(chunk, chunk == 0, sums.rows(), padded, {g_v, of.g_v.stride});
    }
    finishWeightGradient(sums.rows(), first, columns, of);
  });
}

}  // namespace snnjax
