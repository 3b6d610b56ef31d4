// The spikes of a call of `spike_matmul` or `spike_conv`, as lists or as rows.
#pragma once

#include "ffi.hpp"
#include "list_products.hpp"

namespace snnjax {

// The lists of a call: ids and values [rows, capacity].
struct ListOperands {
  Operand ids, values;
  Index rows = 0, capacity = 0;

  void takeIds(Operands& operands) {
    rows = operands.nextLength(0);
    capacity = operands.nextLength(1);
    ids = operands.take("ids", {rows, capacity}, {ffi::U16, ffi::S32});
  }

  void takeValues(Operands& operands) { values = operands.take("values", {rows, capacity}, kFloating); }

  ListSource source(Index group, Index neurons) const {
    return {ids.at(group), ids.type() == ffi::U16, values.numbers(group), capacity, neurons};
  }
};

// The rows of spikes of a call [rows, neurons].
struct RowOperands {
  Index rows, neurons;
  Operand values;

  explicit RowOperands(Operands& operands)
      : rows(operands.nextLength(0)),
        neurons(operands.nextLength(1)),
        values(operands.take("spikes", {rows, neurons}, kFloating)) {}

  ListedRows listed(Index group, const Threads& threads) const { return {source(group), rows, neurons, threads}; }
  // The rows themselves where they are float32, otherwise data is nullptr.
  Rows<const float> inPlace(Index group) const { return source(group).inPlace(); }

 private:
  DenseSource source(Index group) const {
    const auto type = values.type() == ffi::BF16 ? DenseSource::Type::kBfloat16 : DenseSource::Type::kFloat32;
    return {values.at(group), type, neurons};
  }
};

}  // namespace snnjax
