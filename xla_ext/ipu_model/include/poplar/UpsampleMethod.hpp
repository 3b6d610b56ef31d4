#pragma once

namespace poplar {

enum class UpsampleMethod { REPEAT };

}  // namespace poplar
