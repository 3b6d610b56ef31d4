#include "listed_rows.hpp"

#include <algorithm>

namespace snnjax {
namespace {

constexpr Index kSlotsPerTask = 1 << 15;  // listing fewer is faster than waking another thread

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

// Rows that one thread lists, if each has so many entries at most.
Index rowsPerTask(Index longest) { return std::max<Index>(1, kSlotsPerTask / std::max<Index>(longest, 1)); }

// Where a thread lists a row before it keeps the entries that there are: the room for every row would be as large as
// the rows themselves, of which a tenth spikes.
template <typename T>
struct Room {
  Borrowed<std::uint32_t> ids;
  Borrowed<T> others;

  void reserve(Index longest) {
    if (ids) return;
    ids = Borrowed<std::uint32_t>(longest + kListSlack);
    others = Borrowed<T>(longest + kListSlack);
  }
};

}  // namespace

ListedRows::ListedRows(Index rows, Index width, Index threads)
    : rows_(rows), width_(width), lists_(size(rows)), starts_(size(rows)), kept_(size(threads)) {}

ListedRows::ListedRows(const RowSource& source, Index rows, Index width, const Threads& threads)
    : ListedRows(rows, width, threads.count()) {
  std::vector<Room<float>> rooms(kept_.size());
  listAll(source.longest(), threads, [&](Index row, std::size_t worker) {
    Room<float>& room = rooms[worker];
    room.reserve(source.longest());
    bool all_ones = true;
    const std::uint32_t count = source.list(row, room.ids.data(), room.others.data(), &all_ones);
    Kept& kept = kept_[worker];
    const float* values = all_ones ? nullptr : kept.values.keep(room.others.data(), count);
    lists_[size(row)] = {kept.ids.keep(room.ids.data(), count), values, count, false};
  });
  has_values_ = std::any_of(lists_.begin(), lists_.end(), [](const SpikeRow& row) { return row.values != nullptr; });
  if (!has_values_) return;
  // Lists may name a neuron more than once, and so be longer than `width`.
  ones_ = Borrowed<float>(source.longest());
  std::fill_n(ones_.data(), source.longest(), 1.0F);
  for (SpikeRow& row : lists_) row.values = row.values == nullptr ? ones_.data() : row.values;
}

ListedRows::ListedRows(const ListSource& source, Index rows, const Threads& threads)
    : ListedRows(rows, source.width(), threads.count()) {
  slots_.resize(size(rows));
  std::vector<Room<std::uint32_t>> rooms(kept_.size());
  listAll(source.capacity(), threads, [&](Index row, std::size_t worker) {
    Room<std::uint32_t>& room = rooms[worker];
    room.reserve(source.capacity());
    const std::uint32_t count = source.listSlots(row, room.ids.data(), room.others.data());
    Kept& kept = kept_[worker];
    slots_[size(row)] = kept.slots.keep(room.others.data(), count);
    lists_[size(row)] = {kept.ids.keep(room.ids.data(), count), nullptr, count, false};
  });
}

void ListedRows::listAll(Index longest, const Threads& threads,
                         const std::function<void(Index row, std::size_t worker)>& list) {
  const Index each = rowsPerTask(longest);
  threads.run((rows_ + each - 1) / each, [&](Index task, Index worker) {
    for (Index r = task * each; r < std::min((task + 1) * each, rows_); ++r) list(r, size(worker));
  });
  countEntries();
}

void ListedRows::countEntries() {
  for (std::size_t r = 0; r < lists_.size(); ++r) {
    starts_[r] = entries_;
    entries_ += lists_[r].count;
  }
}

ListedRows ListedRows::transposed(Borrowed<std::uint32_t>* places) const {
  ListedRows out(width_, rows_, 1);
  for (const SpikeRow& row : lists_) {
    for (std::uint32_t k = 0; k < row.count; ++k) ++out.lists_[row.ids[k]].count;
  }
  out.countEntries();
  out.has_values_ = has_values_;
  std::uint32_t* const ids = out.kept_[0].ids.room(entries_);
  float* const values = has_values_ ? out.kept_[0].values.room(entries_) : nullptr;
  for (std::size_t k = 0; k < out.lists_.size(); ++k) {
    SpikeRow& own = out.lists_[k];
    own.ids = ids + out.starts_[k];
    if (has_values_) own.values = values + out.starts_[k];
  }
  if (places != nullptr) {
    require32Bits(entries_);
    *places = Borrowed<std::uint32_t>(entries_);
  }
  std::vector<Index> next = out.starts_;
  for (Index r = 0; r < rows_; ++r) {
    const SpikeRow own = row(r);
    for (std::uint32_t k = 0; k < own.count; ++k) {
      const Index place = next[own.ids[k]]++;
      ids[place] = static_cast<std::uint32_t>(r);
      if (has_values_) values[place] = own.values[k];
      if (places != nullptr) (*places)[start(r) + k] = static_cast<std::uint32_t>(place);
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
