// Input, Output and InOut: the fields of a vertex that are connected to tensors.
//
// A scalar edge is used like a pointer (`*edge`) or like a value. An Input gives its elements for reading only. An
// Output must not be read before it is written; the compiler does not check this.
#pragma once

#include <poplar/FieldTypes.hpp>

namespace poplar {
namespace detail {

// An edge to one element that may be written. As on a tile it is a pointer: its constness does not extend to its
// element.
template <typename T>
class ScalarEdge {
 public:
  using ElementType = typename TileType<T>::type;

  ElementType& operator*() const { return *element_; }
  ElementType* operator->() const { return element_; }
  operator ElementType&() const { return *element_; }

 protected:
  ScalarEdge() = default;
  ScalarEdge(const ScalarEdge&) = default;
  ScalarEdge& operator=(const ScalarEdge&) = default;

 private:
  friend struct ipu_model::FieldAccess;
  ElementType* element_ = nullptr;
};

}  // namespace detail

template <typename T>
class Input : public detail::ScalarEdge<const T> {};

template <typename T>
class Output : public detail::ScalarEdge<T> {
 public:
  Output() = default;
  Output(const Output&) = default;
  const Output& operator=(const Output& other) const { return *this = static_cast<T>(*other); }
  const Output& operator=(const T& value) const {
    **this = static_cast<typename Output::ElementType>(value);
    return *this;
  }
};

template <typename T>
class InOut : public detail::ScalarEdge<T> {
 public:
  InOut() = default;
  InOut(const InOut&) = default;
  const InOut& operator=(const InOut& other) const { return *this = static_cast<T>(*other); }
  const InOut& operator=(const T& value) const {
    **this = static_cast<typename InOut::ElementType>(value);
    return *this;
  }
};

template <typename T, VectorLayout layout, unsigned min_alignment, bool interleaved>
class Input<Vector<T, layout, min_alignment, interleaved>>
    : public Vector<const T, layout, min_alignment, interleaved> {};
template <typename T, VectorLayout layout, unsigned min_alignment, bool interleaved>
class Output<Vector<T, layout, min_alignment, interleaved>> : public Vector<T, layout, min_alignment, interleaved> {};
template <typename T, VectorLayout layout, unsigned min_alignment, bool interleaved>
class InOut<Vector<T, layout, min_alignment, interleaved>> : public Vector<T, layout, min_alignment, interleaved> {};

template <typename T, VectorListLayout layout, unsigned min_alignment, bool interleaved>
class Input<VectorList<T, layout, min_alignment, interleaved>>
    : public VectorList<const T, layout, min_alignment, interleaved> {};
template <typename T, VectorListLayout layout, unsigned min_alignment, bool interleaved>
class Output<VectorList<T, layout, min_alignment, interleaved>>
    : public VectorList<T, layout, min_alignment, interleaved> {};
template <typename T, VectorListLayout layout, unsigned min_alignment, bool interleaved>
class InOut<VectorList<T, layout, min_alignment, interleaved>>
    : public VectorList<T, layout, min_alignment, interleaved> {};

}  // namespace poplar
