// What the codelets of step_blocks.cpp cost a worker.
#pragma once

#include <concepts>

#include "../issue_slots.hpp"
#include "../workers.hpp"

namespace snnjax {

template <class T>
class LoadBlock;
template <class T>
class StoreBlock;
class Advance;

namespace cycles {

// Two loads, add, store.
constexpr Slots kAdvance = kCall + 5;

}  // namespace cycles

template <class T>
std::uint64_t workerCycles(const LoadBlock<T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.width, worker, kPerVector<T>);
  return cycles::entry(6, true) + 3 + 4 + cycles::moved(own.last - own.first, sizeof(T), vertex.width);
}

template <class T>
std::uint64_t workerCycles(const StoreBlock<T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.width, worker, kPerVector<T>);
  return cycles::entry(5, true) + 2 + 4 + cycles::moved(own.last - own.first, sizeof(T), vertex.width);
}

std::uint64_t workerCycles(const std::same_as<Advance> auto&, unsigned) { return cycles::kAdvance; }

}  // namespace snnjax
