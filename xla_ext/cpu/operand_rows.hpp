// Operands and results that are one number, one a neuron, or one a row and neuron.
#pragma once

#include <vector>

#include "ffi.hpp"

namespace snnjax {

// Takes its array with whatever of these forms it has behind the groups axis: [1], [neurons] or [rows, neurons].
class OperandRows {
 public:
  OperandRows(Arrays& arrays, const char* name, Index rows, Index neurons, const Arrays::Types& types)
      : neurons_(neurons), is_per_row_(arrays.nextLength(1) >= 0), is_one_(!is_per_row_ && arrays.nextLength(0) == 1) {
    const Arrays::Shape one{1}, each{neurons}, all{rows, neurons};
    array_ = arrays.take(name, is_per_row_ ? all : is_one_ ? one : each, types);
  }

  // Takes [rows, neurons] and nothing else.
  static OperandRows whole(Arrays& arrays, const char* name, Index rows, Index neurons, const Arrays::Types& types) {
    return {arrays.take(name, {rows, neurons}, types), neurons};
  }

  bool isPerRow() const { return is_per_row_; }
  bool isOne() const { return is_one_; }
  ffi::DataType type() const { return array_.type(); }

  // `count` columns of a row as float32: where they lie, or in scratch, which is made large enough.
  const float* read(Index group, Index row, Index first, Index count, std::vector<float>& scratch) const {
    const Numbers numbers = array_.numbers(group);
    const Index place = is_per_row_ ? row * neurons_ + first : is_one_ ? 0 : first;
    if (!numbers.is_bfloat16 && !is_one_) return numbers.float32() + place;
    scratch.resize(static_cast<std::size_t>(count));
    if (count == 0) return scratch.data();
    numbers.read(place, is_one_ ? 1 : count, scratch.data());
    if (is_one_) std::fill(scratch.begin(), scratch.end(), scratch[0]);
    return scratch.data();
  }

  // The other way.
  void write(Index group, Index row, Index first, Index count, const float* from) const {
    array_.numbers(group).write(is_per_row_ ? row * neurons_ + first : first, count, from);
  }

  // Writes sums over the rows, one a neuron, or their sum.
  void writeSums(Index group, const std::vector<double>& sums) const {
    if (!is_one_) {
      const std::vector<float> rounded(sums.begin(), sums.end());
      write(group, 0, 0, neurons_, rounded.data());
      return;
    }
    double total = 0.0;
    for (const double sum : sums) total += sum;
    const auto rounded = static_cast<float>(total);
    write(group, 0, 0, 1, &rounded);
  }

 private:
  OperandRows(Array whole, Index neurons) : neurons_(neurons), is_per_row_(true), is_one_(false), array_(whole) {}

  Index neurons_;
  bool is_per_row_, is_one_;
  Array array_;
};

template <typename T>
T attributeOf(const char* op, ffi::Dictionary attributes, const char* name) {
  const auto value = attributes.get<T>(name);
  if (value.has_error()) {
    throw Misfit(std::string(op) + ": `" + name + "` must be given, got nothing. Call it through snnjax.");
  }
  return *value;
}

// A surrogate as attributes name it; a number that names none is the nearest that does.
inline Surrogate surrogateOf(std::int64_t kind, float slope) {
  return {static_cast<SurrogateKind>(std::clamp<std::int64_t>(kind, 0, 6)), slope};
}

}  // namespace snnjax
