#pragma once

#include <string>

namespace poplar {

enum class TargetType { IPU, IPU_MODEL, CPU };

std::string toString(TargetType type);

}  // namespace poplar
