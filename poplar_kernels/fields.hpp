// Short names for the fields of vertices: a contiguous region on the vertex's own tile, aligned to 8 bytes for 64-bit
// loads and stores. A ONE_PTR carries no size: sizes are states.
#pragma once

#include <poplar/Vertex.hpp>
#include <type_traits>

namespace snnjax {

template <class T>
using In = poplar::Input<poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>>;
template <class T>
using Out = poplar::Output<poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>>;
template <class T>
using InOut = poplar::InOut<poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>>;

// A field or state that only some instances of a vertex have; in the others it takes no space, on the tile either.
struct Nothing {};
template <bool is_there, class Field>
using If = std::conditional_t<is_there, Field, Nothing>;

}  // namespace snnjax
