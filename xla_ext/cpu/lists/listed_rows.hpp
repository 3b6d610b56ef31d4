// Spike lists as the rows of a sparse matrix, for products that choose their algorithm by the number of entries.
#pragma once

#include <vector>

#include "cpu/kernels.hpp"
#include "cpu/memory.hpp"
#include "cpu/numbers.hpp"
#include "cpu/parallel.hpp"
#include "spike_rows.hpp"

namespace snnjax {

// Every entry is listed, however many there are.
class ListedRows {
 public:
  // The entries of a source that are not 0, with their values.
  ListedRows(const RowSource& source, Index rows, Index width, const Threads& threads);
  // All entries of lists whose ids are in the range, with the slots in which they stand.
  ListedRows(const ListSource& source, Index rows, const Threads& threads);

  // The same matrix by columns, without the slots: row k lists the rows that contain k, in ascending order. `places`
  // receives the position of each entry in the original.
  ListedRows transposed(Borrowed<std::uint32_t>* places = nullptr) const;

  Index rows() const { return rows_; }
  Index width() const { return width_; }
  Index entries() const { return entries_; }
  Index start(Index row) const { return starts_[static_cast<std::size_t>(row)]; }  // behind the entries before it
  Index count(Index row) const { return counts_[static_cast<std::size_t>(row)]; }
  const std::uint32_t* ids(Index row) const { return ids_.data() + start(row); }
  const std::uint32_t* slots(Index row) const { return slots_.data() + start(row); }
  bool hasValues() const { return values_ && !all_ones_; }  // otherwise all are 1
  SpikeRow row(Index row) const {
    const float* values = hasValues() ? values_.data() + start(row) : nullptr;
    return {ids(row), values, counts_[static_cast<std::size_t>(row)], false};
  }
  // Adds `count` rows to `dense`, which holds zeros, `width()` apart.
  void expand(Index first, Index count, float* dense) const;

 private:
  ListedRows(Index rows, Index width, Index entries) : rows_(rows), width_(width), entries_(entries) {}

  // Calls list(row, place) -> count for each row, whose entries begin at `place` and are `longest` at most.
  template <typename List>
  void listAll(Index longest, const Threads& threads, List list);
  // The room that such lists take, with what is written past their ends.
  static Index roomFor(Index rows, Index longest);

  Index rows_, width_, entries_ = 0;
  bool all_ones_ = true;
  std::vector<Index> starts_;
  std::vector<std::uint32_t> counts_;
  Borrowed<std::uint32_t> ids_, slots_;  // slots or values, the other is empty
  Borrowed<float> values_;
};

}  // namespace snnjax
