// Costs of two of the vertices of shapes.cpp, as numbers that a test can tell apart.
#pragma once

#include <cstdint>

struct Workers;
namespace outer::inner {
enum class Op;
template <typename T, Op op, unsigned n, bool flag>
class Derived;

template <typename T, Op op, unsigned n, bool flag>
std::uint64_t workerCycles(const Derived<T, op, n, flag>& vertex, unsigned) {
  return 10 + n * vertex.data.size();
}
}  // namespace outer::inner

template <typename V>
  requires(std::is_same_v<V, Workers>)
std::uint64_t workerCycles(const V& vertex, unsigned worker) {
  return 100 * worker + vertex.size;
}

template <typename V>
  requires(std::is_same_v<V, Workers>)
std::uint64_t supervisorCycles(const V&) {
  return 25;
}
