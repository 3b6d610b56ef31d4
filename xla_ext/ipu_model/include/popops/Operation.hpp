// The operations of a reduction.
#pragma once

#include <iosfwd>

namespace popops {

enum class Operation { ADD, MUL, MIN, MAX, LOGICAL_AND, LOGICAL_OR, SQUARE_ADD, LOG_ADD };

std::ostream& operator<<(std::ostream& stream, Operation operation);

}  // namespace popops
