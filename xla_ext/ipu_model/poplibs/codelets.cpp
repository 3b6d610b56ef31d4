// The model knows its codelets from the start.
#include <poplin/codelets.hpp>
#include <popops/codelets.hpp>
#include <poprand/codelets.hpp>

namespace popops {
void addCodelets(poplar::Graph&) {}
}  // namespace popops
namespace poprand {
void addCodelets(poplar::Graph&) {}
}  // namespace poprand
namespace poplin {
void addCodelets(poplar::Graph&) {}
}  // namespace poplin
