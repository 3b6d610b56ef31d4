#include "executor/uses.hpp"

#include <functional>

namespace snnjax::executor {
namespace {

void forEachUse(const Block& block, const std::function<void(ValueId)>& visit) {
  for (const Instruction& instruction : block.instructions) {
    for (const ValueId value : instruction.inputs) visit(value);
    for (const Block& inner : instruction.blocks) forEachUse(inner, visit);
  }
  for (const ValueId value : block.results) visit(value);
}

}  // namespace

std::unordered_map<ValueId, std::size_t> lastUses(const Block& block) {
  std::unordered_map<ValueId, std::size_t> last;
  for (const ValueId value : block.parameters) last[value] = 0;
  for (std::size_t i = 0; i < block.instructions.size(); ++i) {
    const Instruction& instruction = block.instructions[i];
    const auto use = [&](ValueId value) {
      // What blocks around this one define is theirs to count.
      if (const auto own = last.find(value); own != last.end()) own->second = i;
    };
    for (const ValueId value : instruction.inputs) use(value);
    for (const Block& inner : instruction.blocks) forEachUse(inner, use);
    for (const ValueId value : instruction.outputs) last[value] = i;
  }
  for (const ValueId value : block.results) {
    if (const auto own = last.find(value); own != last.end()) own->second = kAtTheEnd;
  }
  return last;
}

}  // namespace snnjax::executor
