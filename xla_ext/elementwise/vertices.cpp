#include "elementwise/vertices.hpp"

#include <algorithm>
#include <utility>

#include "elementwise/chain_cost.hpp"

namespace snnjax::elementwise {
namespace {

// Fields of the codelets, by the bytes of their elements.
struct Width {
  const char *in, *out;
};
constexpr std::array<Width, 3> kWidths = {{{"in", "out"}, {"in_halves", "out_halves"}, {"in_bytes", "out_bytes"}}};

poplar::Type typeOf(std::size_t width) {
  return width == 0 ? poplar::UNSIGNED_INT : width == 1 ? poplar::UNSIGNED_SHORT : poplar::UNSIGNED_CHAR;
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

// The parts of a field's rows on one tile. It has at least one row, possibly empty.
std::vector<poplar::Tensor> partsOn(std::size_t tile, const std::vector<TiledRows::Parts>& rows,
                                    const poplar::Tensor& none) {
  std::vector<poplar::Tensor> parts;
  for (const TiledRows::Parts& row : rows) parts.push_back(row[tile]);
  if (parts.empty()) parts.push_back(none);
  return parts;
}

std::size_t countOn(std::size_t tile, const TiledRows& rows) {
  for (const auto& of_width : rows.out) {
    if (!of_width.empty()) return of_width[0][tile].numElements();
  }
  return 0;
}

}  // namespace

unsigned TiledRows::add(OfWidth& rows, Parts parts) {
  const std::size_t width = widthOf(parts[0].elementType().size());
  for (poplar::Tensor& part : parts) part = part.reinterpret(typeOf(width));
  rows[width].push_back(std::move(parts));
  return static_cast<unsigned>(rows[width].size() - 1);
}

void addVertices(poplar::Graph& graph, const poplar::ComputeSet& set, const std::vector<unsigned>& tiles,
                 const TiledRows& rows, const ElementwiseProgram& program,
                 const std::vector<ElementwiseProgram::Operand>& inputs, const std::vector<unsigned>& outputs) {
  const ElementwiseProgram::Code code = program.encoded(inputs, outputs);
  const ChainCost cost = chainCost(program.steps(), inputs, outputs);
  const poplar::Tensor programs = programOnTiles(graph, code.words, tiles);
  const std::size_t used = rows.mixed() ? kWidths.size() : 1;
  std::vector<poplar::Tensor> none;
  for (std::size_t width = 0; width < used; ++width) {
    none.push_back(graph.addVariable(typeOf(width), {0}, "nothing"));
  }
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    const poplar::VertexRef vertex =
        graph.addVertex(set, rows.mixed() ? "snnjax::MixedElementwiseChain" : "snnjax::ElementwiseChain");
    graph.setTileMapping(vertex, tiles[tile]);
    graph.connect(vertex["program"], programs[tile]);
    for (std::size_t width = 0; width < used; ++width) {
      graph.connect(vertex[kWidths[width].in], partsOn(tile, rows.in[width], none[width]));
      graph.connect(vertex[kWidths[width].out], partsOn(tile, rows.out[width], none[width]));
    }
    const std::pair<const char*, unsigned> states[] = {{"count", static_cast<unsigned>(countOn(tile, rows))},
                                                       {"once", code.once},
                                                       {"words", static_cast<unsigned>(code.words.size())},
                                                       {"pointers", cost.pointers},
                                                       {"four", cost.four},
                                                       {"two", cost.two},
                                                       {"one", cost.one}};
    for (const auto& [name, value] : states) graph.setInitialValue(vertex[name], value);
  }
}

}  // namespace snnjax::elementwise
