// The library's own ops, and functions of the host.
#include "executor/registry.hpp"

namespace snnjax::executor::ops {

void customCall(Lowering& lowering, const Instruction& instruction) {
  const Lower target = findTarget(instruction.texts[0]);
  if (target == nullptr) lowering.refuse(instruction, "has no codelets", "Run this part on the CPU");
  target(lowering, instruction);
}

void callback(Lowering& lowering, const Instruction& instruction) {
  std::vector<poplar::Tensor> arrays;
  for (const ValueId value : instruction.inputs) arrays.push_back(lowering.get(value).flatten());
  const poplar::HostFunction function = lowering.hostFunction(instruction.ints[0][0], instruction.inputs);
  lowering.program().add(poplar::program::Call(function, arrays, {}, lowering.debug()));
}

}  // namespace snnjax::executor::ops
