// Programs of elementwise operations, and their words for the codelets of elementwise_chain.cpp.
#pragma once

#include <vector>

#include "poplar_kernels/elementwise/elementwise_chain_ops.hpp"

namespace snnjax::elementwise {

class ElementwiseProgram {
 public:
  // An operation on slots; loads and stores also have the number of an input or output, constants their bits.
  struct Step {
    snnjax::chain::Opcode opcode;
    unsigned to = 0;
    std::vector<unsigned> from;
    unsigned number = 0;
  };

  // Steps write slots before they read them, and each output once.
  explicit ElementwiseProgram(std::vector<Step> steps);

  const std::vector<Step>& steps() const { return steps_; }

  // Where inputs are found: in their own row, in that of an output that overwrites them, as one broadcast element, or
  // as a constant.
  struct Operand {
    enum class Place { kRow, kOutput, kSingle, kConstant } place = Place::kRow;
    unsigned row = 0;  // among the inputs of the same width, or the outputs
    unsigned bits = 0;
  };
  struct Code {
    std::vector<unsigned> words;
    unsigned once = 0;  // words that fill slots before the first block
  };
  // The words for rows of such places; outputs are rows by number among those of their width.
  Code encoded(const std::vector<Operand>& inputs, const std::vector<unsigned>& outputs) const;

  // Whether an input's last element has been read before an output's is written, so that they may be one row.
  bool mayOverwrite(std::size_t input, std::size_t output) const;

 private:
  static std::vector<unsigned> words(const Step& step, const Operand* operand, const std::vector<unsigned>& outputs);
  void aimStores();

  std::vector<Step> steps_;
};

bool isLoad(snnjax::chain::Opcode opcode);
bool isStore(snnjax::chain::Opcode opcode);

}  // namespace snnjax::elementwise
