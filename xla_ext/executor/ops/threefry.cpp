// Random bits, element by element: one codelet in place of XLA's two hundred small operations.
#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {
namespace {

void checkThreefry(const OperationCheck& op) {
  op.needCounts(4, 2, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    op.need(op.input(i).dtype == Dtype::kUint32, "work on uint32");
    op.need(op.input(i).shape == op.output().shape || (i < 2 && op.input(i).numElements() == 1),
            "have counters of the outputs' shape and such keys or single ones");
  }
  for (std::size_t i = 0; i < 2; ++i) {
    op.need(op.output(i).dtype == Dtype::kUint32, "give uint32");
    op.needOutput(op.input(2).shape, i);
  }
}

void threefry(Lowering& lowering, const Instruction& instruction) {
  const Layouts& layouts = lowering.layouts();
  const Shape& shape = lowering.type(instruction.outputs[0]).shape;
  const bool single_key = productOf(lowering.type(instruction.inputs[0]).shape) == 1 &&
                          productOf(lowering.type(instruction.inputs[1]).shape) == 1;
  std::vector<poplar::Tensor> fields;
  for (const ValueId input : instruction.inputs) {
    const poplar::Tensor tensor = lowering.get(input);
    const bool one = tensor.numElements() == 1;
    fields.push_back(one && !single_key ? tensor.flatten().broadcast(asUnsigned(productOf(shape)), 0)
                     : one              ? tensor.flatten()
                                        : layouts.memoryOrder(tensor));
  }
  for (const ValueId output : instruction.outputs) fields.push_back(layouts.memoryOrder(lowering.make(output)));
  ComputeStep step(lowering, "threefry");
  const std::vector<std::size_t>& cuts = layouts.cuts(shape);
  for (std::size_t tile = 0; tile < layouts.tiles(); ++tile) {
    if (cuts[tile] == cuts[tile + 1]) continue;
    const auto part = [&](std::size_t field) { return fields[field].slice(cuts[tile], cuts[tile + 1]); };
    const auto key = [&](std::size_t field) { return single_key ? fields[field] : part(field); };
    step.add("snnjax::Threefry", tile,
             {{"key0", key(0)},
              {"key1", key(1)},
              {"in0", part(2)},
              {"in1", part(3)},
              {"out0", part(4)},
              {"out1", part(5)},
              {"count", asUnsigned(cuts[tile + 1] - cuts[tile])},
              {"single_key", single_key}});
  }
  step.execute();
}

}  // namespace

extern const Operation kThreefry = {checkThreefry, threefry};

}  // namespace snnjax::executor::ops
