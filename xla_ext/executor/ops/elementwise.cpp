#include "executor/ops/elementwise.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <poputil/VertexTemplates.hpp>
#include <system_error>

#include "elementwise/chain_source.hpp"
#include "elementwise/vertices.hpp"
#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/storages.hpp"

namespace snnjax::executor {
namespace {

using namespace elementwise;
using Place = ElementwiseProgram::Operand::Place;

// The folder with the headers of poplar_kernels, if chains are compiled to code of their own. An SDK's build does so;
// the model, where compiling one takes seconds, interprets them at that code's cost, unless the environment names the
// folder.
std::optional<std::string> kernelHeaders() {
  if (const char* const folder = std::getenv("SNNJAX_IPU_GENERATE")) {
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::path(folder) / kChainHeader, ignored)) return folder;
    throw Error(ErrorCode::kInvalidArgument,
                "compile: `SNNJAX_IPU_GENERATE` must name the folder poplar_kernels of snnjax's sources, got \"" +
                    std::string(folder) + "\". Unset it: results and cycles are the same.");
  }
#ifdef SNNJAX_KERNEL_HEADERS
  return SNNJAX_KERNEL_HEADERS;
#else
  return {};
#endif
}

std::vector<unsigned> tilesOf(const std::vector<std::size_t>& cuts) {
  std::vector<unsigned> tiles;
  for (unsigned tile = 0; tile + 1 < cuts.size(); ++tile) {
    if (cuts[tile] < cuts[tile + 1]) tiles.push_back(tile);
  }
  return tiles;
}

// The rows of a program on some tiles, and where among them its inputs and outputs lie.
struct Rows {
  TiledRows tiled;
  std::vector<ElementwiseProgram::Operand> inputs;
  std::vector<unsigned> outputs;
};

Rows rowsOf(const std::vector<ChainInput>& inputs, const std::vector<poplar::Tensor>& outputs,
            const std::vector<unsigned>& tiles, const std::vector<std::size_t>& cuts) {
  Rows rows;
  const auto parts = [&](const poplar::Tensor& whole) {
    TiledRows::Parts all;
    for (const unsigned tile : tiles) all.push_back(whole.slice(cuts[tile], cuts[tile + 1]));
    return all;
  };
  for (const poplar::Tensor& output : outputs) {
    rows.outputs.push_back(TiledRows::add(rows.tiled.out, parts(output)));
  }
  for (const ChainInput& input : inputs) {
    unsigned row = input.place == Place::kOutput ? rows.outputs[input.output] : 0;
    if (input.place == Place::kRow) row = TiledRows::add(rows.tiled.in, parts(input.memory));
    if (input.place == Place::kSingle) {
      row = TiledRows::add(rows.tiled.in, TiledRows::Parts(tiles.size(), input.memory));
    }
    rows.inputs.push_back({input.place, row, input.bits});
  }
  return rows;
}

// One vertex of the code of its own on each tile.
void addGenerated(Lowering& lowering, const poplar::ComputeSet& set, const Rows& rows,
                  const std::vector<unsigned>& tiles, const ElementwiseProgram& program, const std::string& headers) {
  poplar::Graph& graph = lowering.graph();
  const ChainSource source = chainSource(program.steps(), rows.inputs, rows.outputs);
  lowering.addCodelet(source.name, source.text, "-O3 -std=c++20 -I" + headers);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const poplar::VertexRef vertex = graph.addVertex(set, "snnjax::" + source.name);
    graph.setTileMapping(vertex, tiles[i]);
    std::size_t count = 0;
    for (const ChainField& field : source.fields) {
      const auto& of_width = (field.is_output ? rows.tiled.out : rows.tiled.in)[TiledRows::widthOf(field.width)];
      graph.connect(vertex[field.name], of_width[field.row][i]);
      if (field.is_output) count = of_width[field.row][i].numElements();
    }
    graph.setInitialValue(vertex["count"], static_cast<unsigned>(count));
  }
}

}  // namespace

void runChain(Lowering& lowering, const ElementwiseProgram& program, const std::vector<ChainInput>& inputs,
              const std::vector<poplar::Tensor>& outputs, const Layout& layout, const poplar::DebugContext& debug) {
  const std::vector<unsigned> tiles = tilesOf(layout.cuts());
  if (tiles.empty()) return;
  const Rows rows = rowsOf(inputs, outputs, tiles, layout.cuts());
  const poplar::ComputeSet set = lowering.graph().addComputeSet(debug);
  if (const auto headers = kernelHeaders()) {
    addGenerated(lowering, set, rows, tiles, program, *headers);
  } else {
    addVertices(lowering.graph(), set, tiles, rows.tiled, program, rows.inputs, rows.outputs);
  }
  lowering.program().add(poplar::program::Execute(set, debug));
}

unsigned slotBits(const Constant& splat, Dtype dtype) {
  unsigned bits = 0;
  std::memcpy(&bits, splat.bytes.data(), std::min(splat.bytes.size(), sizeof bits));
  switch (dtype) {
    case Dtype::kInt8: return static_cast<unsigned>(static_cast<std::int8_t>(bits));
    case Dtype::kInt16: return static_cast<unsigned>(static_cast<std::int16_t>(bits));
    case Dtype::kBfloat16: return bits << 16;
    case Dtype::kFloat16: return bitsOf<unsigned>(static_cast<float>(bitsOf<half>(static_cast<std::uint16_t>(bits))));
    default: return bits;
  }
}

void fill(Lowering& lowering, const Constant& splat, const poplar::Tensor& to) {
  const poplar::Tensor elements = ops::asBits(lowering.layouts().memoryOrder(to));
  const std::string codelet = poputil::templateVertex("snnjax::Fill", elements.elementType());
  unsigned bits = 0;
  std::memcpy(&bits, splat.bytes.data(), elements.elementType().size());
  const std::vector<std::size_t>& cuts = lowering.layouts().cuts(to.shape());
  ops::ComputeStep step(lowering, "fill");
  for (const unsigned tile : tilesOf(cuts)) {
    const poplar::Interval part(cuts[tile], cuts[tile + 1]);
    const poplar::VertexRef vertex =
        step.add(codelet, tile, {{"out", elements.slice(part)}, {"count", ops::asUnsigned(part.size())}});
    lowering.graph().setInitialValue(vertex["value"], bits);
  }
  step.execute();
}

namespace {

void checkElementwise(const OperationCheck& op) {
  op.need(op.numOutputs() > 0, "have an output");
  for (std::size_t i = 0; i < op.numOutputs(); ++i) {
    if (op.output(i).numElements() != 1) op.needOutput(op.output().shape, i);
    op.need(op.output(i).numElements() == op.output().numElements(), "have outputs of one size");
  }
  for (std::size_t i = 0; i < op.numInputs(); ++i) {
    op.need(op.input(i).shape == op.output().shape || op.input(i).numElements() == 1,
            "have inputs of the outputs' shape or of one element");
  }
  std::vector<Dtype> inputs, outputs;
  for (std::size_t i = 0; i < op.numInputs(); ++i) inputs.push_back(op.input(i).dtype);
  for (std::size_t i = 0; i < op.numOutputs(); ++i) outputs.push_back(op.output(i).dtype);
  const std::string wrong = elementwiseProblem(op.instruction(), inputs, outputs);
  op.need(wrong.empty(), wrong);
}

// The input that each output overwrites; the number of inputs if none.
std::vector<std::size_t> chooseInPlace(Lowering& lowering, const Instruction& instruction,
                                       const ElementwiseProgram& program) {
  const std::vector<ValueId>& inputs = instruction.inputs;
  std::vector<std::size_t> chosen(instruction.outputs.size(), inputs.size());
  for (std::size_t output = 0; output < chosen.size(); ++output) {
    std::vector<std::size_t> order(inputs.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const ValueId value = instruction.outputs[output];
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return lowering.wants(value, inputs[i]); });
    for (const std::size_t i : order) {
      if (!program.mayOverwrite(i, output) || !lowering.takeOver(value, inputs[i])) continue;
      chosen[output] = i;
      break;
    }
  }
  return chosen;
}

void lower(Lowering& lowering, const Instruction& instruction) {
  const ElementwiseProgram program = elementwiseProgram(instruction);
  const std::vector<ValueId>& values = instruction.inputs;
  const Shape& shape = lowering.type(instruction.outputs[0]).shape;
  std::vector<ChainInput> inputs;
  for (const ValueId value : values) {
    ChainInput& input = inputs.emplace_back();
    if (const Constant* splat = lowering.splatOf(value); splat != nullptr) {
      input.place = Place::kConstant;
      input.bits = slotBits(*splat, lowering.type(value).dtype);
    } else if (lowering.type(value).shape != shape) {
      input.place = Place::kSingle;
      input.memory = lowering.get(value).flatten();
    } else {
      input.memory = lowering.memory(value);
    }
  }
  const std::vector<std::size_t> over = chooseInPlace(lowering, instruction, program);
  std::vector<poplar::Tensor> outputs;
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over[i] == values.size()) {
      lowering.make(instruction.outputs[i]);
    } else {
      inputs[over[i]].place = Place::kOutput;
      inputs[over[i]].output = i;
    }
    outputs.push_back(lowering.memory(instruction.outputs[i]));
  }
  runChain(lowering, program, inputs, outputs, lowering.layouts().ofValue(instruction.outputs[0]), lowering.debug());
}

}  // namespace

namespace ops {
extern const Operation kElementwise = {checkElementwise, lower};
}

}  // namespace snnjax::executor
