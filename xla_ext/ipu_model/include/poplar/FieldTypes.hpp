// Vector and VectorList: the fields of a vertex that hold rows of elements.
//
// Layout and alignment say how a tile would store the field. The host holds a pointer and a size in any case; that
// ONE_PTR and the scaled pointers know no size is kept.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>

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

template <typename T>
inline constexpr bool is_edge = false;
template <typename T>
inline constexpr bool is_edge<Input<T>> = true;
template <typename T>
inline constexpr bool is_edge<Output<T>> = true;
template <typename T>
inline constexpr bool is_edge<InOut<T>> = true;

// What an element of type T is on a tile, where a long, and so a size_t, has 32 bits. (A uint64_t cannot be told from a
// size_t on a 64-bit host: fields of 64 bits are to be written as unsigned long long.)
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

template <VectorLayout layout>
inline constexpr bool knows_size = layout == VectorLayout::SPAN || layout == VectorLayout::SHORT_SPAN;

}  // namespace detail

// A row of elements. Of a class's plain member: state, whose values the graph sets.
template <typename T, VectorLayout layout = VectorLayout::SPAN, unsigned min_alignment = alignof(T),
          bool interleaved = false>
class Vector {
 public:
  using ElementType = typename detail::TileType<T>::type;

  ElementType& operator[](std::size_t index) const { return first_[index]; }
  // An edge is used like a pointer to its rows, too: `x->size()`.
  const Vector* operator->() const { return this; }
  ElementType* data() const { return first_; }
  std::size_t size() const
    requires(detail::knows_size<layout>)
  {
    return size_;
  }
  ElementType* begin() const
    requires(detail::knows_size<layout>)
  {
    return first_;
  }
  ElementType* end() const
    requires(detail::knows_size<layout>)
  {
    return first_ + size_;
  }

 private:
  friend struct ipu_model::FieldAccess;
  ElementType* first_ = nullptr;
  std::size_t size_ = 0;
};

// A row of edges, each connected by itself.
template <typename Edge, VectorLayout layout, unsigned min_alignment, bool interleaved>
  requires(detail::is_edge<Edge>)
class Vector<Edge, layout, min_alignment, interleaved> {
 public:
  using ElementType = Edge;

  const Vector* operator->() const { return this; }
  Edge& operator[](std::size_t index) const { return rows_[index]; }
  std::size_t size() const
    requires(detail::knows_size<layout>)
  {
    return size_;
  }
  Edge* begin() const
    requires(detail::knows_size<layout>)
  {
    return rows_.get();
  }
  Edge* end() const
    requires(detail::knows_size<layout>)
  {
    return rows_.get() + size_;
  }

 private:
  friend struct ipu_model::FieldAccess;
  std::unique_ptr<Edge[]> rows_;
  std::size_t size_ = 0;
};

// Rows of elements that share one direction, and whose table a tile stores compactly.
template <typename T, VectorListLayout layout = VectorListLayout::ONE_PTR, unsigned min_alignment = alignof(T),
          bool interleaved = false>
class VectorList {
 public:
  using ElementType = Vector<T, VectorLayout::SPAN, min_alignment, interleaved>;

  const VectorList* operator->() const { return this; }
  const ElementType& operator[](std::size_t index) const { return rows_[index]; }
  std::size_t size() const { return size_; }
  const ElementType* begin() const { return rows_.get(); }
  const ElementType* end() const { return rows_.get() + size_; }

 private:
  friend struct ipu_model::FieldAccess;
  std::unique_ptr<ElementType[]> rows_;
  std::size_t size_ = 0;
};

}  // namespace poplar
