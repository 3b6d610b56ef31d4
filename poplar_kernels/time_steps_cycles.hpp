// What the codelets of time_steps.cpp cost a worker.
#pragma once

#include <concepts>

#include "issue_slots.hpp"
#include "workers.hpp"

namespace snnjax {

template <class T>
class LoadStep;
template <class T>
class StoreStep;
template <class T>
class CopyRow;
class AddOne;

namespace cycles {

// A step outside of the layer's time: load, subtract, the choice of the direction, compare, return.
constexpr Slots kNoStep = kCall + 8;
// Load, add, store.
constexpr Slots kAddOne = kCall + 4;

template <class T, class V>
Slots stepCopy(const V& vertex, unsigned worker) {
  const unsigned t = *vertex.iteration - vertex.delay;
  if ((vertex.reverse ? vertex.num_steps - 1 - t : t) >= vertex.num_steps) return kNoStep;
  const Range own = shareOf(vertex.width, worker, 8 / sizeof(T));
  return entry(7, true) + copy(own.last - own.first, sizeof(T));
}

}  // namespace cycles

template <class T>
std::uint64_t workerCycles(const LoadStep<T>& vertex, unsigned worker) {
  return cycles::stepCopy<T>(vertex, worker);
}

template <class T>
std::uint64_t workerCycles(const StoreStep<T>& vertex, unsigned worker) {
  return cycles::stepCopy<T>(vertex, worker);
}

template <class T>
std::uint64_t workerCycles(const CopyRow<T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.width, worker, 8 / sizeof(T));
  return cycles::entry(3, true) + cycles::copy(own.last - own.first, sizeof(T));
}

std::uint64_t workerCycles(const std::same_as<AddOne> auto&, unsigned) { return cycles::kAddOne; }

}  // namespace snnjax
