#include "spike_rows.hpp"

#include <algorithm>
#include <vector>

namespace snnjax {
namespace {

constexpr Index kRowsPerTask = 64;

}  // namespace

std::uint32_t DenseSource::list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const {
  const auto list = [&](auto kernel, const auto* rows) {
    return kernel(rows + row * width_, width_, ids, values, all_ones);
  };
  switch (type_) {
    case Type::kFloat32: return list(kernels().listNonZero, static_cast<const float*>(data_));
    case Type::kBfloat16: return list(kernels().listNonZeroBfloat16, static_cast<const std::uint16_t*>(data_));
    case Type::kUint8: break;
  }
  return list(kernels().listNonZeroBytes, static_cast<const std::uint8_t*>(data_));
}

void DenseSource::expand(Index row, float* dense) const {
  const Index first = row * width_;
  switch (type_) {
    case Type::kFloat32: std::copy_n(static_cast<const float*>(data_) + first, width_, dense); break;
    case Type::kBfloat16: Numbers{const_cast<void*>(data_), true}.read(first, width_, dense); break;
    case Type::kUint8: std::copy_n(static_cast<const std::uint8_t*>(data_) + first, width_, dense); break;
  }
}

Index ListSource::idAt(Index row, Index slot) const {
  const Index place = row * capacity_ + slot;
  const Index id = ids_are_uint16_ ? Index{static_cast<const std::uint16_t*>(ids_)[place]}
                                   : Index{static_cast<const std::int32_t*>(ids_)[place]};
  return id >= 0 && id < width_ ? id : -1;
}

float ListSource::valueAt(Index row, Index slot) const {
  float value;
  values_.read(row * capacity_ + slot, 1, &value);
  return value;
}

std::uint32_t ListSource::list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const {
  const EntryLists lists{ids_, ids_are_uint16_, values_.data, values_.is_bfloat16, capacity_, width_};
  return kernels().listEntries(lists, row, ids, values, all_ones);
}

std::uint32_t ListSource::listSlots(Index row, std::uint32_t* ids, std::uint32_t* slots) const {
  const auto list = [&](const auto* from) {
    std::uint32_t count = 0;
    for (Index slot = 0; slot < capacity_; ++slot) {
      const auto id = static_cast<Index>(from[row * capacity_ + slot]);
      ids[count] = static_cast<std::uint32_t>(id);
      slots[count] = static_cast<std::uint32_t>(slot);
      count += id >= 0 && id < width_ ? 1 : 0;
    }
    return count;
  };
  return ids_are_uint16_ ? list(static_cast<const std::uint16_t*>(ids_)) : list(static_cast<const std::int32_t*>(ids_));
}

void ListSource::expand(Index row, float* dense) const {
  for (Index slot = 0; slot < capacity_; ++slot) {
    const Index id = idAt(row, slot);
    if (id >= 0) dense[id] += valueAt(row, slot);
  }
}

std::uint32_t BitSource::list(Index row, std::uint32_t* ids, float*, bool* all_ones) const {
  *all_ones = true;
  return kernels().listBits(bits_ + row * words_, width_, ids);
}

void BitSource::expand(Index row, float* dense) const { kernels().expandBits(bits_ + row * words_, width_, dense); }

Rows<const float> SpikeRows::dense(Index first, Index count, std::vector<float>& scratch) const {
  scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(count * width_)));
  expand(first, count, scratch.data());
  return {scratch.data(), width_};
}

SpikeRows::SpikeRows(Index count, Index width)
    : width_(width),
      // At least 8, so that narrow rows are always listed.
      longest_listed_(std::max<Index>(8, static_cast<Index>(kDenseShare * static_cast<double>(width)))),
      rows_(count) {}

SpikeLists::SpikeLists(const RowSource& source, Index rows, Index width, Index batch, const std::int32_t* ends,
                       const Threads& threads)
    : SpikeLists(source, rows, width, batch, ends, (rows + kRowsPerTask - 1) / kRowsPerTask) {
  threads.run(static_cast<Index>(parts_.size()), [&](Index part, Index) {
    const Index first = part * kRowsPerTask;
    for (Index row = first; row < std::min(first + kRowsPerTask, rows); ++row) list(part, row);
  });
}

SpikeLists::SpikeLists(const RowSource& source, Index rows, Index width, Index batch, const std::int32_t* ends,
                       Index parts)
    : SpikeRows(rows, width),
      source_(source),
      batch_(batch),
      ends_(ends),
      parts_(static_cast<std::size_t>(parts)),
      bits_(source.isListed() ? rows : 0) {}

void SpikeLists::list(Index part, Index row) {
  if (hasEnded(row)) return;
  Part& own = parts_[static_cast<std::size_t>(part)];
  const Index longest = source_.longest() + kListSlack;
  own.scratch.resize(static_cast<std::size_t>(longest));
  std::uint32_t* ids = own.ids.room(longest);
  bool all_ones = true;
  const std::uint32_t count = source_.list(row, ids, own.scratch.data(), &all_ones);
  if (count > longest_listed_) {
    rows_[row].is_dense = true;
    if (all_ones && source_.isListed()) bits_[row] = bitsOf(own, ids, count);
    return;
  }
  own.ids.use(count);
  rows_[row] = {ids, nullptr, count, false};
  if (all_ones) return;
  rows_[row].values = own.values.keep(own.scratch.data(), count);
}

const std::uint64_t* SpikeLists::bitsOf(Part& part, const std::uint32_t* ids, std::uint32_t count) const {
  const Index words = (width_ + 63) / 64;
  part.marks.resize(static_cast<std::size_t>(words * 64));
  std::uint64_t* bits = part.bits.room(words);
  if (!kernels().markIds(ids, count, words, part.marks.data(), bits)) return nullptr;  // one counts twice
  part.bits.use(words);
  return bits;
}

void SpikeLists::expand(Index first, Index count, float* dense) const {
  std::fill_n(dense, count * width_, 0.0F);
  for (Index r = 0; r < count; ++r) {
    const Index row = first + r;
    if (hasEnded(row)) continue;
    if (source_.isListed() && bits_[row] != nullptr) {
      kernels().expandBits(bits_[row], width_, dense + r * width_);
    } else {
      source_.expand(row, dense + r * width_);
    }
  }
}

Rows<const float> SpikeLists::dense(Index first, Index count, std::vector<float>& scratch) const {
  const Rows<const float> rows = source_.inPlace();
  bool all_run = rows.data != nullptr;
  for (Index r = first; all_run && r < first + count; ++r) all_run = !hasEnded(r);
  return all_run ? Rows<const float>{rows.row(first), rows.stride} : SpikeRows::dense(first, count, scratch);
}

ListedRow::ListedRow(const SpikeRows& spikes, Index row) {
  std::vector<float> dense(static_cast<std::size_t>(spikes.width()));
  spikes.expand(row, 1, dense.data());
  ids_.resize(dense.size() + kListSlack);
  values_.resize(ids_.size());
  bool all_ones = true;
  const std::uint32_t count =
      kernels().listNonZero(dense.data(), spikes.width(), ids_.data(), values_.data(), &all_ones);
  row_ = {ids_.data(), all_ones ? nullptr : values_.data(), count, false};
}

StepSpikes::StepSpikes(Index count, Index width)
    : SpikeRows(count, width), stride_(width + kListSlack), ids_(count * stride_), values_(count * stride_) {}

void StepSpikes::set(Index row, const float* dense) {
  bool all_ones = true;
  const Index first = row * stride_;
  const std::uint32_t count =
      kernels().listNonZero(dense, width_, ids_.data() + first, values_.data() + first, &all_ones);
  rows_[row] = {ids_.data() + first, all_ones ? nullptr : values_.data() + first, count, count > longest_listed_};
}

void StepSpikes::expand(Index first, Index count, float* dense) const {
  std::fill_n(dense, count * width_, 0.0F);
  for (Index r = 0; r < count; ++r) {
    const SpikeRow& listed = rows_[first + r];
    for (std::uint32_t k = 0; k < listed.count; ++k) {
      dense[r * width_ + listed.ids[k]] = listed.values == nullptr ? 1.0F : listed.values[k];
    }
  }
}

}  // namespace snnjax
