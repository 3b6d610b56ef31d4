#include "executor/targets/network_record.hpp"

#include <any>
#include <memory>

namespace snnjax::executor::targets {
namespace {

struct Record {
  poplar::Tensor mark;
  std::shared_ptr<const NetworkOnTiles> network;
};
using Records = std::vector<Record>;

Records& recordsOf(Lowering& lowering) {
  std::any& notes = lowering.notes();
  if (!notes.has_value()) notes = Records();
  return std::any_cast<Records&>(notes);
}

}  // namespace

void keepRecord(Lowering& lowering, const Instruction& instruction, std::size_t first, const NetworkOnTiles& network) {
  const auto kept = std::make_shared<const NetworkOnTiles>(network);
  for (std::size_t i = first; i < instruction.outputs.size(); ++i) {
    const ArrayType& type = lowering.type(instruction.outputs[i]);
    const poplar::Tensor mark = lowering.graph().addVariable(poplarType(type.dtype), {1}, lowering.debug("record"));
    lowering.graph().setTileMapping(mark, network.plan.layers.front().tiles.first);
    lowering.graph().setInitialValue(mark, 0);
    recordsOf(lowering).push_back({mark, kept});
    const auto elements = static_cast<unsigned>(type.numElements());
    lowering.bind(instruction.outputs[i], mark.broadcast(elements, 0).reshape(type.shape));
  }
}

const NetworkOnTiles* findRecord(Lowering& lowering, ValueId value) {
  const poplar::Tensor tensor = lowering.get(value).flatten();
  if (tensor.numElements() == 0) return nullptr;
  for (const Record& record : recordsOf(lowering)) {
    if (tensor.slice(0, 1) == record.mark) return record.network.get();
  }
  return nullptr;
}

}  // namespace snnjax::executor::targets
