// The time step of a network with dense codelets in place of sparse ones: what sparsity gains.
#pragma once

#include <iosfwd>

#include "calibration/training_steps.hpp"

namespace ipu_model::calibration {

// Cycles of one time step, forward and backward.
struct SparseAndDense {
  PhaseCycles sparse, dense;
  [[nodiscard]] double speedUp() const {
    return static_cast<double>(dense.total()) / static_cast<double>(sparse.total());
  }
};

SparseAndDense compareWithDense(const Cell& cell, const std::string& codelets);

std::ostream& operator<<(std::ostream& out, const SparseAndDense& step);

}  // namespace ipu_model::calibration
