// The kernels of every instruction set that this machine runs.
#pragma once

#include <vector>

#include "kernels.hpp"

namespace snnjax {

// The best comes last.
std::vector<const Kernels*> kernelsOfMachine();

}  // namespace snnjax
