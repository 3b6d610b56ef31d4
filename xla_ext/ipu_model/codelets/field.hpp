// Deduces a vertex field's properties from its C++ type, and points fields at data. C++11, as codelets may be.
#pragma once

#include <cstring>
#include <poplar/FieldTypes.hpp>
#include <poplar/HalfFloat.hpp>
#include <poplar/InOutTypes.hpp>
#include <type_traits>
#include <vector>

#include "vertex_type.hpp"

namespace ipu_model {

// The only place that accesses the internals of fields.
struct FieldAccess {
  template <typename T>
  static void connect(poplar::detail::ScalarEdge<T>& edge, poplar::ArrayRef<EdgeData> rows) {
    edge.element_ = static_cast<decltype(edge.element_)>(rows[0].data);
  }

  template <typename T>
  static void connect(poplar::detail::Row<T, false>& row, poplar::ArrayRef<EdgeData> rows) {
    row.first_ = static_cast<decltype(row.first_)>(rows[0].data);
    row.size_ = rows[0].size;
  }

  template <typename Field>
  static void connect(poplar::detail::Row<Field, true>& table, poplar::ArrayRef<EdgeData> rows) {
    table.first_ = std::vector<Field>(rows.size());
    table.size_ = rows.size();
    for (std::size_t row = 0; row < rows.size(); ++row) connect(table.first_[row], rows[row]);
  }
};

// The types that a tensor may have. A long of the host has 64 bits and one of the IPU 32: fields hold it as an int.
template <typename T, bool is_enumeration = std::is_enum<T>::value>
struct DeviceType {
  static constexpr bool known = false;
};
template <poplar::Type::Kind type_kind>
struct KnownType {
  static constexpr bool known = true;
  static constexpr poplar::Type::Kind kind = type_kind;
};
template <>
struct DeviceType<bool> : KnownType<poplar::Type::Kind::Bool> {};
template <>
struct DeviceType<char> : KnownType<poplar::Type::Kind::Char> {};
template <>
struct DeviceType<signed char> : KnownType<poplar::Type::Kind::SignedChar> {};
template <>
struct DeviceType<unsigned char> : KnownType<poplar::Type::Kind::UnsignedChar> {};
template <>
struct DeviceType<short> : KnownType<poplar::Type::Kind::Short> {};
template <>
struct DeviceType<unsigned short> : KnownType<poplar::Type::Kind::UnsignedShort> {};
template <>
struct DeviceType<int> : KnownType<poplar::Type::Kind::Int> {};
template <>
struct DeviceType<unsigned> : KnownType<poplar::Type::Kind::UnsignedInt> {};
template <>
struct DeviceType<long> : DeviceType<int> {};
template <>
struct DeviceType<unsigned long> : DeviceType<unsigned> {};
template <>
struct DeviceType<long long> : KnownType<poplar::Type::Kind::LongLong> {};
template <>
struct DeviceType<unsigned long long> : KnownType<poplar::Type::Kind::UnsignedLongLong> {};
template <>
struct DeviceType<half> : KnownType<poplar::Type::Kind::Half> {};
template <>
struct DeviceType<float> : KnownType<poplar::Type::Kind::Float> {};
template <typename T>
struct DeviceType<T, true> : DeviceType<typename std::underlying_type<T>::type> {};

// Bytes of a pointer in a vertex's record on a tile, with its size where it has one (ipu.md 3.2).
constexpr unsigned tileBytes(poplar::VectorLayout layout) {
  return layout == poplar::VectorLayout::SPAN                                                    ? 8
         : layout == poplar::VectorLayout::ONE_PTR || layout == poplar::VectorLayout::SHORT_SPAN ? 4
                                                                                                 : 2;
}
constexpr unsigned kPointerBytes = 4;

// A plain member. Of a type that no tensor has (an array, a structure) it is left alone.
template <typename F>
struct FieldTraits {
  using Element = F;
  static constexpr Direction direction = Direction::State;
  using OnTile = typename poplar::detail::TileType<F>::type;
  static constexpr unsigned nesting = 0, alignment = alignof(OnTile), tile_bytes = sizeof(OnTile), tile_row_bytes = 0;
  static constexpr bool interleaved = false, sized = true;
};

template <typename T, poplar::VectorLayout layout, unsigned min_alignment, bool in_interleaved, bool is_edge>
struct VectorTraits {
  using Element = typename std::remove_const<T>::type;
  static constexpr Direction direction = Direction::State;
  static constexpr unsigned nesting = 1, alignment = min_alignment, tile_bytes = tileBytes(layout), tile_row_bytes = 0;
  static constexpr bool interleaved = in_interleaved, sized = poplar::detail::knowsSize(layout);
};

template <typename T, poplar::VectorLayout layout, unsigned min_alignment, bool in_interleaved>
struct VectorTraits<T, layout, min_alignment, in_interleaved, true> : FieldTraits<T> {
  static_assert(FieldTraits<T>::nesting < 2, "a field may be a Vector of Vectors, and no deeper");
  static constexpr unsigned nesting = 2, tile_bytes = tileBytes(layout), tile_row_bytes = FieldTraits<T>::tile_bytes;
  static constexpr bool sized = poplar::detail::knowsSize(layout);
};

template <typename T, poplar::VectorLayout layout, unsigned min_alignment, bool in_interleaved>
struct FieldTraits<poplar::Vector<T, layout, min_alignment, in_interleaved>>
    : VectorTraits<T, layout, min_alignment, in_interleaved, poplar::detail::IsEdge<T>::value> {};

template <typename T, poplar::VectorListLayout layout, unsigned min_alignment, bool in_interleaved>
struct FieldTraits<poplar::VectorList<T, layout, min_alignment, in_interleaved>> {
  using Element = T;
  static constexpr Direction direction = Direction::State;
  static constexpr unsigned nesting = 2, alignment = min_alignment, tile_bytes = 8, tile_row_bytes = kPointerBytes;
  static constexpr bool interleaved = in_interleaved, sized = true;
};

template <typename F, Direction given>
struct EdgeTraits : FieldTraits<F> {
  static constexpr Direction direction = given;
  static constexpr unsigned tile_bytes = FieldTraits<F>::nesting == 0 ? kPointerBytes : FieldTraits<F>::tile_bytes;
};
template <typename F>
struct FieldTraits<poplar::Input<F>> : EdgeTraits<F, Direction::Input> {};
template <typename F>
struct FieldTraits<poplar::Output<F>> : EdgeTraits<F, Direction::Output> {};
template <typename F>
struct FieldTraits<poplar::InOut<F>> : EdgeTraits<F, Direction::InOut> {};

// Sets a plain member, const or not, from an element of its type on a tile.
template <typename F>
void setState(F& member, const void* value) {
  using Member = typename std::remove_const<F>::type;
  using Narrow = typename poplar::detail::TileType<Member>::type;
  Narrow narrow;
  std::memcpy(&narrow, value, sizeof narrow);
  const Member wide = static_cast<Member>(narrow);
  std::memcpy(const_cast<Member*>(&member), &wide, sizeof wide);
}

}  // namespace ipu_model
