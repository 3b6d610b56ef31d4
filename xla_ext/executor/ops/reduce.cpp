// Reductions. Each tile reduces what it holds, and partial results meet in stages (popops::reduce); sums of halves are
// floats until they are stored. For the position of a line's largest or smallest number, long lines are divided and the
// best of their parts compared.
#include <algorithm>
#include <limits>
#include <popops/Fill.hpp>
#include <popops/Reduce.hpp>
#include <poputil/VertexTemplates.hpp>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/ops/kinds.hpp"

namespace snnjax::executor::ops {
namespace {

bool isNumber(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kInt32 || dtype == Dtype::kUint32;
}
bool isReal(Dtype dtype) { return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16; }

}  // namespace

Kind kindOf(const std::string& kind, Dtype dtype) {
  const bool is_bool = dtype == Dtype::kBool;
  const bool all = kind == "and" || (is_bool && (kind == "minimum" || kind == "multiply"));
  const bool any = kind == "or" || (is_bool && (kind == "maximum" || kind == "add"));
  if (all || any || kind == "xor") {
    if (!is_bool && (!isNumber(dtype) || isReal(dtype))) return {};
    return {all   ? "snnjax::BitAnd"
            : any ? "snnjax::BitOr"
                  : "snnjax::BitXor",
            is_bool ? poplar::UNSIGNED_CHAR : poplar::UNSIGNED_INT};
  }
  if (!isNumber(dtype)) return {};
  const char* const name = kind == "add"        ? "snnjax::Sum"
                           : kind == "multiply" ? "snnjax::Product"
                           : kind == "maximum"  ? "snnjax::Largest"
                                                : "snnjax::Smallest";
  return {name, poplarType(dtype)};
}

double neutralOf(const std::string& kind, Dtype dtype) {
  if (dtype == Dtype::kBool) return kind == "and" || kind == "minimum" || kind == "multiply" ? 1 : 0;
  if (kind == "multiply") return 1;
  if (kind == "and") return dtype == Dtype::kInt32 ? -1 : std::numeric_limits<std::uint32_t>::max();
  if (kind != "maximum" && kind != "minimum") return 0;
  const bool most = kind == "minimum";
  if (isReal(dtype)) return most ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  if (dtype == Dtype::kUint32) return most ? std::numeric_limits<std::uint32_t>::max() : 0;
  return most ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int32_t>::min();
}

namespace {

void checkReduce(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.needKind(0);
  op.needSameDtype(op.input(0), op.output());
  op.needOutput(without(op.input(0).shape, op.dimensions(0, op.input(0).shape.size())));
}

void checkArgReduce(const OperationCheck& op) {
  op.needCounts(1, 2, 1);
  const Shape& shape = op.input(0).shape;
  const Shape result = without(shape, {op.number(0, shape.size())});
  op.needOutput(result, 0);
  op.needOutput(result, 1);
  op.needNumbers(op.input(0));
  op.needSameDtype(op.input(0), op.output(0));
  op.need(op.output(1).dtype == Dtype::kInt32, "give indices of int32");
  const auto& texts = op.instruction().texts;
  op.need(!texts.empty() && (texts[0] == "maximum" || texts[0] == "minimum"), "seek the maximum or the minimum");
}

using Dimensions = std::vector<std::size_t>;

// {rows, the rest} with the reduced dimensions first.
poplar::Tensor asMatrix(const poplar::Tensor& in, const Dimensions& dimensions) {
  std::vector<unsigned> order(dimensions.begin(), dimensions.end());
  for (unsigned d = 0; d < in.rank(); ++d) {
    if (std::ranges::count(dimensions, d) == 0) order.push_back(d);
  }
  std::size_t rows = 1;
  for (const std::size_t d : dimensions) rows *= in.dim(static_cast<unsigned>(d));
  return in.dimShuffle(order).reshape({rows, in.numElements() / rows});
}

// One vertex for each tile of the output: all numbers of a result meet there.
void reduceAtOnce(Lowering& lowering, const std::string& op, const poplar::Tensor& matrix, const poplar::Tensor& out) {
  const std::vector<std::size_t>& cuts = lowering.layouts().cuts(out.shape());
  ComputeStep step(lowering, "reduce");
  std::vector<poplar::Tensor> rows;
  for (std::size_t row = 0; row < matrix.dim(0); ++row) {
    rows.push_back(lowering.layouts().memoryOrder(matrix[row].reshape(out.shape())).expand({0}));
  }
  const poplar::Tensor in = poplar::concat(rows), to = lowering.layouts().memoryOrder(out);
  for (std::size_t tile = 0; tile + 1 < cuts.size(); ++tile) {
    if (cuts[tile] == cuts[tile + 1]) continue;
    step.add(poputil::templateVertex("snnjax::Reduce", op, in.elementType(), out.elementType()), tile,
             {{"in", in.slice(cuts[tile], cuts[tile + 1], 1).flatten()},
              {"out", to.slice(cuts[tile], cuts[tile + 1])},
              {"outer", 1U},
              {"rows", asUnsigned(matrix.dim(0))},
              {"inner", asUnsigned(cuts[tile + 1] - cuts[tile])}});
  }
  step.execute();
}

popops::Operation operationOf(const Kind& kind) {
  using enum popops::Operation;
  if (kind.name == "snnjax::Sum") return ADD;
  if (kind.name == "snnjax::Product") return MUL;
  if (kind.name == "snnjax::Largest") return MAX;
  if (kind.name == "snnjax::Smallest") return MIN;
  return kind.name == "snnjax::BitAnd" ? LOGICAL_AND : LOGICAL_OR;
}

// Slices along the leading dimension, of which all tiles hold a part, are reduced in place.
poplar::Tensor reduceLeading(Lowering& lowering, const Kind& kind, const poplar::Tensor& in,
                             const poplar::Tensor& out) {
  const Layouts& layouts = lowering.layouts();
  const std::vector<std::size_t>& cuts = layouts.cuts(out.shape());
  const std::size_t rows = in.numElements() / out.numElements();
  const poplar::Tensor from = layouts.memoryOrder(in), to = layouts.memoryOrder(out);
  ComputeStep step(lowering, "reduce");
  for (std::size_t tile = 0; tile < layouts.tiles(); ++tile) {
    if (cuts[tile] == cuts[tile + 1]) continue;
    step.add(poputil::templateVertex("snnjax::Reduce", kind.name, in.elementType(), out.elementType()), tile,
             {{"in", from.slice(cuts[tile] * rows, cuts[tile + 1] * rows)},
              {"out", to.slice(cuts[tile], cuts[tile + 1])},
              {"outer", 1U},
              {"rows", asUnsigned(rows)},
              {"inner", asUnsigned(cuts[tile + 1] - cuts[tile])}});
  }
  step.execute();
  return out;
}

// Row by row, evenly over all tiles.
poplar::Tensor spreadEvenly(Lowering& lowering, const poplar::Tensor& in) {
  const std::size_t tiles = lowering.layouts().tiles(), each = ceilDivide(in.numElements(), tiles);
  std::vector<std::size_t> counts(tiles);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    counts[tile] = std::min(each, in.numElements() - std::min(in.numElements(), tile * each));
  }
  const poplar::Tensor to = lowering.makeScratch(in.elementType(), counts).reshape(in.shape());
  copy(lowering, in, to, "spread");
  return to;
}

void fill(Lowering& lowering, const poplar::Tensor& out, double value) {
  poplar::Graph& graph = lowering.graph();
  const poplar::Type type = out.elementType();
  const poplar::DebugContext debug = lowering.debug("neutral");
  const bool is_real = type == poplar::FLOAT || type == poplar::HALF;
  const poplar::Tensor one = is_real ? graph.addConstant(type, {1}, value, debug)
                                     : graph.addConstant(type, {1}, static_cast<long long>(value), debug);
  graph.setTileMapping(one, 0);
  copy(lowering, one.broadcast(asUnsigned(out.numElements()), 0), out.flatten(), "neutral");
}

// What is left of a reduction once each tile has reduced what it holds of the leading dimension.
struct Rest {
  poplar::Tensor in;
  Dimensions dimensions;
};

// The first dimension of more than one element, where the layout keeps its slices on the tiles: it is reduced in place,
// directly into `out` if nothing else is reduced; if it is kept, the array is spread evenly.
Rest withoutLeading(Lowering& lowering, const Kind& kind, Rest rest, const poplar::Tensor& out) {
  if (lowering.layouts().of(rest.in.shape()).blocks().leading == 1) return rest;
  std::size_t leading = 0;
  while (rest.in.dim(asUnsigned(leading)) == 1) ++leading;
  const auto found = std::ranges::find(rest.dimensions, leading);
  if (found == rest.dimensions.end() || rest.in.elementType() == poplar::BOOL) {
    return {spreadEvenly(lowering, rest.in), rest.dimensions};
  }
  rest.dimensions.erase(found);
  for (std::size_t& d : rest.dimensions) d -= d > leading ? 1 : 0;
  if (rest.dimensions.empty()) return {reduceLeading(lowering, kind, rest.in, out), {}};
  Shape shape = rest.in.shape();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(leading));
  const poplar::Type type = rest.in.elementType() == poplar::HALF ? poplar::FLOAT : rest.in.elementType();
  return {reduceLeading(lowering, kind, rest.in, lowering.makeTemporary(type, shape)), rest.dimensions};
}

bool isOfBits(const Kind& kind) {
  return kind.name == "snnjax::BitXor" || (kind.type == poplar::UNSIGNED_INT && kind.name.starts_with("snnjax::Bit"));
}

// The parts of a line with more numbers than it pays to bring to one tile.
std::size_t partsOfLine(std::size_t lines, std::size_t length, std::size_t tiles) {
  constexpr std::size_t kLeastPart = 256;
  return std::clamp<std::size_t>(std::min(length / kLeastPart, tiles / std::max<std::size_t>(1, lines)), 1, tiles);
}

struct Best {
  poplar::Tensor values, numbers;  // {lines, parts}, or {lines} of all
};

// The best of columns [first, last) of each line; numbers count from `first`, or are given.
struct Columns {
  std::size_t first, last;
};

class ArgReduce {
 public:
  ArgReduce(Lowering& lowering, const std::string& op, const poplar::Type& type)
      : lowering_(lowering), codelet_(poputil::templateVertex("snnjax::ArgReduce", op, type)) {}

  // One vertex for each part of each tile's lines, on tiles one after the other.
  void add(const poplar::Tensor& lines, const poplar::Tensor* numbers, const std::vector<Columns>& parts,
           const Best& out) {
    const std::vector<LinesOfTile> spread = spreadLines(lowering_, lines.dim(0));
    const std::size_t tiles = lowering_.layouts().tiles();
    const poplar::Tensor none = unused();
    ComputeStep step(lowering_, "best");
    for (const LinesOfTile& of_tile : spread) {
      const std::size_t last = of_tile.first + of_tile.count;
      for (std::size_t part = 0; part < parts.size(); ++part) {
        const auto block = [&](const poplar::Tensor& of) {
          return of.slice(of_tile.first, last).slice(parts[part].first, parts[part].last, 1).flatten();
        };
        const auto to = [&](const poplar::Tensor& of) {
          return of.slice(of_tile.first, last).slice(part, part + 1, 1);
        };
        step.add(codelet_, (of_tile.tile * parts.size() + part) % tiles,
                 {{"in", block(lines)},
                  {"numbers", numbers == nullptr ? none : block(*numbers)},
                  {"best", to(out.values).flatten()},
                  {"number", to(out.numbers).flatten()},
                  {"outer", asUnsigned(of_tile.count)},
                  {"rows", asUnsigned(parts[part].last - parts[part].first)},
                  {"inner", 1U},
                  {"first_number", static_cast<int>(parts[part].first)},
                  {"has_numbers", numbers != nullptr}});
      }
    }
    step.execute();
  }

 private:
  poplar::Tensor unused() {
    const poplar::Tensor one = lowering_.graph().addConstant(poplar::INT, {1}, 0, lowering_.debug("unused"));
    lowering_.graph().setTileMapping(one, 0);
    return one;
  }

  Lowering& lowering_;
  std::string codelet_;
};

void reduce(Lowering& lowering, const Instruction& instruction) {
  const ArrayType& type = lowering.type(instruction.inputs[0]);
  const std::string& name = instruction.texts[0];
  const Kind kind = kindOf(name, type.dtype);
  if (kind.name.empty())
    lowering.refuse(instruction, "cannot `" + name + "` these elements", "Convert them to 32 bits");
  const poplar::Tensor in = lowering.get(instruction.inputs[0]);
  const poplar::Tensor out = lowering.make(instruction.outputs[0]);
  const Dimensions dimensions(instruction.ints[0].begin(), instruction.ints[0].end());
  if (out.numElements() == 0) return;
  if (in.numElements() == 0) return fill(lowering, out, neutralOf(name, type.dtype));
  if (dimensions.empty()) return copy(lowering, in, out, "reduce");
  if (isOfBits(kind)) {
    return reduceAtOnce(lowering, kind.name, asMatrix(in.reinterpret(kind.type), dimensions),
                        out.reinterpret(kind.type));
  }
  Rest rest = withoutLeading(lowering, kind, {in, dimensions}, out);
  if (rest.dimensions.empty()) return;
  if (rest.dimensions.size() == rest.in.rank()) rest = {lowering.layouts().memoryOrder(rest.in), {0}};
  popops::reduceWithOutput(lowering.graph(), rest.in, out, rest.dimensions, operationOf(kind), lowering.program(),
                           lowering.debug("reduce"));
}

void argReduce(Lowering& lowering, const Instruction& instruction) {
  const auto dimension = static_cast<std::size_t>(instruction.ints[0][0]);
  const poplar::Tensor lines = asLines(lowering.get(instruction.inputs[0]), dimension);
  const std::size_t count = lines.dim(0), length = lines.dim(1);
  const poplar::Tensor values = lowering.make(instruction.outputs[0]), numbers = lowering.make(instruction.outputs[1]);
  const Best out{values.reshape({count, 1}), numbers.reshape({count, 1})};
  const char* const op = instruction.texts[0] == "maximum" ? "snnjax::Largest" : "snnjax::Smallest";
  ArgReduce best(lowering, op, lines.elementType());
  const std::size_t parts = partsOfLine(count, length, lowering.layouts().tiles());
  if (parts == 1) return best.add(lines, nullptr, {{0, length}}, out);
  std::vector<Columns> columns;
  for (std::size_t i = 0; i < parts; ++i) columns.push_back({i * length / parts, (i + 1) * length / parts});
  const Best of_parts{lowering.makeTemporary(lines.elementType(), {count, parts}),
                      lowering.makeTemporary(poplar::INT, {count, parts})};
  best.add(lines, nullptr, columns, of_parts);
  best.add(of_parts.values, &of_parts.numbers, {{0, parts}}, out);
}

}  // namespace

extern const Operation kReduce = {checkReduce, reduce};
extern const Operation kArgReduce = {checkArgReduce, argReduce};

}  // namespace snnjax::executor::ops
