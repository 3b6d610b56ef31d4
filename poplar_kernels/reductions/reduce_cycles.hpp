// What Reduce (reduce.cpp) costs a worker, in issue slots.
//
// For each output, or pair of neighbours (2 floats; halves are widened, two at a time): address, neutral element,
// store, loop: 10, as PopLibs' "16 + 6" per reduction less its decoding of regions (ipu.md 3.5). For each row: the
// load, the operation, the branch: 3, plus 2 to widen two halves. Where rows are single numbers side by side the worker
// walks along them two at a time, at the same cost for each pair, and joins the two lanes: 2. An odd number of columns,
// or of numbers side by side, goes one by one at the same cost each; so do integers and Booleans: load, operation,
// address, branch.
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
  const bool is_row = inner == 1, in_pairs = element != Element::Integer && (is_row ? rows : inner) % 2 == 0;
  const std::uint64_t numbers = !is_row && in_pairs ? (outputs + 1) / 2 : outputs;
  const std::uint64_t steps = is_row && in_pairs ? rows / 2 : rows;
  return kReducePrologue + numbers * (kReduceOutput + steps * reduceRow(element) + (is_row ? 2 : 0));
}

}  // namespace snnjax::cycles
