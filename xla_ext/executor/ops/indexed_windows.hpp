// The checked dimension numbers of a gather or scatter: of an array, its windows and the indices.
#pragma once

#include "executor/plan/operation_check.hpp"

namespace snnjax::executor::ops {

struct IndexedWindows {
  Shape offset, collapsed, operand_batching, indices_batching, map;
  std::size_t vector_dim = 0;
  Shape batch;  // sizes of the indices, without the vector dimension

  // Dimensions of the operand that windows lack.
  Shape gone() const;
  // The shape of gather's result, of scatter's updates.
  Shape shapeOf(const Shape& window, std::size_t rank) const;
};

// Lists 0 to 5 of an instruction, and `from_end`: what is added to starts below 0, for each number of an index.
IndexedWindows windowsOf(const OperationCheck& op, const Shape& operand, const Shape& indices, std::size_t result_rank,
                         std::size_t from_end);

}  // namespace snnjax::executor::ops
