// What the stages of a time loop share while it is built.
#pragma once

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <vector>

#include "network_plan.hpp"
#include "network_tensors.hpp"
#include "step_clock.hpp"

namespace snnjax::builders {

struct Loop {
  Loop(poplar::Graph& its_graph, const NetworkPlan& its_plan, const NetworkTensors& its_tensors,
       const std::string& its_name)
      : graph(its_graph),
        plan(its_plan),
        tensors(its_tensors),
        name(its_name),
        sets{its_graph.addComputeSet(its_name + "/first"), its_graph.addComputeSet(its_name + "/second")},
        clock(its_graph, sets, its_name + "/clock") {}

  poplar::Graph& graph;
  const NetworkPlan& plan;
  const NetworkTensors& tensors;
  std::string name;
  LoopSets sets;
  StepClock clock;
};

// Sets all elements to a value, each on its own tile, in the compute set `name`. Floats, and for zeros any type.
poplar::program::Program fill(poplar::Graph& graph, const std::vector<poplar::Tensor>& tensors, float value,
                              const std::string& name);
poplar::program::Program zeros(poplar::Graph& graph, const std::vector<poplar::Tensor>& tensors,
                               const std::string& name);

// In set `set` of each iteration, the lists of a home at step t = iteration - delay (num_steps - 1 - that, in
// `reverse`) go from lists[l]'s history into `into` [batch, stride].
void addLoadStep(Loop& loop, std::size_t l, const Home& home, const poplar::Tensor& into, unsigned set, unsigned delay,
                 bool reverse);

}  // namespace snnjax::builders
