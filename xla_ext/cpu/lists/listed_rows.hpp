// Spike lists as the rows of a sparse matrix, for products that choose their algorithm by the number of entries.
#pragma once

#include <functional>
#include <vector>

#include "blocks.hpp"
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
  Index start(Index row) const { return starts_[static_cast<std::size_t>(row)]; }  // the entries of the rows before it
  Index count(Index row) const { return lists_[static_cast<std::size_t>(row)].count; }
  const std::uint32_t* ids(Index row) const { return lists_[static_cast<std::size_t>(row)].ids; }
  const std::uint32_t* slots(Index row) const { return slots_[static_cast<std::size_t>(row)]; }
  bool hasValues() const { return has_values_; }  // otherwise all are 1
  SpikeRow row(Index row) const { return lists_[static_cast<std::size_t>(row)]; }
  // Adds `count` rows to `dense`, which holds zeros, `width()` apart.
  void expand(Index first, Index count, float* dense) const;

 private:
  // The lists that one thread has made.
  struct Kept {
    Blocks<std::uint32_t> ids, slots;
    Blocks<float> values;
  };

  ListedRows(Index rows, Index width, Index threads);

  // Calls list(row, worker) for each row, which has `longest` entries at most, and counts the entries.
  void listAll(Index longest, const Threads& threads, const std::function<void(Index row, std::size_t worker)>& list);
  void countEntries();

  Index rows_, width_, entries_ = 0;
  bool has_values_ = false;
  std::vector<SpikeRow> lists_;
  std::vector<const std::uint32_t*> slots_;
  std::vector<Index> starts_;
  std::vector<Kept> kept_;
  Borrowed<float> ones_;  // of rows without values of their own, where others have some
};

}  // namespace snnjax
