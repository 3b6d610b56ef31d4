// The targets of custom_call: the library's own ops, on the builders. Their names, operands and attributes are those of
// the CPU kernels (snnjax/ops/*_kernel.py), with one group.
#pragma once

#include "executor/lowering.hpp"

namespace snnjax::executor::targets {

void spikeMatmul(Lowering& lowering, const Instruction& instruction);
void spikeMatmulValuesBackward(Lowering& lowering, const Instruction& instruction);
void spikeMatmulWeightsBackward(Lowering& lowering, const Instruction& instruction);
void selectSpikes(Lowering& lowering, const Instruction& instruction);
void selectSpikesBackward(Lowering& lowering, const Instruction& instruction);
void lifStep(Lowering& lowering, const Instruction& instruction);
void lifStepBackward(Lowering& lowering, const Instruction& instruction);
void lifNetwork(Lowering& lowering, const Instruction& instruction);
void lifNetworkBackward(Lowering& lowering, const Instruction& instruction);

}  // namespace snnjax::executor::targets
