// State shared by the stages of a time loop while it is built.
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
       const std::string& its_name, unsigned num_sets)
      : graph(its_graph),
        plan(its_plan),
        tensors(its_tensors),
        name(its_name),
        sets(addSets(its_graph, its_name, num_sets)),
        clock(its_graph, sets, its_name + "/clock") {}

  poplar::Graph& graph;
  const NetworkPlan& plan;
  const NetworkTensors& tensors;
  std::string name;
  LoopSets sets;
  StepClock clock;

 private:
  static LoopSets addSets(poplar::Graph& graph, const std::string& name, unsigned count);
};

// Sets all elements to a value, each on its own tile, in the compute set `name`. Floats, and for zeros any type.
poplar::program::Program fill(poplar::Graph& graph, const std::vector<poplar::Tensor>& tensors, float value,
                              const std::string& name);
poplar::program::Program zeros(poplar::Graph& graph, const std::vector<poplar::Tensor>& tensors,
                               const std::string& name);

// When a vertex runs: in set `set`, at step t = iteration - delay or, in `reverse`, num_steps - 1 - that.
struct When {
  unsigned set = 0;
  unsigned delay = 0;
  bool reverse = false;
};

// A row goes from a history [num_steps, width] on `tile`, or from there into it ("StoreStep").
void addStep(Loop& loop, const char* codelet, unsigned tile, const poplar::Tensor& history, const poplar::Tensor& row,
             When when);

// The lists that layer `l` reads, with their values, go from the history at their homes to the lists of the step; of
// dense inputs, the nonzero ones are listed.
void addLoadLists(Loop& loop, std::size_t l, When when);

}  // namespace snnjax::builders
