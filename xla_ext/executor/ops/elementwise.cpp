#include "executor/ops/elementwise.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <poputil/VertexTemplates.hpp>
#include <system_error>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/plan/chain_cost.hpp"
#include "executor/plan/chain_source.hpp"
#include "executor/storages.hpp"

namespace snnjax::executor {
namespace {

using Place = ElementwiseProgram::Operand::Place;

// Fields of the codelets, by the bytes of their elements.
struct Width {
  std::size_t bytes;
  const char *in, *out;
};
constexpr std::array<Width, 3> kWidths = {
    {{4, "in", "out"}, {2, "in_halves", "out_halves"}, {1, "in_bytes", "out_bytes"}}};

std::size_t widthOf(const poplar::Tensor& tensor) {
  const std::size_t bytes = tensor.elementType().size();
  return bytes == 4 ? 0 : bytes == 2 ? 1 : 2;
}

poplar::Tensor asUnsigned(const poplar::Tensor& tensor) {
  return tensor.reinterpret(unsignedOf(tensor.elementType().size()));
}

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

// Rows of all widths, and the program that reads and writes them: as code of its own, or as words to be interpreted.
struct Rows {
  std::array<std::vector<poplar::Tensor>, 3> in, out;
  std::array<std::vector<bool>, 3> single;
  std::optional<ChainSource> source;
  ElementwiseProgram::Code code;
  ChainCost cost;

  bool mixed() const { return in[1].size() + in[2].size() + out[1].size() + out[2].size() > 0; }
};

Rows rowsOf(const ElementwiseProgram& program, const std::vector<ChainInput>& inputs,
            const std::vector<poplar::Tensor>& outputs) {
  Rows rows;
  std::vector<unsigned> numbers;
  for (const poplar::Tensor& output : outputs) {
    auto& of_width = rows.out[widthOf(output)];
    numbers.push_back(static_cast<unsigned>(of_width.size()));
    of_width.push_back(asUnsigned(output));
  }
  std::vector<ElementwiseProgram::Operand> operands;
  for (const ChainInput& input : inputs) {
    if (input.place == Place::kConstant || input.place == Place::kOutput) {
      operands.push_back({input.place, input.place == Place::kOutput ? numbers[input.output] : 0, input.bits});
      continue;
    }
    const std::size_t width = widthOf(input.memory);
    operands.push_back({input.place, static_cast<unsigned>(rows.in[width].size()), 0});
    rows.in[width].push_back(asUnsigned(input.memory));
    rows.single[width].push_back(input.place == Place::kSingle);
  }
  if (kernelHeaders()) rows.source = chainSource(program.steps(), operands, numbers);
  rows.code = program.encoded(operands, numbers);
  rows.cost = chainCost(program.steps(), operands, numbers);
  return rows;
}

// The program, one copy on each tile that runs it: [tiles, words].
poplar::Tensor programOnTiles(poplar::Graph& graph, const std::vector<unsigned>& words,
                              const std::vector<unsigned>& tiles) {
  const std::size_t row = (words.size() + 1) / 2 * 2;  // rows begin at 64 bits
  std::vector<unsigned> all(tiles.size() * row);
  for (std::size_t i = 0; i < tiles.size(); ++i)
    std::copy(words.begin(), words.end(), all.begin() + static_cast<std::ptrdiff_t>(i * row));
  const poplar::Tensor programs =
      graph.addConstant(poplar::UNSIGNED_INT, {tiles.size(), row}, poplar::ArrayRef<unsigned>(all), "program");
  for (std::size_t i = 0; i < tiles.size(); ++i) graph.setTileMapping(programs[i], tiles[i]);
  return programs;
}

// Elements [first, last) of the rows that the generated code reads and writes.
void connectGenerated(poplar::Graph& graph, const poplar::VertexRef& vertex, const Rows& rows, poplar::Interval part) {
  for (const ChainField& field : rows.source->fields) {
    const std::size_t width = field.width == 4 ? 0 : field.width == 2 ? 1 : 2;
    const poplar::Tensor& whole = (field.is_output ? rows.out : rows.in)[width][field.row];
    const bool single = !field.is_output && rows.single[width][field.row];
    graph.connect(vertex[field.name], single ? whole : whole.slice(part));
  }
}

// Elements [first, last) of the rows of one width. A field has at least one row, possibly empty.
void connectRows(poplar::Graph& graph, const poplar::VertexRef& vertex, const Rows& rows, std::size_t width,
                 const poplar::Tensor& none, poplar::Interval part) {
  std::vector<poplar::Tensor> in, out;
  for (std::size_t row = 0; row < rows.in[width].size(); ++row) {
    const poplar::Tensor& whole = rows.in[width][row];
    in.push_back(rows.single[width][row] ? whole : whole.slice(part));
  }
  for (const poplar::Tensor& whole : rows.out[width]) out.push_back(whole.slice(part));
  if (in.empty()) in.push_back(none);
  if (out.empty()) out.push_back(none);
  graph.connect(vertex[kWidths[width].in], in);
  graph.connect(vertex[kWidths[width].out], out);
}

std::vector<unsigned> tilesOf(const std::vector<std::size_t>& cuts) {
  std::vector<unsigned> tiles;
  for (unsigned tile = 0; tile + 1 < cuts.size(); ++tile) {
    if (cuts[tile] < cuts[tile + 1]) tiles.push_back(tile);
  }
  return tiles;
}

// One vertex of the code of its own on each tile.
void addGenerated(Lowering& lowering, const poplar::ComputeSet& set, const Rows& rows,
                  const std::vector<unsigned>& tiles, const std::vector<std::size_t>& cuts) {
  poplar::Graph& graph = lowering.graph();
  lowering.addCodelet(rows.source->name, rows.source->text, "-O3 -std=c++20 -I" + kernelHeaders().value());
  for (const unsigned tile : tiles) {
    const poplar::Interval part(cuts[tile], cuts[tile + 1]);
    const poplar::VertexRef vertex = graph.addVertex(set, "snnjax::" + rows.source->name);
    graph.setTileMapping(vertex, tile);
    connectGenerated(graph, vertex, rows, part);
    graph.setInitialValue(vertex["count"], static_cast<unsigned>(part.size()));
  }
}

// One vertex that interprets the program on each tile.
void addInterpreted(Lowering& lowering, const poplar::ComputeSet& set, const Rows& rows,
                    const std::vector<unsigned>& tiles, const std::vector<std::size_t>& cuts) {
  poplar::Graph& graph = lowering.graph();
  const poplar::Tensor programs = programOnTiles(graph, rows.code.words, tiles);
  const std::size_t widths = rows.mixed() ? kWidths.size() : 1;
  std::array<poplar::Tensor, 3> none;
  for (std::size_t width = 0; width < widths; ++width) {
    none[width] = graph.addVariable(unsignedOf(kWidths[width].bytes), {0}, "nothing");
  }
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const poplar::Interval part(cuts[tiles[i]], cuts[tiles[i] + 1]);
    const poplar::VertexRef vertex =
        graph.addVertex(set, rows.mixed() ? "snnjax::MixedElementwiseChain" : "snnjax::ElementwiseChain");
    graph.setTileMapping(vertex, tiles[i]);
    graph.connect(vertex["program"], programs[i]);
    for (std::size_t width = 0; width < widths; ++width) connectRows(graph, vertex, rows, width, none[width], part);
    graph.setInitialValue(vertex["count"], static_cast<unsigned>(part.size()));
    graph.setInitialValue(vertex["once"], rows.code.once);
    graph.setInitialValue(vertex["words"], static_cast<unsigned>(rows.code.words.size()));
    graph.setInitialValue(vertex["pointers"], rows.cost.pointers);
    graph.setInitialValue(vertex["four"], rows.cost.four);
    graph.setInitialValue(vertex["two"], rows.cost.two);
    graph.setInitialValue(vertex["one"], rows.cost.one);
  }
}

}  // namespace

void runChain(Lowering& lowering, const ElementwiseProgram& program, const std::vector<ChainInput>& inputs,
              const std::vector<poplar::Tensor>& outputs, const Layout& layout, const poplar::DebugContext& debug) {
  const std::vector<unsigned> tiles = tilesOf(layout.cuts());
  if (tiles.empty()) return;
  const Rows rows = rowsOf(program, inputs, outputs);
  const poplar::ComputeSet set = lowering.graph().addComputeSet(debug);
  (rows.source ? addGenerated : addInterpreted)(lowering, set, rows, tiles, layout.cuts());
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
  const std::string wrong = ElementwiseProgram::problem(op.instruction(), inputs, outputs);
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
  const ElementwiseProgram program(instruction);
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
