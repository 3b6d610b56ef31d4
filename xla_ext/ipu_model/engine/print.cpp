// PrintTensor: nested brackets, as the device's own.
#include <cstring>
#include <ostream>

#include "engine/engine_data.hpp"
#include "graph/half_bits.hpp"

namespace ipu_model {
namespace {

template <typename T>
T valueAt(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

void printElement(const poplar::Type& type, const std::byte* at, std::ostream& stream) {
  using Kind = poplar::Type::Kind;
  switch (type.kind()) {
    case Kind::Float: stream << valueAt<float>(at); break;
    case Kind::Half: stream << halfToFloat(valueAt<std::uint16_t>(at)); break;
    case Kind::Bool: stream << (valueAt<std::uint8_t>(at) != 0 ? 1 : 0); break;
    case Kind::Short: stream << valueAt<std::int16_t>(at); break;
    case Kind::UnsignedShort: stream << valueAt<std::uint16_t>(at); break;
    case Kind::Int:
    case Kind::Long: stream << valueAt<std::int32_t>(at); break;
    case Kind::UnsignedInt:
    case Kind::UnsignedLong: stream << valueAt<std::uint32_t>(at); break;
    case Kind::LongLong: stream << valueAt<std::int64_t>(at); break;
    case Kind::UnsignedLongLong: stream << valueAt<std::uint64_t>(at); break;
    case Kind::Char:
    case Kind::SignedChar: stream << int{valueAt<std::int8_t>(at)}; break;
    case Kind::UnsignedChar:
    case Kind::Quarter: stream << int{valueAt<std::uint8_t>(at)}; break;
  }
}

void printDimension(const StepPrint& print, std::size_t dimension, const std::byte*& at, std::ostream& stream) {
  if (dimension == print.shape.size()) {
    printElement(print.type, at, stream);
    at += print.type.size();
    return;
  }
  const bool rows = dimension + 1 < print.shape.size();
  stream << '[';
  for (std::size_t i = 0; i < print.shape[dimension]; ++i) {
    if (i > 0) stream << (rows ? ",\n " : ",");
    printDimension(print, dimension + 1, at, stream);
  }
  stream << ']';
}

}  // namespace

void printTensor(const StepPrint& print, std::span<const std::byte> values, std::ostream& stream) {
  stream << print.title << ": ";
  const std::byte* at = values.data();
  printDimension(print, 0, at, stream);
  stream << '\n';
}

}  // namespace ipu_model
