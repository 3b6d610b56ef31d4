// Vector and VectorList: the fields of a vertex that hold rows of elements.
//
// Layout and alignment say how a tile would store the field. The host always holds a pointer and a size, but ONE_PTR
// and the scaled pointers still offer no size.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

namespace ipu_model {
struct FieldAccess;  // codelets/field.hpp: connects fields to data
}

namespace poplar {

enum class VectorLayout { ONE_PTR, SPAN, SHORT_SPAN, SCALED_PTR32, SCALED_PTR64, SCALED_PTR128, COMPACT_PTR };
enum class VectorListLayout {
  ONE_PTR,
  SCALED_PTR32,
  SCALED_PTR64,
  SCALED_PTR128,
  DELTAN,
  DELTANELEMENTS,
  COMPACT_DELTAN
};

template <typename T>
class Input;
template <typename T>
class Output;
template <typename T>
class InOut;

namespace detail {

// What an element of type T is on a tile, where a long, and so a size_t, has 32 bits. (A uint64_t cannot be told from a
// size_t on a 64-bit host: write fields of 64 bits as unsigned long long.)
template <typename T>
struct TileType {
  using type = T;
};
template <typename T>
struct TileType<const T> {
  using type = const typename TileType<T>::type;
};
template <>
struct TileType<long> {
  using type = int;
};
template <>
struct TileType<unsigned long> {
  using type = unsigned;
};

template <typename T>
struct IsEdge : std::false_type {};
template <typename T>
struct IsEdge<Input<T>> : std::true_type {};
template <typename T>
struct IsEdge<Output<T>> : std::true_type {};
template <typename T>
struct IsEdge<InOut<T>> : std::true_type {};

// Elements that lie in a variable.
template <typename T, bool is_table>
class Row {
 public:
  using ElementType = typename TileType<T>::type;

  ElementType& operator[](std::size_t index) const { return first_[index]; }
  ElementType* data() const { return first_; }

 protected:
  friend struct ipu_model::FieldAccess;
  ElementType* first_ = nullptr;
  std::size_t size_ = 0;
};

// A table of fields, each connected by itself.
template <typename Field>
class Row<Field, true> {
 public:
  using ElementType = Field;

  Field& operator[](std::size_t index) const { return first_[index]; }
  Field* data() const { return first_.data(); }

 protected:
  friend struct ipu_model::FieldAccess;
  mutable std::vector<Field> first_;  // const vertices write through their fields too
  std::size_t size_ = 0;
};

template <typename Row>
class SizedRow : public Row {
 public:
  std::size_t size() const { return this->size_; }
  typename Row::ElementType* begin() const { return this->data(); }
  typename Row::ElementType* end() const { return begin() + size(); }
};

constexpr bool knowsSize(VectorLayout layout) {
  return layout == VectorLayout::SPAN || layout == VectorLayout::SHORT_SPAN;
}

template <typename T, VectorLayout layout>
using RowOf =
    typename std::conditional<knowsSize(layout), SizedRow<Row<T, IsEdge<T>::value>>, Row<T, IsEdge<T>::value>>::type;

}  // namespace detail

// A row of elements, or of edges that are connected one by one. Of a class's plain member: state, whose values the
// graph sets.
template <typename T, VectorLayout layout = VectorLayout::SPAN, unsigned min_alignment = alignof(T),
          bool interleaved = false>
class Vector : public detail::RowOf<T, layout> {
 public:
  // An edge is used like a pointer to its rows, too: `x->size()`.
  const Vector* operator->() const { return this; }
};

// Rows of elements that share one direction, and whose table a tile stores compactly.
template <typename T, VectorListLayout layout = VectorListLayout::ONE_PTR, unsigned min_alignment = alignof(T),
          bool interleaved = false>
class VectorList
    : public detail::SizedRow<detail::Row<Vector<T, VectorLayout::SPAN, min_alignment, interleaved>, true>> {
 public:
  const VectorList* operator->() const { return this; }
};

}  // namespace poplar
