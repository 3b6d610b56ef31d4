// What Reduce (reduce.cpp) costs a worker, in issue slots.
//
// For each vector of outputs (2 floats; halves are widened, two at a time): address, neutral element, store, loop: 10,
// as PopLibs' "16 + 6" per reduction less its decoding of regions (ipu.md 3.5). For each row: the load, the operation,
// the branch: 3, plus 2 to widen two halves. Where rows are single numbers side by side the worker walks along them two
// at a time, at the same cost for each pair. Integers and Booleans go one by one: load, operation, address, branch.
#pragma once

#include <cstdint>

namespace snnjax::cycles {

constexpr std::uint64_t kReducePrologue = 35;  // fields, the worker's share with its first row and column: counted
constexpr std::uint64_t kReduceOutput = 10;

enum class Element { Float, Half, Integer };

constexpr std::uint64_t reduceRow(Element element) {
  return element == Element::Float ? 3 : element == Element::Half ? 5 : 4;
}

// `outputs` numbers, each of `rows` numbers that lie `inner` apart.
constexpr std::uint64_t reduce(std::uint64_t outputs, std::uint64_t rows, std::uint64_t inner, Element element) {
  const std::uint64_t width = element == Element::Integer ? 1 : 2;
  if (inner == 1) {
    const std::uint64_t pairs = (rows + width - 1) / width;
    return kReducePrologue + outputs * (kReduceOutput + pairs * reduceRow(element) + 2);  // 2: the halves of the pair
  }
  const std::uint64_t vectors = (outputs + width - 1) / width;
  return kReducePrologue + vectors * (kReduceOutput + rows * reduceRow(element));
}

}  // namespace snnjax::cycles
