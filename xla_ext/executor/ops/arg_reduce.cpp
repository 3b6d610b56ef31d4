// Where the largest or smallest number of each line stands. Long lines are cut, and the best of their parts compared.
#include <poputil/VertexTemplates.hpp>

#include "executor/ops/lines.hpp"
#include "executor/registry.hpp"

namespace snnjax::executor::ops {
namespace {

// The parts of a line that has more numbers than it is worth to bring to one tile.
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

}  // namespace

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

}  // namespace snnjax::executor::ops
