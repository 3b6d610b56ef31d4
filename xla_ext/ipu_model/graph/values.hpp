// Host values as elements of tensors have them in memory.
#pragma once

#include <cstddef>
#include <poplar/HostValues.hpp>
#include <poplar/Type.hpp>
#include <vector>

namespace ipu_model {

// One value is repeated `count` times.
std::vector<std::byte> encodeValues(const HostValues& values, poplar::Type type, std::size_t count);

}  // namespace ipu_model
