// The element types of tensors and of the fields of vertices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace poplar {

class Type {
 public:
  enum class Kind : std::uint8_t {
    Bool,
    Char,
    UnsignedChar,
    SignedChar,
    UnsignedShort,
    Short,
    UnsignedInt,
    Int,
    UnsignedLong,
    Long,
    UnsignedLongLong,
    LongLong,
    Quarter,
    Half,
    Float
  };

  constexpr Type() = default;
  constexpr explicit Type(Kind kind) : kind_(kind) {}

  constexpr Kind kind() const { return kind_; }
  // Bytes of one element on a tile, and in the host's buffers of the model as well.
  constexpr std::size_t size() const {
    switch (kind_) {
      case Kind::UnsignedShort:
      case Kind::Short:
      case Kind::Half: return 2;
      case Kind::UnsignedInt:
      case Kind::Int:
      case Kind::UnsignedLong:
      case Kind::Long:
      case Kind::Float: return 4;
      case Kind::UnsignedLongLong:
      case Kind::LongLong: return 8;
      default: return 1;
    }
  }
  // The name in C++: "float", "unsigned int", ...; what templateVertex puts between the angle brackets.
  std::string toString() const;

  friend constexpr bool operator==(Type a, Type b) { return a.kind_ == b.kind_; }
  friend constexpr bool operator<(Type a, Type b) { return a.kind_ < b.kind_; }

 private:
  Kind kind_ = Kind::Float;
};

std::ostream& operator<<(std::ostream& stream, const Type& type);

inline constexpr Type BOOL{Type::Kind::Bool};
inline constexpr Type CHAR{Type::Kind::Char};
inline constexpr Type UNSIGNED_CHAR{Type::Kind::UnsignedChar};
inline constexpr Type SIGNED_CHAR{Type::Kind::SignedChar};
inline constexpr Type UNSIGNED_SHORT{Type::Kind::UnsignedShort};
inline constexpr Type SHORT{Type::Kind::Short};
inline constexpr Type UNSIGNED_INT{Type::Kind::UnsignedInt};
inline constexpr Type INT{Type::Kind::Int};
// 32 bits wide, as on the IPU.
inline constexpr Type UNSIGNED_LONG{Type::Kind::UnsignedLong};
inline constexpr Type LONG{Type::Kind::Long};
inline constexpr Type UNSIGNED_LONGLONG{Type::Kind::UnsignedLongLong};
inline constexpr Type LONGLONG{Type::Kind::LongLong};
inline constexpr Type QUARTER{Type::Kind::Quarter};
inline constexpr Type HALF{Type::Kind::Half};
inline constexpr Type FLOAT{Type::Kind::Float};

// The type of a tensor that holds values of a host type; half, a type of the codelets, has its own in HalfFloat.hpp.
template <typename T>
struct equivalent_device_type;
template <>
struct equivalent_device_type<bool> {
  const Type value = BOOL;
};
template <>
struct equivalent_device_type<char> {
  const Type value = CHAR;
};
template <>
struct equivalent_device_type<signed char> {
  const Type value = SIGNED_CHAR;
};
template <>
struct equivalent_device_type<unsigned char> {
  const Type value = UNSIGNED_CHAR;
};
template <>
struct equivalent_device_type<short> {
  const Type value = SHORT;
};
template <>
struct equivalent_device_type<unsigned short> {
  const Type value = UNSIGNED_SHORT;
};
template <>
struct equivalent_device_type<int> {
  const Type value = INT;
};
template <>
struct equivalent_device_type<unsigned int> {
  const Type value = UNSIGNED_INT;
};
// long has 64 bits on the host.
template <>
struct equivalent_device_type<long> {
  const Type value = LONGLONG;
};
template <>
struct equivalent_device_type<unsigned long> {
  const Type value = UNSIGNED_LONGLONG;
};
template <>
struct equivalent_device_type<long long> {
  const Type value = LONGLONG;
};
template <>
struct equivalent_device_type<unsigned long long> {
  const Type value = UNSIGNED_LONGLONG;
};
template <>
struct equivalent_device_type<float> {
  const Type value = FLOAT;
};

}  // namespace poplar

template <>
struct std::hash<poplar::Type> {
  std::size_t operator()(poplar::Type type) const noexcept { return static_cast<std::size_t>(type.kind()); }
};
