// The fields of our vertices, in short: a contiguous region on the vertex's own tile that begins at 8 bytes, so that
// 64-bit loads and stores may be used. A ONE_PTR carries no size: sizes are states.
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

// A field or a state that only some instances of a vertex have; it is nothing in the others, on the tile as well.
struct Nothing {};
template <bool is_there, class Field>
using If = std::conditional_t<is_there, Field, Nothing>;

}  // namespace snnjax
