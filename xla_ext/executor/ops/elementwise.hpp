// Chains of elementwise operations on tensors, by the codelet ElementwiseChain: one vertex a tile and pass.
#pragma once

#include <poplar/Tensor.hpp>
#include <vector>

#include "executor/lowering.hpp"
#include "executor/plan/elementwise_program.hpp"

namespace snnjax::executor {

struct ChainInput {
  ElementwiseProgram::Operand::Place place = ElementwiseProgram::Operand::Place::kRow;
  poplar::Tensor memory;   // flat, in memory order of the outputs' shape; one element if single
  std::size_t output = 0;  // whose memory it is, if kOutput
  unsigned bits = 0;       // if a constant
};

// Runs a program over arrays of one layout. `outputs` are flat and in memory order.
void runChain(Lowering& lowering, const ElementwiseProgram& program, const std::vector<ChainInput>& inputs,
              const std::vector<poplar::Tensor>& outputs, const Layout& layout, const poplar::DebugContext& debug);

// Writes a splat constant to a tensor of any shape in the layout of that shape.
void fill(Lowering& lowering, const Constant& splat, const poplar::Tensor& to);

// The bits that a slot holds for the constant's one element.
unsigned slotBits(const Constant& splat, Dtype dtype);

}  // namespace snnjax::executor
