// Elements from one place to another in blocks of memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tensor/view.hpp"

namespace ipu_model {

// `count` pieces of `bytes` each, the steps apart. All in bytes.
struct Move {
  std::size_t from;
  std::size_t to;
  std::size_t bytes;
  std::size_t count;
  std::ptrdiff_t from_step;
  std::ptrdiff_t to_step;
};

// Runs with their variables' addresses.
struct Addresses {
  std::span<const std::size_t> variables;  // where each begins
  std::size_t element;                     // bytes

  std::size_t of(const Run& run) const { return variables[run.variable] + run.begin * element; }
};

// Moves the elements of `from` to those of `to`, in order.
std::vector<Move> movesBetween(std::span<const Run> from, std::span<const Run> to, const Addresses& addresses);
// Moves between runs and contiguous elements.
std::vector<Move> movesFromRow(std::size_t row, std::span<const Run> to, const Addresses& addresses);
std::vector<Move> reversed(std::vector<Move> moves);

void perform(const Move& move, const std::byte* from, std::byte* to);
void perform(std::span<const Move> moves, const std::byte* from, std::byte* to);

}  // namespace ipu_model
