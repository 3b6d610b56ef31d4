#include "listed_rows.hpp"

#include <algorithm>

namespace snnjax {
namespace {

constexpr Index kSlotsPerTask = 1 << 15;  // listing fewer is faster than waking another thread

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

// Rows that one thread lists, if each has so many entries at most.
Index rowsPerTask(Index longest) { return std::max<Index>(1, kSlotsPerTask / std::max<Index>(longest, 1)); }

Index tasksFor(Index rows, Index longest) { return (rows + rowsPerTask(longest) - 1) / rowsPerTask(longest); }

}  // namespace

ListedRows::ListedRows(const RowSource& source, Index rows, Index width, const Threads& threads)
    : ListedRows(rows, width, 0) {
  const Index room = roomFor(rows, source.longest());
  ids_ = Borrowed<std::uint32_t>(room);
  values_ = Borrowed<float>(room);
  std::vector<char> ones(size(rows));
  listAll(source.longest(), threads, [&](Index row, Index place) {
    bool all_ones = true;
    const std::uint32_t count = source.list(row, ids_.data() + place, values_.data() + place, &all_ones);
    ones[size(row)] = all_ones;
    return count;
  });
  all_ones_ = std::find(ones.begin(), ones.end(), 0) == ones.end();
  for (Index r = 0; r < rows && !all_ones_; ++r) {
    if (ones[size(r)]) std::fill_n(values_.data() + start(r), count(r), 1.0F);
  }
}

ListedRows::ListedRows(const ListSource& source, Index rows, const Threads& threads)
    : ListedRows(rows, source.width(), 0) {
  const Index room = roomFor(rows, source.capacity());
  ids_ = Borrowed<std::uint32_t>(room);
  slots_ = Borrowed<std::uint32_t>(room);
  listAll(source.capacity(), threads,
          [&](Index row, Index place) { return source.listSlots(row, ids_.data() + place, slots_.data() + place); });
}

Index ListedRows::roomFor(Index rows, Index longest) { return rows * longest + tasksFor(rows, longest) * kListSlack; }

template <typename List>
void ListedRows::listAll(Index longest, const Threads& threads, List list) {
  starts_.resize(size(rows_));
  counts_.resize(size(rows_));
  const Index each = rowsPerTask(longest);
  threads.run(tasksFor(rows_, longest), [&](Index task, Index) {
    const Index first = task * each;
    // What is written beyond the end of a list must not reach another task's.
    Index place = first * longest + task * kListSlack;
    for (Index r = first; r < std::min(first + each, rows_); ++r) {
      starts_[size(r)] = place;
      counts_[size(r)] = list(r, place);
      place += counts_[size(r)];
    }
  });
  for (const std::uint32_t count : counts_) entries_ += count;
}

ListedRows ListedRows::transposed(Borrowed<std::uint32_t>* places) const {
  ListedRows out(width_, rows_, entries_);
  out.all_ones_ = all_ones_;
  out.counts_.resize(size(width_));
  out.starts_.resize(size(width_));
  out.ids_ = Borrowed<std::uint32_t>(entries_);
  if (values_ && !all_ones_) out.values_ = Borrowed<float>(entries_);
  if (places != nullptr) {
    require32Bits(entries_);
    *places = Borrowed<std::uint32_t>(rows_ == 0 ? 0 : start(rows_ - 1) + count(rows_ - 1));
  }
  for (Index r = 0; r < rows_; ++r) {
    for (const std::uint32_t* id = ids(r); id != ids(r) + count(r); ++id) ++out.counts_[*id];
  }
  std::vector<Index> next(size(width_));
  for (Index k = 0, place = 0; k < width_; ++k) {
    out.starts_[size(k)] = next[size(k)] = place;
    place += out.counts_[size(k)];
  }
  for (Index r = 0; r < rows_; ++r) {
    for (Index i = start(r); i < start(r) + count(r); ++i) {
      const Index place = next[ids_[i]]++;
      out.ids_[place] = static_cast<std::uint32_t>(r);
      if (out.values_) out.values_[place] = values_[i];
      if (places != nullptr) (*places)[i] = static_cast<std::uint32_t>(place);
    }
  }
  return out;
}

void ListedRows::expand(Index first, Index rows, float* dense) const {
  for (Index r = 0; r < rows; ++r) {
    const SpikeRow listed = row(first + r);
    for (std::uint32_t k = 0; k < listed.count; ++k) {
      dense[r * width_ + listed.ids[k]] += listed.values == nullptr ? 1.0F : listed.values[k];
    }
  }
}

}  // namespace snnjax
