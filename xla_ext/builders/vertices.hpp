// Helpers for every builder: a vertex with its fields on a tile, a variable in blocks over tiles.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poputil/VertexTemplates.hpp>
#include <variant>

#include "builders/layout/network_plan.hpp"

namespace snnjax::builders {

using poplar::ComputeSet;
using poplar::FLOAT;
using poplar::Graph;
using poplar::Tensor;
using poplar::Type;
using poplar::UNSIGNED_INT;
using poplar::UNSIGNED_SHORT;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Program;
using poplar::program::Repeat;
using poplar::program::Sequence;
using poputil::templateVertex;

struct Field {
  const char* name;
  Tensor tensor;  // is flattened; if not valid, the vertex has no such field
};

// A member of the vertex that is not an edge; Poplar requires exactly the type that the codelet declares.
struct State {
  const char* name;
  std::variant<unsigned, unsigned char, bool, float> value;
};

// Fields or states, and more of them.
template <typename Each>
std::vector<Each> with(std::vector<Each> all, const std::vector<Each>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void addVertex(Graph& graph, ComputeSet set, const std::string& type, unsigned tile, const std::vector<Field>& fields,
               const std::vector<State>& states);

// Of a vertex that reads so many rows of records.
std::vector<State> recordStates(unsigned rows, const ListPlan& list);

// What options choose between: floats of 16 or 32 bits, ids of 32 or 16.
inline Type floatType(bool half) { return half ? poplar::HALF : FLOAT; }
inline Type idType(bool is_long) { return is_long ? poplar::INT : UNSIGNED_SHORT; }

// [range.count, elements], block i on tile range.first + i.
Tensor addBlocks(Graph& graph, const Type& type, const TileRange& range, std::size_t elements, const std::string& name);

// The first rows of such blocks, row-major each, as one matrix [rows, width] without the columns to spare.
Tensor asRows(const Tensor& blocks, const TileRange& range, std::size_t rows, std::size_t width);

// [rows of all homes, elements], those of a home on its tile.
Tensor addAtHomes(Graph& graph, const Type& type, const std::vector<Home>& homes, std::size_t elements,
                  const std::string& name);

// The rows of a home of a tensor [rows of all homes, ...].
Tensor rowsOf(const Tensor& tensor, const Home& home, unsigned dimension = 0);

// Sets all elements to 0, each on its own tile, in the compute set `name`.
Program zeros(Graph& graph, const std::vector<Tensor>& tensors, const std::string& name);

}  // namespace snnjax::builders
