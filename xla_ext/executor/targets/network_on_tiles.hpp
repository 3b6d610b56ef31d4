// One `lif_network` on tiles: its plan and variables, and what brings operands there.
#pragma once

#include <builders/lif_network.hpp>

#include "executor/targets/network_operands.hpp"

namespace snnjax::executor::targets {

struct NetworkOnTiles {
  builders::NetworkPlan plan;
  builders::NetworkTensors tensors;
  // Of events: the slots that the sorted ones came from, unsigned [batch * num_steps * capacity] at the homes.
  poplar::Tensor event_slots;
};

// A history [batch * num_steps * width] at the homes of a list, seen as [num_steps, batch, width].
poplar::Tensor inTime(const builders::NetworkPlan& plan, const builders::ListPlan& list, const poplar::Tensor& history,
                      std::size_t width);

// Adds variables and what fills them: operands, state and inputs.
NetworkOnTiles bringNetwork(Lowering& lowering, const NetworkOperands& operands,
                            const builders::NetworkOptions& options);

}  // namespace snnjax::executor::targets
