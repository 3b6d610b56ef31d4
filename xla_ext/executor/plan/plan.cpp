#include "executor/plan/plan.hpp"

#include <array>
#include <functional>
#include <numeric>

namespace snnjax::executor {
namespace {

struct DtypeFacts {
  const char* name;
  std::size_t bytes;
};

// In the order of Dtype, from 1.
constexpr std::array<DtypeFacts, kNumDtypes> kDtypes = {{{"bool", 1},
                                                         {"s8", 1},
                                                         {"s16", 2},
                                                         {"s32", 4},
                                                         {"s64", 8},
                                                         {"u8", 1},
                                                         {"u16", 2},
                                                         {"u32", 4},
                                                         {"u64", 8},
                                                         {"f16", 2},
                                                         {"f32", 4},
                                                         {"f64", 8},
                                                         {"bf16", 2},
                                                         {"c64", 8}}};

const DtypeFacts& factsOf(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype) - 1]; }

void forEachUse(const Block& block, const std::function<void(ValueId)>& visit) {
  for (const Instruction& instruction : block.instructions) {
    for (const ValueId value : instruction.inputs) visit(value);
    for (const Block& inner : instruction.blocks) forEachUse(inner, visit);
  }
  for (const ValueId value : block.results) visit(value);
}

}  // namespace

std::size_t numBytes(Dtype dtype) { return factsOf(dtype).bytes; }
std::string toString(Dtype dtype) { return factsOf(dtype).name; }

std::size_t ArrayType::numElements() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::size_t ArrayType::numBytes() const { return numElements() * factsOf(dtype).bytes; }

ArrayType storedAs(const ArrayType& type) {
  if (type.dtype != Dtype::kComplex64) return type;
  ArrayType stored{Dtype::kFloat32, type.shape};
  stored.shape.push_back(2);
  return stored;
}

ArrayType asComplex(const ArrayType& stored) {
  return {Dtype::kComplex64, {stored.shape.begin(), stored.shape.end() - 1}};
}

std::string ArrayType::toString() const {
  std::string text = std::string(factsOf(dtype).name) + "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

std::unordered_set<ValueId> readInside(const Instruction& instruction) {
  std::unordered_set<ValueId> values;
  for (const Block& block : instruction.blocks) {
    forEachUse(block, [&values](ValueId value) { values.insert(value); });
  }
  return values;
}

std::unordered_map<ValueId, std::size_t> lastUses(const Block& block) {
  std::unordered_map<ValueId, std::size_t> last;
  for (const ValueId value : block.parameters) last[value] = 0;
  for (std::size_t i = 0; i < block.instructions.size(); ++i) {
    const Instruction& instruction = block.instructions[i];
    const auto use = [&](ValueId value) {
      // Values defined by enclosing blocks are counted there.
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
