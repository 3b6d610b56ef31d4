// Issue slots of the loops as a C++ compiler writes them. Dot product, each element: two loads, the product, and the
// sum beside the branch. Sum: a load, and the sum beside the branch. 10 more for each vertex: pointers and sizes are
// loaded, the accumulator cleared, the result stored. (The vendor's compiler must add in order, and has no wider loads
// for rows that are not aligned to 8 bytes: ipu.md 3.2.)
#pragma once

#include <cstdint>

namespace calibration {

namespace cycles {
constexpr std::uint64_t kVertex = 10;
constexpr std::uint64_t dotProduct(std::uint64_t elements) { return kVertex + 4 * elements; }
constexpr std::uint64_t sum(std::uint64_t elements) { return kVertex + 2 * elements; }
}  // namespace cycles

inline std::uint64_t workerCycles(const DotProduct& vertex, unsigned) { return cycles::dotProduct(vertex.row.size()); }
inline std::uint64_t workerCycles(const Sum& vertex, unsigned) { return cycles::sum(vertex.parts.size()); }

}  // namespace calibration
