#include "executor/targets/operands.hpp"

#include <popops/Cast.hpp>
#include <sstream>

namespace snnjax::executor::targets {
namespace {

// [tiles, rows, columns]
poplar::Tensor inBlocks(const poplar::Tensor& blocks, const builders::TileRange& tiles, std::size_t rows) {
  return blocks.reshape({tiles.count, rows, tiles.columns});
}

void setZero(poplar::Graph& graph, const poplar::Tensor& tensor) {
  if (tensor.numElements() > 0) graph.setInitialValue(tensor, 0.0F);
}

// "1,2,3"
template <class Number, class Parse>
std::vector<Number> parts(const std::string& text, Parse&& parse) {
  std::vector<Number> numbers;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) numbers.push_back(parse(part));
  return numbers;
}

}  // namespace

poplar::Tensor asRows(const poplar::Tensor& blocks, const builders::TileRange& tiles, std::size_t rows,
                      std::size_t neurons, std::size_t extra_rows) {
  const poplar::Tensor used = inBlocks(blocks, tiles, rows + extra_rows).slice(0, rows, 1);
  return used.dimShuffle({1, 0, 2}).reshape({rows, std::size_t{tiles.count} * tiles.columns}).slice(0, neurons, 1);
}

void zeroBeside(poplar::Graph& graph, const poplar::Tensor& blocks, const builders::TileRange& tiles, std::size_t rows,
                std::size_t neurons, std::size_t extra_rows) {
  const poplar::Tensor all = inBlocks(blocks, tiles, rows + extra_rows);
  setZero(graph, all.slice(rows, rows + extra_rows, 1));
  const std::size_t in_last = neurons - std::size_t{tiles.count - 1} * tiles.columns;
  setZero(graph, all[tiles.count - 1].slice(0, rows, 0).slice(in_last, tiles.columns, 1));
}

std::optional<Blocks> blocksOf(const builders::TileRange& tiles, std::size_t rows, std::size_t neurons) {
  if (std::size_t{tiles.count} * tiles.columns != neurons) return std::nullopt;
  Blocks blocks;
  blocks.rows = blocks.row_block = rows;
  blocks.columns = neurons;
  blocks.column_block = blocks.spare = tiles.columns;
  blocks.first_tile = tiles.first;
  return blocks;
}

poplar::Tensor weightsInPlace(Lowering& lowering, const builders::TileRange& tiles, std::size_t rows,
                              std::size_t neurons, ValueId value) {
  const std::optional<Blocks> blocks = blocksOf(tiles, rows, neurons);
  const poplar::Tensor memory = blocks ? lowering.memoryIn(*blocks, value) : poplar::Tensor();
  return memory.valid() ? memory.reshape({tiles.count, (rows + 1) * tiles.columns}) : memory;
}

poplar::Tensor gradientInPlace(Lowering& lowering, const builders::TileRange& tiles, std::size_t rows,
                               std::size_t neurons, ValueId result) {
  const std::optional<Blocks> blocks = blocksOf(tiles, rows, neurons);
  if (!blocks || lowering.type(result).dtype != Dtype::kFloat32) return {};
  if (!(lowering.layouts().ofValue(result).blocks() == *blocks)) return {};
  lowering.make(result);
  return weightsInPlace(lowering, tiles, rows, neurons, result);
}

std::size_t dimension(const Plan& plan, ValueId value, std::size_t axis) {
  const std::vector<std::size_t>& shape = plan.types[value].shape;
  if (axis >= shape.size() || shape[0] != 1) {
    throw Error(ErrorCode::kInvalidArgument, "custom_call: `operands` must have one group, and an axis " +
                                                 std::to_string(axis) + ", got " + plan.types[value].toString() +
                                                 ". snnjax/ipu calls a target once a group.");
  }
  return shape[axis];
}

poplar::Tensor operand(Lowering& lowering, const Instruction& instruction, std::size_t index) {
  (void)dimension(lowering, instruction.inputs[index], 0);
  return lowering.get(instruction.inputs[index])[0];
}

void bring(Lowering& lowering, const poplar::Tensor& from, const poplar::Tensor& to) {
  poplar::Tensor source = from;
  if (!(from.elementType() == to.elementType())) {
    source = popops::cast(lowering.graph(), from, to.elementType(), lowering.program(), lowering.debug("cast"));
  }
  if (source.numElements() != to.numElements()) {  // one number or one row for all
    const auto times = static_cast<unsigned>(to.numElements() / source.numElements());
    source = source.numElements() == 1 ? source.flatten().broadcast(times, 0)
                                       : source.flatten().expand({0}).broadcast(times, 0);
  }
  lowering.program().add(poplar::program::Copy(source.flatten(), to.flatten(), false, lowering.debug("operand")));
}

void yield(Lowering& lowering, const Instruction& instruction, std::size_t index, const poplar::Tensor& tensor) {
  const ValueId output = instruction.outputs[index];
  const poplar::Tensor to = lowering.make(output);
  bring(lowering, tensor, to);
}

void yieldZeros(Lowering& lowering, const Instruction& instruction) {
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    const poplar::Tensor out = lowering.make(instruction.outputs[i]);
    if (out.numElements() == 0) continue;
    const poplar::Tensor zero = lowering.graph().addConstant(out.elementType(), {1}, 0, lowering.debug("zero"));
    lowering.graph().setTileMapping(zero, 0);
    bring(lowering, zero, out);
  }
}

bool isHalf(const Plan& plan, const Instruction& instruction, std::size_t index) {
  const Dtype dtype = plan.types[instruction.inputs[index]].dtype;
  if (dtype == Dtype::kFloat16) return true;
  if (dtype == Dtype::kFloat32) return false;
  refuse(plan, instruction, "its numbers must be float16 or float32", "Cast them");
}

bool isLong(const Plan& plan, const Instruction& instruction, std::size_t index) {
  const Dtype dtype = plan.types[instruction.inputs[index]].dtype;
  if (dtype == Dtype::kInt32) return true;
  if (dtype == Dtype::kUint16) return false;
  refuse(plan, instruction, "its ids must be uint16 or int32", "Cast them");
}

unsigned number(const Instruction& instruction, const char* name) {
  return static_cast<unsigned>(std::stoul(attribute(instruction, name)));
}

bool flag(const Instruction& instruction, const char* name) {
  const std::string value = attribute(instruction, name);
  return value == "true" || value == "1";
}

float real(const Instruction& instruction, const char* name) { return std::stof(attribute(instruction, name)); }

std::vector<long> wholeNumbers(const Instruction& instruction, const char* name) {
  return parts<long>(attribute(instruction, name), [](const std::string& part) { return std::stol(part); });
}

std::vector<float> realNumbers(const Instruction& instruction, const char* name) {
  return parts<float>(attribute(instruction, name), [](const std::string& part) { return std::stof(part); });
}

void checkCounts(const Plan& plan, const Instruction& instruction, std::size_t inputs, std::size_t outputs) {
  if (instruction.inputs.size() == inputs && instruction.outputs.size() == outputs) return;
  refuse(plan, instruction,
         "it must have " + std::to_string(inputs) + " operands and " + std::to_string(outputs) + " results",
         "Call it by the op of snnjax");
}

}  // namespace snnjax::executor::targets
