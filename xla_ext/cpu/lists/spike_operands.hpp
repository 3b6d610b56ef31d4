// The spikes of a call, as lists or as rows.
#pragma once

#include "cpu/call.hpp"
#include "listed_rows.hpp"

namespace snnjax {

// Lists of some neurons, whose last axis has the slots; their values may be absent where only slots count.
inline ListSource listsOf(const Operand& ids, const Operand& values, Index group, const schema::Lengths& lengths) {
  return {ids.at(group), ids.type() == ffi::U16, values.numbers(group), lengths[schema::Axis::kCapacity],
          lengths[schema::Axis::kNeurons]};
}

inline DenseSource rowsOf(const Operand& spikes, Index group, const schema::Lengths& lengths) {
  const auto type = spikes.type() == ffi::BF16 ? DenseSource::Type::kBfloat16 : DenseSource::Type::kFloat32;
  return {spikes.at(group), type, lengths[schema::Axis::kNeurons]};
}

template <typename From>
ListedRows spikesOf(const From& from, Index rows, const schema::Lengths& lengths, Index group, const Threads& threads) {
  const Index neurons = lengths[schema::Axis::kNeurons];
  if (from.ids) return {listsOf(from.ids, from.values, group, lengths), rows, neurons, threads};
  return {rowsOf(from.spikes, group, lengths), rows, neurons, threads};
}

// Of the gradient of spikes: all slots whose ids are in range, whatever their values.
template <typename From>
ListedRows slotsOf(const From& from, Index rows, const schema::Lengths& lengths, Index group, const Threads& threads) {
  return {listsOf(from.ids, {}, group, lengths), rows, threads};
}

// Throws unless the gradient of spikes has their form.
template <typename From, typename To>
void needSameForm(const char* op, const From& from, const To& to) {
  if (static_cast<bool>(from.ids) == static_cast<bool>(to.g_values)) return;
  throw misfit(op, "g_values", "be given for lists alone", "another form");
}

}  // namespace snnjax
