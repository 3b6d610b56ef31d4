#include "engine/executable/moves.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ipu_model {
namespace {

// Elements in arithmetic progression, in bytes.
struct Progression {
  std::size_t address;
  std::size_t count;
  std::ptrdiff_t step;
};

void appendMove(std::vector<Move>& moves, const Progression& from, const Progression& to, std::size_t count,
                std::size_t element) {
  const auto whole = static_cast<std::ptrdiff_t>(element);
  const bool row = count == 1 || (from.step == whole && to.step == whole);
  if (!row) {
    moves.push_back({from.address, to.address, element, count, from.step, to.step});
    return;
  }
  const std::size_t bytes = count * element;
  if (!moves.empty()) {
    Move& last = moves.back();
    if (last.count == 1 && last.from + last.bytes == from.address && last.to + last.bytes == to.address) {
      last.bytes += bytes;
      return;
    }
  }
  moves.push_back({from.address, to.address, bytes, 1, 0, 0});
}

std::vector<Progression> progressions(std::span<const Run> runs, const Addresses& addresses) {
  std::vector<Progression> result;
  result.reserve(runs.size());
  for (const Run& run : runs) {
    const std::ptrdiff_t stride = run.count == 1 ? 1 : run.stride;
    result.push_back({addresses.of(run), run.count, stride * static_cast<std::ptrdiff_t>(addresses.element)});
  }
  return result;
}

std::vector<Move> zip(std::vector<Progression> from, std::vector<Progression> to, std::size_t element) {
  std::vector<Move> moves;
  const auto drop = [](Progression& of, std::size_t count) {
    of.address += count * static_cast<std::size_t>(of.step);
    of.count -= count;
  };
  for (std::size_t a = 0, b = 0; a < from.size() && b < to.size();) {
    const std::size_t count = std::min(from[a].count, to[b].count);
    appendMove(moves, from[a], to[b], count, element);
    drop(from[a], count);
    drop(to[b], count);
    if (from[a].count == 0) ++a;
    if (to[b].count == 0) ++b;
  }
  return moves;
}

template <std::size_t kBytes>
void performSteps(const Move& move, const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < move.count; ++i) {
    std::memcpy(to, from, kBytes);
    from += move.from_step;
    to += move.to_step;
  }
}

}  // namespace

std::vector<Move> movesBetween(std::span<const Run> from, std::span<const Run> to, const Addresses& addresses) {
  return zip(progressions(from, addresses), progressions(to, addresses), addresses.element);
}

std::vector<Move> movesFromRow(std::size_t row, std::span<const Run> to, const Addresses& addresses) {
  std::size_t count = 0;
  for (const Run& run : to) count += run.count;
  return zip({{row, count, static_cast<std::ptrdiff_t>(addresses.element)}}, progressions(to, addresses),
             addresses.element);
}

std::vector<Move> reversed(std::vector<Move> moves) {
  for (Move& move : moves) {
    std::swap(move.from, move.to);
    std::swap(move.from_step, move.to_step);
  }
  return moves;
}

void perform(const Move& move, const std::byte* from, std::byte* to) {
  from += move.from;
  to += move.to;
  if (move.count == 1) {
    std::memcpy(to, from, move.bytes);
    return;
  }
  switch (move.bytes) {
    case 1: performSteps<1>(move, from, to); break;
    case 2: performSteps<2>(move, from, to); break;
    case 4: performSteps<4>(move, from, to); break;
    default: performSteps<8>(move, from, to); break;
  }
}

void perform(std::span<const Move> moves, const std::byte* from, std::byte* to) {
  for (const Move& move : moves) perform(move, from, to);
}

}  // namespace ipu_model
