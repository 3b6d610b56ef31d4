// Helpers for every builder: a vertex with its fields on a tile, a variable in blocks over tiles.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <variant>
#include <vector>

#include "builders/layout/network_plan.hpp"

namespace snnjax::builders {

struct Field {
  const char* name;
  poplar::Tensor tensor;  // is flattened
};

// A member of the vertex that is not an edge; Poplar requires exactly the type that the codelet declares.
struct State {
  const char* name;
  std::variant<unsigned, unsigned char, bool, float> value;
};

void addVertex(poplar::Graph& graph, poplar::ComputeSet set, const std::string& type, unsigned tile,
               const std::vector<Field>& fields, const std::vector<State>& states);

// What options choose between: floats of 16 or 32 bits, ids of 32 or 16.
inline poplar::Type floatType(bool half) { return half ? poplar::HALF : poplar::FLOAT; }
inline poplar::Type idType(bool is_long) { return is_long ? poplar::INT : poplar::UNSIGNED_SHORT; }

// [range.count, elements], block i on tile range.first + i.
poplar::Tensor addBlocks(poplar::Graph& graph, const poplar::Type& type, const TileRange& range, std::size_t elements,
                         const std::string& name);

// The first rows of such blocks, row-major each, as one matrix [rows, width] without the columns to spare.
poplar::Tensor asRows(const poplar::Tensor& blocks, const TileRange& range, std::size_t rows, std::size_t width);

// [rows of all homes, elements], those of a home on its tile.
poplar::Tensor addAtHomes(poplar::Graph& graph, const poplar::Type& type, const std::vector<Home>& homes,
                          std::size_t elements, const std::string& name);

// The rows of a home of a tensor [rows of all homes, ...].
poplar::Tensor rowsOf(const poplar::Tensor& tensor, const Home& home, unsigned dimension = 0);

// Sets all elements to 0, each on its own tile, in the compute set `name`.
poplar::program::Program zeros(poplar::Graph& graph, const std::vector<poplar::Tensor>& tensors,
                               const std::string& name);

}  // namespace snnjax::builders
