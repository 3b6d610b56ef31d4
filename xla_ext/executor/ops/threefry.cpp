// Random bits, element by element: one codelet, where XLA has two hundred small operations.
#include "executor/ops/compute_step.hpp"
#include "executor/registry.hpp"

namespace snnjax::executor::ops {

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

}  // namespace snnjax::executor::ops
