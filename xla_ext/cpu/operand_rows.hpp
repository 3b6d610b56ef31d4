// Operands and results that are one number, one a neuron, or one a row and neuron.
#pragma once

#include <vector>

#include "ffi.hpp"

namespace snnjax {

class OperandRows {
 public:
  // Each takes the next array: of whatever form it has behind the groups axis, [1], [neurons] or [rows, neurons];
  static OperandRows any(Arrays& arrays, const char* name, Index rows, Index neurons, const Arrays::Types& types) {
    return {arrays, name, arrays.nextLength(1) >= 0 ? Form::kPerRow : formOfConstant(arrays), rows, neurons, types};
  }
  // [rows, neurons];
  static OperandRows whole(Arrays& arrays, const char* name, Index rows, Index neurons, const Arrays::Types& types) {
    return {arrays, name, Form::kPerRow, rows, neurons, types};
  }
  // the cotangent of this one, in its form.
  OperandRows cotangent(Arrays& results, const char* name) const {
    return {results, name, form_, rows_, neurons_, {type()}};
  }

  bool isPerRow() const { return form_ == Form::kPerRow; }
  ffi::DataType type() const { return array_.type(); }

  // `count` columns of a row as float32: where they lie, or in scratch, which is made large enough.
  const float* read(Index group, Index row, Index first, Index count, std::vector<float>& scratch) const {
    const Numbers numbers = array_.numbers(group);
    const bool is_one = form_ == Form::kOne;
    const Index place = isPerRow() ? row * neurons_ + first : is_one ? 0 : first;
    if (!numbers.is_bfloat16 && !is_one) return numbers.float32() + place;
    scratch.resize(static_cast<std::size_t>(count));
    if (count == 0) return scratch.data();
    numbers.read(place, is_one ? 1 : count, scratch.data());
    if (is_one) std::fill(scratch.begin(), scratch.end(), scratch[0]);
    return scratch.data();
  }

  // The other way.
  void write(Index group, Index row, Index first, Index count, const float* from) const {
    array_.numbers(group).write(isPerRow() ? row * neurons_ + first : first, count, from);
  }

  // Writes sums over the rows, one a neuron, or their sum: into an array that has no rows.
  void writeSums(Index group, const std::vector<double>& sums) const {
    if (form_ == Form::kPerNeuron) {
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
  enum class Form { kOne, kPerNeuron, kPerRow };

  OperandRows(Arrays& arrays, const char* name, Form form, Index rows, Index neurons, const Arrays::Types& types)
      : form_(form), rows_(rows), neurons_(neurons) {
    const Arrays::Shape one{1}, each{neurons}, all{rows, neurons};
    array_ = arrays.take(name, isPerRow() ? all : form == Form::kOne ? one : each, types);
  }

  static Form formOfConstant(const Arrays& arrays) { return arrays.nextLength(0) == 1 ? Form::kOne : Form::kPerNeuron; }

  Form form_;
  Index rows_, neurons_;
  Array array_;
};

// A surrogate as attributes name it; a number that names none is the nearest that does.
inline SurrogateForm surrogateOf(std::int64_t kind, float slope) {
  return {static_cast<Surrogate>(std::clamp<std::int64_t>(kind, 0, 6)), slope};
}

}  // namespace snnjax
