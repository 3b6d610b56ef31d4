// One compute set of an operation: vertices are added, then it is executed.
#pragma once

#include <initializer_list>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <string_view>

#include "executor/lowering.hpp"

namespace snnjax::executor::ops {

class ComputeStep {
 public:
  ComputeStep(Lowering& lowering, std::string_view part)
      : lowering_(lowering), debug_(lowering.debug(part)), compute_set_(lowering.graph().addComputeSet(debug_)) {}

  // Fields are tensors, flat or scalar; states are numbers.
  void add(const std::string& codelet, std::size_t tile, std::initializer_list<poplar::ConnectionDesc> fields) {
    poplar::Graph& graph = lowering_.graph();
    graph.setTileMapping(graph.addVertex(compute_set_, codelet, fields), static_cast<unsigned>(tile));
    ++vertices_;
  }
  void execute() const {
    if (vertices_ > 0) lowering_.program().add(poplar::program::Execute(compute_set_, debug_));
  }

 private:
  Lowering& lowering_;
  poplar::DebugContext debug_;
  poplar::ComputeSet compute_set_;
  std::size_t vertices_ = 0;
};

// States of vertices are unsigned.
inline unsigned asUnsigned(std::size_t value) { return static_cast<unsigned>(value); }

// The unsigned integer of as many bits, for what only moves.
inline poplar::Type bitsOf(const poplar::Type& type) {
  return type.size() == 1 ? poplar::UNSIGNED_CHAR : type.size() == 2 ? poplar::UNSIGNED_SHORT : poplar::UNSIGNED_INT;
}
inline poplar::Tensor asBits(const poplar::Tensor& tensor) { return tensor.reinterpret(bitsOf(tensor.elementType())); }

inline void copy(Lowering& lowering, const poplar::Tensor& from, const poplar::Tensor& to, std::string_view part) {
  if (from.numElements() > 0) lowering.program().add(poplar::program::Copy(from, to, false, lowering.debug(part)));
}

}  // namespace snnjax::executor::ops
