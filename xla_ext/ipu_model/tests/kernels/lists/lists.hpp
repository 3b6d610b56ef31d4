// Spike lists for the tests of codelets: records as poplar_kernels/lists/lists.hpp lays them out.
#pragma once

#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/conventions.hpp"

namespace kernels {

constexpr unsigned kHeader = snnjax::kListHeader;

// Where the spikes of each share of the neurons begin.
template <typename Id>
void writeStarts(Id* record, unsigned spikes, unsigned num_neurons) {
  for (unsigned share = 1; share < snnjax::kShares; ++share) {
    const unsigned first = share * snnjax::neuronsOfShare(num_neurons);
    const auto is_before = [&](Id id) { return static_cast<unsigned>(id) < first; };
    record[snnjax::kStarts + share - 1] =
        static_cast<Id>(std::count_if(record + kHeader, record + kHeader + spikes, is_before));
  }
}

// Records of ascending spikes and ascending gradient-only ids; every third one is hostile: counts beyond the capacity,
// ids out of range.
template <typename Id>
std::vector<Id> hostileLists(Draw& draw, unsigned rows, unsigned stride, unsigned capacity, unsigned num_inputs) {
  std::vector<Id> lists(rows * stride, static_cast<Id>(num_inputs));
  for (unsigned b = 0; b < rows; ++b) {
    Id* const record = &lists[b * stride];
    const unsigned listed = draw.below(capacity + 1), spikes = draw.below(listed + 1);
    const bool is_hostile = b % 3 == 2;
    record[0] = static_cast<Id>(is_hostile ? 60000 : spikes);
    record[1] = static_cast<Id>(is_hostile ? 50000 : listed);
    record[2] = static_cast<Id>(spikes);
    for (unsigned k = 0; k < capacity; ++k) record[kHeader + k] = static_cast<Id>(draw.below(num_inputs));
    const auto ids = record + kHeader;
    std::sort(ids, ids + spikes);
    std::sort(ids + spikes, ids + listed);
    if (is_hostile && capacity > 1) {
      std::sort(ids, ids + capacity);
      ids[capacity - 1] = static_cast<Id>(65535);
      ids[capacity - 2] = static_cast<Id>(num_inputs);
    }
    writeStarts(record, is_hostile ? capacity : spikes, num_inputs);
  }
  return lists;
}

inline unsigned count(unsigned given, unsigned limit) { return std::min(given, limit); }

// The listed ids of record b.
template <typename Id>
std::vector<unsigned> listedOf(const std::vector<Id>& lists, unsigned b, unsigned stride, unsigned capacity) {
  const Id* const record = &lists[b * stride];
  const unsigned listed = count(static_cast<unsigned>(record[1]), capacity);
  std::vector<unsigned> ids;
  for (unsigned k = 0; k < listed; ++k) ids.push_back(static_cast<unsigned>(record[kHeader + k]));
  return ids;
}

// Those that spike.
template <typename Id>
std::vector<unsigned> spikesOf(const std::vector<Id>& lists, unsigned b, unsigned stride, unsigned capacity) {
  auto ids = listedOf(lists, b, stride, capacity);
  ids.resize(count(static_cast<unsigned>(lists[b * stride]), static_cast<unsigned>(ids.size())));
  return ids;
}

// A matrix with the row of zeros behind it that stands for ids out of range.
template <typename T>
std::vector<T> withZeroRow(std::vector<T> matrix, unsigned columns) {
  matrix.resize(matrix.size() + columns, static_cast<T>(0.0f));
  return matrix;
}

}  // namespace kernels
