#include "graph/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <poplar/exceptions.hpp>

#include "graph/half_bits.hpp"

namespace ipu_model {
namespace {

constexpr int kFractionBits = 10;  // of a half number
constexpr int kExponentBias = 15;
constexpr std::uint16_t kInfinity = 0x7c00;
constexpr std::uint16_t kQuietNan = 0x7e00;

template <typename T>
void store(const HostValues& values, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = values.size() == 1 ? 0 : i;
    const T value = values.reals.empty() ? static_cast<T>(values.integers[from]) : static_cast<T>(values.reals[from]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

void storeHalf(const HostValues& values, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = values.size() == 1 ? 0 : i;
    const std::uint16_t bits =
        halfOf(values.reals.empty() ? static_cast<double>(values.integers[from]) : values.reals[from]);
    std::memcpy(to + i * sizeof(bits), &bits, sizeof(bits));
  }
}

}  // namespace

float halfToFloat(std::uint16_t bits) {
  const int exponent = (bits & kInfinity) >> kFractionBits;
  const auto fraction = static_cast<float>(bits & 0x3ffU);
  float magnitude;
  if (exponent == 0) {
    magnitude = std::ldexp(fraction, 1 - kExponentBias - kFractionBits);
  } else if (bits >= kInfinity && (bits & 0x7fffU) >= kInfinity) {
    magnitude = fraction == 0 ? INFINITY : NAN;
  } else {
    magnitude = std::ldexp(1024.0F + fraction, exponent - kExponentBias - kFractionBits);
  }
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

std::uint16_t halfOf(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const auto signedBits = [sign](unsigned bits) { return static_cast<std::uint16_t>(sign | bits); };
  if (std::isnan(value)) return signedBits(kQuietNan);
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return signedBits(kInfinity);
  // Units of the last place: those of the binade of the number, or of the subnormal numbers. A number rounded up into
  // the next binade carries into the exponent by itself.
  const int exponent = magnitude == 0 ? 1 - kExponentBias : std::max(std::ilogb(magnitude), 1 - kExponentBias);
  const auto units = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(magnitude, kFractionBits - exponent)));
  if (exponent > kExponentBias) return signedBits(kInfinity);
  const std::uint64_t bits = units + (static_cast<std::uint64_t>(exponent + kExponentBias - 1) << kFractionBits);
  return signedBits(bits >= kInfinity ? kInfinity : static_cast<unsigned>(bits));
}

std::vector<std::byte> encodeValues(const HostValues& values, poplar::Type type, std::size_t count) {
  using Kind = poplar::Type::Kind;
  std::vector<std::byte> bytes(count * type.size());
  if (values.size() == 0) return bytes;
  switch (type.kind()) {
    case Kind::Float: store<float>(values, count, bytes.data()); break;
    case Kind::Half: storeHalf(values, count, bytes.data()); break;
    case Kind::Bool: store<bool>(values, count, bytes.data()); break;
    case Kind::Short: store<std::int16_t>(values, count, bytes.data()); break;
    case Kind::UnsignedShort: store<std::uint16_t>(values, count, bytes.data()); break;
    case Kind::Int:
    case Kind::Long: store<std::int32_t>(values, count, bytes.data()); break;
    case Kind::UnsignedInt:
    case Kind::UnsignedLong: store<std::uint32_t>(values, count, bytes.data()); break;
    case Kind::LongLong: store<std::int64_t>(values, count, bytes.data()); break;
    case Kind::UnsignedLongLong: store<std::uint64_t>(values, count, bytes.data()); break;
    case Kind::UnsignedChar: store<std::uint8_t>(values, count, bytes.data()); break;
    case Kind::Char:
    case Kind::SignedChar: store<std::int8_t>(values, count, bytes.data()); break;
    case Kind::Quarter:
      throw poplar::type_error("encodeValues: `type` must be one whose values the model knows, got quarter. Use half.");
  }
  return bytes;
}

}  // namespace ipu_model
