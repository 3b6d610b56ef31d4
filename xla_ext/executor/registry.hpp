// The lowerings of all operations, each in a file of ops/ or views.cpp, control_flow.cpp, ...
#pragma once

#include "executor/lowering.hpp"

namespace snnjax::executor::ops {

void elementwise(Lowering& lowering, const Instruction& instruction);

void broadcastInDim(Lowering& lowering, const Instruction& instruction);
void reshape(Lowering& lowering, const Instruction& instruction);
void transpose(Lowering& lowering, const Instruction& instruction);
void slice(Lowering& lowering, const Instruction& instruction);
void reverse(Lowering& lowering, const Instruction& instruction);
void concatenate(Lowering& lowering, const Instruction& instruction);
void bitcast(Lowering& lowering, const Instruction& instruction);

void whileLoop(Lowering& lowering, const Instruction& instruction);
void repeat(Lowering& lowering, const Instruction& instruction);
void caseOf(Lowering& lowering, const Instruction& instruction);

void customCall(Lowering& lowering, const Instruction& instruction);
void callback(Lowering& lowering, const Instruction& instruction);

// ops/
void allGather(Lowering& lowering, const Instruction& instruction);
void allReduce(Lowering& lowering, const Instruction& instruction);
void allToAll(Lowering& lowering, const Instruction& instruction);
void argReduce(Lowering& lowering, const Instruction& instruction);
void collectivePermute(Lowering& lowering, const Instruction& instruction);
void cumulative(Lowering& lowering, const Instruction& instruction);
void dot(Lowering& lowering, const Instruction& instruction);
void dynamicSlice(Lowering& lowering, const Instruction& instruction);
void dynamicUpdateSlice(Lowering& lowering, const Instruction& instruction);
void gather(Lowering& lowering, const Instruction& instruction);
void iota(Lowering& lowering, const Instruction& instruction);
void pad(Lowering& lowering, const Instruction& instruction);
void partitionId(Lowering& lowering, const Instruction& instruction);
void reduce(Lowering& lowering, const Instruction& instruction);
void reduceScatter(Lowering& lowering, const Instruction& instruction);
void scatter(Lowering& lowering, const Instruction& instruction);
void sort(Lowering& lowering, const Instruction& instruction);
void threefry(Lowering& lowering, const Instruction& instruction);
void topK(Lowering& lowering, const Instruction& instruction);

}  // namespace snnjax::executor::ops
