// Operands that are one number, one a neuron, or one a row and neuron, read as rows of float32.
#pragma once

#include <vector>

#include "ffi.hpp"

namespace snnjax {

class OperandRows {
 public:
  // Takes the next array, behind whose groups axis stands [1], [neurons] or [rows, neurons].
  static OperandRows take(Arrays& operands, const char* name, Index rows, Index neurons, const Arrays::Types& types) {
    OperandRows out;
    out.neurons_ = neurons;
    if (operands.nextLength(1) >= 0) {
      out.form_ = Form::kRows;
      out.array_ = operands.take(name, {rows, neurons}, types);
    } else {
      const bool is_one = operands.nextLength(0) == 1;
      out.form_ = is_one ? Form::kOne : Form::kNeurons;
      out.array_ = operands.take(name, {is_one ? 1 : neurons}, types);
    }
    return out;
  }

  bool isOne() const { return form_ == Form::kOne; }
  bool isPerRow() const { return form_ == Form::kRows; }

  // `count` columns of a row from `first` on: in place, or in `scratch`, which holds as many numbers.
  const float* read(Index group, Index row, Index first, Index count, float* scratch) const {
    const Numbers numbers = array_.numbers(group);
    if (form_ == Form::kOne) {
      float one;
      numbers.read(0, 1, &one);
      std::fill_n(scratch, count, one);
      return scratch;
    }
    const Index place = form_ == Form::kRows ? row * neurons_ + first : first;
    if (!numbers.is_bfloat16) return numbers.float32() + place;
    numbers.read(place, count, scratch);
    return scratch;
  }

 private:
  enum class Form { kOne, kNeurons, kRows };

  Array array_;
  Form form_ = Form::kOne;
  Index neurons_ = 0;
};

}  // namespace snnjax
