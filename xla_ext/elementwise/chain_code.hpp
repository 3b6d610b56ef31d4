// The code of an elementwise program, line by line: what chain_source.cpp prints, and chain_cost.cpp counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "elementwise/bundles.hpp"
#include "elementwise/program.hpp"

namespace snnjax::elementwise {

constexpr unsigned kMostElements = 4;  // of a body

// Instructions of which each needs the one before: `count` for each `at_once` elements.
struct Stage {
  Pipe pipe;
  unsigned count, at_once;
};

struct ChainLine {
  std::string text;  // const auto f2 = add(f0, f1);
  std::vector<unsigned> reads;
  std::optional<unsigned> writes;  // a register
  std::vector<Stage> stages;
};

// A row that the code reads or writes.
struct ChainField {
  std::string name;  // in0, out_halves1
  bool is_output;    // the row belongs to an output, and may be an input as well
  unsigned width;    // bytes of an element
  unsigned row;      // among those of its width
  bool is_read = false, is_written = false;
};

struct ChainCode {
  std::vector<std::string> before;  // the loop: what all elements share
  std::vector<ChainLine> lines;     // of its body
  std::vector<ChainField> fields;   // field k is the pointer pk of the code
  unsigned registers = 0;           // that the lines name
};

// The body for so many elements, 4, 2 or 1: its text is the same for all, its instructions are not. `inputs` says where
// the inputs lie, `outputs` which rows the outputs are among those of their width.
ChainCode chainCode(const std::vector<ElementwiseProgram::Step>& steps,
                    const std::vector<ElementwiseProgram::Operand>& inputs, const std::vector<unsigned>& outputs,
                    unsigned elements);

// Whether all elements have the same: a constant, or a row of one element.
bool isShared(const ElementwiseProgram::Step& step, const std::vector<ElementwiseProgram::Operand>& inputs);

}  // namespace snnjax::elementwise
