// How a graph is written to a stream. The model writes JSON; Binary is refused.
#pragma once

namespace poplar {

enum class SerializationFormat { Binary, JSON };

}  // namespace poplar
