// The element types of tensors and of the fields of vertices.
#pragma once

#include <cstddef>
#include <cstdint>
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
  constexpr std::size_t size() const { return has8Bytes() ? 8 : has4Bytes() ? 4 : has2Bytes() ? 2 : 1; }
  // The name in C++: "float", "unsigned int", ...; what templateVertex puts between the angle brackets.
  std::string toString() const;

  friend constexpr bool operator==(Type a, Type b) { return a.kind_ == b.kind_; }
  friend constexpr bool operator!=(Type a, Type b) { return a.kind_ != b.kind_; }
  friend constexpr bool operator<(Type a, Type b) { return a.kind_ < b.kind_; }

 private:
  constexpr bool has2Bytes() const {
    return kind_ == Kind::UnsignedShort || kind_ == Kind::Short || kind_ == Kind::Half;
  }
  constexpr bool has4Bytes() const {
    return kind_ == Kind::UnsignedInt || kind_ == Kind::Int || kind_ == Kind::UnsignedLong || kind_ == Kind::Long ||
           kind_ == Kind::Float;
  }
  constexpr bool has8Bytes() const { return kind_ == Kind::UnsignedLongLong || kind_ == Kind::LongLong; }

  Kind kind_ = Kind::Float;
};

std::ostream& operator<<(std::ostream& stream, const Type& type);

// Not const, as Poplar's are not: programs bind references to them.
extern Type BOOL;
extern Type CHAR;
extern Type UNSIGNED_CHAR;
extern Type SIGNED_CHAR;
extern Type UNSIGNED_SHORT;
extern Type SHORT;
extern Type UNSIGNED_INT;
extern Type INT;
// 32 bits wide, as on the IPU.
extern Type UNSIGNED_LONG;
extern Type LONG;
extern Type UNSIGNED_LONGLONG;
extern Type LONGLONG;
extern Type QUARTER;
extern Type HALF;
extern Type FLOAT;

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
