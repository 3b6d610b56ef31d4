#include "listed_rows.hpp"

#include <algorithm>

namespace snnjax {
namespace {

constexpr Index kSlotsPerTask = 1 << 15;  // fewer are listed sooner than another thread is woken

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

}  // namespace

ListedRows::ListedRows(const ListSource& source, Index rows, Payload payload, const Threads& threads)
    : ListedRows(rows, source.width(), 0) {
  const Index capacity = source.capacity();
  starts_.resize(size(rows));
  counts_.resize(size(rows));
  ids_ = Borrowed<std::uint32_t>(rows * capacity);
  if (payload == Payload::kValues) {
    values_ = Borrowed<float>(rows * capacity);
  } else {
    slots_ = Borrowed<std::uint32_t>(rows * capacity);
  }
  const Index rows_per_task = std::max<Index>(1, kSlotsPerTask / std::max<Index>(capacity, 1));
  const Index tasks = (rows + rows_per_task - 1) / rows_per_task;
  std::vector<char> ones(size(tasks));
  threads.run(tasks, [&](Index task, Index) {
    const Index first = task * rows_per_task;
    ones[size(task)] = list(source, first, std::min(first + rows_per_task, rows), payload);
  });
  all_ones_ = std::find(ones.begin(), ones.end(), 0) == ones.end();
  for (const std::uint32_t count : counts_) entries_ += count;
}

// Lists some rows one behind the other; yields whether all values are 1.
bool ListedRows::list(const ListSource& source, Index first, Index behind, Payload payload) {
  bool all_ones = true;
  for (Index r = first, place = first * source.capacity(); r < behind; ++r) {
    starts_[size(r)] = place;
    std::uint32_t* ids = ids_.data() + place;
    bool ones = true;
    counts_[size(r)] = payload == Payload::kValues ? source.list(r, ids, values_.data() + place, &ones)
                                                   : source.listSlots(r, ids, slots_.data() + place);
    all_ones = all_ones && ones;
    place += counts_[size(r)];
  }
  return all_ones;
}

ListedRows ListedRows::transposed(Borrowed<std::uint32_t>* places) const {
  ListedRows out(width_, rows_, entries_);
  out.all_ones_ = all_ones_;
  out.counts_.resize(size(width_));
  out.starts_.resize(size(width_));
  out.ids_ = Borrowed<std::uint32_t>(entries_);
  if (values_ && !all_ones_) out.values_ = Borrowed<float>(entries_);
  if (places != nullptr) *places = Borrowed<std::uint32_t>(rows_ == 0 ? 0 : start(rows_ - 1) + count(rows_ - 1));
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
