// Lists of spikes as the rows of a sparse matrix: every entry is listed, however many there are.
#pragma once

#include <memory>

#include "kernels.hpp"
#include "parallel.hpp"
#include "spike_rows.hpp"

namespace snnjax {

class ListedRows {
 public:
  enum class Payload { kValues, kSlots };

  // The entries of lists whose ids are in the range: those whose value is not 0, with their values, or all of them,
  // with the slots in which they stand.
  ListedRows(const ListSource& source, Index rows, Payload payload, const Threads& threads);

  // The same matrix by columns: row k lists the rows in which k stands, in ascending order.
  ListedRows transposed() const;

  Index rows() const { return rows_; }
  Index width() const { return width_; }
  Index entries() const { return entries_; }
  std::uint32_t count(Index row) const { return counts_[static_cast<std::size_t>(row)]; }
  const std::uint32_t* ids(Index row) const { return ids_.get() + start(row); }
  const std::uint32_t* slots(Index row) const { return slots_.get() + start(row); }
  SpikeRow row(Index row) const {
    return {ids(row), values_ == nullptr || all_ones_ ? nullptr : values_.get() + start(row), count(row), false};
  }
  // Adds `count` rows to `dense`, which holds zeros, `width()` apart.
  void expand(Index first, Index count, float* dense) const;

 private:
  ListedRows(Index rows, Index width, Index entries) : rows_(rows), width_(width), entries_(entries) {}

  Index start(Index row) const { return starts_[static_cast<std::size_t>(row)]; }
  bool list(const ListSource& source, Index first, Index behind, Payload payload);

  Index rows_, width_, entries_ = 0;
  bool all_ones_ = true;
  std::vector<Index> starts_;
  std::vector<std::uint32_t> counts_;
  // Not cleared: what is never listed is never touched.
  std::unique_ptr<std::uint32_t[]> ids_, slots_;
  std::unique_ptr<float[]> values_;
};

}  // namespace snnjax
