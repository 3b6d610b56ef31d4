// The vertices of a compute set as objects of their C++ classes, to be run again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "chips/chip.hpp"
#include "engine/executable/plan.hpp"
#include "engine/run/counters.hpp"

namespace ipu_model {

class LiveComputeSet {
 public:
  // Makes the objects, with fields that point into `memory`.
  LiveComputeSet(const ComputeSetPlan& plan, const Chip& chip, std::byte* memory);
  ~LiveComputeSet();
  LiveComputeSet(LiveComputeSet&&) noexcept = default;
  LiveComputeSet& operator=(LiveComputeSet&&) = delete;

  std::size_t tiles() const { return plan_->tiles.size(); }
  // Runs the vertices of the plan's tile number `index`; returns the tile's cycles.
  std::uint64_t runTile(std::size_t index, ThreadCounters& counters) const;

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const;
  };
  void connect(const VertexPlan& vertex, void* object, std::byte* memory) const;

  const ComputeSetPlan* plan_;
  const Chip* chip_;
  std::unique_ptr<std::byte, FreeMemory> storage_;
  std::vector<void*> objects_;
};

}  // namespace ipu_model
