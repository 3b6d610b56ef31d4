// IEEE 754 half numbers as bits, so that the host side of the model needs no compiler that knows the type.
#pragma once

#include <cstdint>

namespace ipu_model {

float halfToFloat(std::uint16_t bits);
// Rounds to nearest, ties to even; too large: infinity.
std::uint16_t halfOf(double value);

}  // namespace ipu_model
