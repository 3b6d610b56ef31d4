// The model knows its codelets from the start.
#include <poplin/codelets.hpp>
#include <popnn/codelets.hpp>
#include <popops/codelets.hpp>
#include <poprand/codelets.hpp>

namespace popops {
void addCodelets(poplar::Graph&) {}
}  // namespace popops
namespace poprand {
void addCodelets(poplar::Graph&) {}
}  // namespace poprand
namespace popnn {
void addCodelets(poplar::Graph&) {}
}  // namespace popnn
namespace poplin {
void addCodelets(poplar::Graph&) {}
}  // namespace poplin
