// The spikes of a call of `spike_matmul` or `spike_conv`, as lists or as rows.
#pragma once

#include "cpu/call.hpp"
#include "list_products.hpp"

namespace snnjax {

// Lists [rows, capacity] of some neurons; their values may be absent where only slots count.
inline ListSource listsOf(const Operand& ids, const Operand& values, Index group, Index neurons) {
  return {ids.at(group), ids.type() == ffi::U16, values.numbers(group), ids.length(1), neurons};
}

// Rows [rows, neurons].
inline DenseSource rowsOf(const Operand& spikes, Index group) {
  const auto type = spikes.type() == ffi::BF16 ? DenseSource::Type::kBfloat16 : DenseSource::Type::kFloat32;
  return {spikes.at(group), type, spikes.length(1)};
}

inline ListedRows listedRows(const Operand& spikes, Index group, const Threads& threads) {
  return {rowsOf(spikes, group), spikes.length(0), spikes.length(1), threads};
}

}  // namespace snnjax
