// Values of any host type, on their way into a tensor or a field of any other type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <poplar/ArrayRef.hpp>
#include <poplar/Type.hpp>
#include <type_traits>
#include <vector>

namespace ipu_model {

// One of the two is empty. Every integer fits the first (in 64 bits, whatever its sign), every real number the second.
struct HostValues {
  std::vector<std::int64_t> integers;
  std::vector<double> reals;

  std::size_t size() const { return integers.size() + reals.size(); }
};

template <typename T>
HostValues hostValues(poplar::ArrayRef<T> values) {
  HostValues result;
  if (std::is_integral<T>::value || std::is_enum<T>::value) {
    for (const T& value : values) result.integers.push_back(static_cast<std::int64_t>(value));
  } else {
    for (const T& value : values) result.reals.push_back(static_cast<double>(value));
  }
  return result;
}

}  // namespace ipu_model
