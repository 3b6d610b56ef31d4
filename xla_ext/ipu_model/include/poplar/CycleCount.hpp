// The device's clock, read by programs.
#pragma once

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/SyncType.hpp>

namespace poplar {

// Puts readings of `tile`'s clock before and after `prog`. Returns their difference: UNSIGNED_INT[2], the lower 32 bits
// first. Of all tiles, as all of them take part in each step.
Tensor cycleCount(Graph& graph, program::Sequence& prog, unsigned tile, SyncType syncType,
                  const DebugContext& debugContext = {});

// As older programs call it, with a name in place of the kind of synchronisation.
inline Tensor cycleCount(Graph& graph, program::Sequence& prog, unsigned tile, const char* name = "") {
  return cycleCount(graph, prog, tile, SyncType::INTERNAL, name);
}

// Adds one reading to `prog`.
Tensor cycleStamp(Graph& graph, program::Sequence& prog, unsigned tile, SyncType syncType,
                  const DebugContext& debugContext = {});

}  // namespace poplar
