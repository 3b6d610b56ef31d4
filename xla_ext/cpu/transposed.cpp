#include "transposed.hpp"

#include <cmath>

namespace snnjax {
namespace {

constexpr Index kDenseRows = 32;  // that are multiplied at once: each pass reads and writes the whole gradient

bool isFinite(const float* numbers, Index count) {
  return std::all_of(numbers, numbers + count, [](float x) { return std::isfinite(x); });
}

}  // namespace

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
  std::vector<Index> starts(chunks_.size() + 1, 0);
  bool all_ones = true;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    Index entries = 0;
    visitRows(static_cast<Index>(c), [&](const SpikeRow& row, Index, std::uint32_t) {
      entries += row.is_dense ? 0 : row.count;
      all_ones = all_ones && (row.values == nullptr || row.count == 0);
    });
    starts[c + 1] = starts[c] + entries;
  }
  row_ids_ = Borrowed<std::uint32_t>(starts.back());
  if (!all_ones) values_ = Borrowed<float>(starts.back());
  threads.run(chunking.count(), [&](Index chunk, Index) {
    const Index start = starts[static_cast<std::size_t>(chunk)];
    fill(chunk, row_ids_.data() + start, all_ones ? nullptr : values_.data() + start);
  });
}

// A counting sort by neuron.
void TransposedSpikes::fill(Index index, std::uint32_t* rows, float* values) {
  Lists& lists = chunks_[static_cast<std::size_t>(index)];
  std::vector<std::uint32_t> next(static_cast<std::size_t>(spikes_.width()) + 1, 0);
  visitRows(index, [&](const SpikeRow& row, Index spikes, std::uint32_t r) {
    if (row.is_dense) {
      lists.dense_rows.push_back(r);
      lists.dense_spikes.push_back(spikes);
    } else {
      for (std::uint32_t k = 0; k < row.count; ++k) ++next[row.ids[k] + 1];
    }
  });
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

void TransposedSpikes::accumulate(Index chunk, Rows<float> weights, Index columns, Rows<const float> g) const {
  const Lists& lists = chunks_[static_cast<std::size_t>(chunk)];
  kernels().sumRows(lists.neurons.data(), spikes_.width(), g, columns, {weights.data, weights.stride}, weights);
  if (!lists.dense_rows.empty()) addDense(lists, weights, columns, g);
}

// Dense rows lie apart as a rule, so they are gathered, and so are their rows of g.
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
    if (!isFinite(from, columns)) {  // 0 times it would not be 0
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

}  // namespace snnjax
