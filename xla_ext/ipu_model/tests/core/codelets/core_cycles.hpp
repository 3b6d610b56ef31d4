// Costs of core.cpp in round numbers: 10 issue slots, and one for each element.
#pragma once

#include <cstdint>

template <typename T>
class Scale;
class AddShared;

template <typename T>
std::uint64_t workerCycles(const Scale<T>& vertex, unsigned) {
  return 10 + vertex.in.size();
}

template <typename V>
  requires(std::is_same_v<V, AddShared>)
std::uint64_t workerCycles(const V& vertex, unsigned worker) {
  return 10 + (vertex.data.size() + 5 - worker) / 6;
}
