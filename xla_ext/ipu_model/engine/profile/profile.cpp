// The profile of an engine: its counters, and what its plan knew in advance.
#include "ipu_model/profile.hpp"

#include <algorithm>
#include <map>

#include "costs/costs.hpp"
#include "engine/profile/program_order.hpp"
#include "engine/run/engine_data.hpp"

namespace ipu_model {
namespace {

ExchangeProfile times(const ExchangeCost& cost, std::uint64_t executions) {
  return {cost.cycles * executions, cost.bytes * executions, cost.link_bytes * executions, cost.messages * executions};
}

void add(ExchangeProfile& sum, const ExchangeProfile& other) {
  sum.cycles += other.cycles;
  sum.bytes += other.bytes;
  sum.link_bytes += other.link_bytes;
  sum.messages += other.messages;
}

ComputeSetProfile profileOf(const ComputeSetPlan& plan, const ComputeSetCounters& counters) {
  ComputeSetProfile profile;
  profile.name = plan.name;
  profile.executions = counters.executions;
  profile.cycles = counters.cycles;
  profile.max = counters.max;
  profile.tiles = plan.tiles.size();
  profile.tile_cycles = counters.tile_cycles;
  profile.sync_cycles = (plan.before.sync_cycles + plan.after.sync_cycles) * counters.executions;
  profile.exchange = times(plan.before, counters.executions);
  add(profile.exchange, times(plan.after, counters.executions));
  for (std::size_t i = 0; i < plan.codelets.size(); ++i) {
    const CodeletCounters& codelet = counters.codelets[i];
    profile.codelets.push_back(
        {plan.codelets[i]->name, 0, codelet.count, codelet.cycles, codelet.max, codelet.unknown});
  }
  for (const VertexPlan& vertex : plan.vertices) ++profile.codelets[vertex.codelet].vertices;
  return profile;
}

// Those of one name together, the costliest first.
std::vector<CodeletProfile> merged(const std::vector<ComputeSetProfile>& compute_sets) {
  std::map<std::string, CodeletProfile> by_name;
  for (const ComputeSetProfile& compute_set : compute_sets) {
    for (const CodeletProfile& codelet : compute_set.codelets) {
      CodeletProfile& sum = by_name[codelet.name];
      sum.name = codelet.name;
      sum.vertices += codelet.vertices;
      sum.count += codelet.count;
      sum.cycles += codelet.cycles;
      sum.max = std::max(sum.max, codelet.max);
      sum.unknown += codelet.unknown;
    }
  }
  std::vector<CodeletProfile> result;
  for (auto& [name, codelet] : by_name) result.push_back(std::move(codelet));
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.cycles > b.cycles; });
  return result;
}

std::vector<TileProfile> tilesOf(const Plan& plan, const Counters& counters) {
  std::vector<TileProfile> tiles(plan.replicas * plan.memory.size());
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    const TileBytes& bytes = plan.memory[tile % plan.memory.size()];
    tiles[tile] = {counters.tile_cycles[tile], bytes.variables, bytes.vertices, bytes.code,
                   bytes.exchange_code,        bytes.buffers,   bytes.stacks};
  }
  return tiles;
}

}  // namespace

Profile profileOf(const poplar::Engine& engine) {
  const Plan& plan = engine.data().plan();
  const Counters& counters = engine.data().counters();
  Profile profile;
  profile.chip = plan.target.chip().name;
  profile.clock_hz = plan.target.getTileClockFrequency();
  profile.ipus = plan.target.getNumIPUs() * plan.replicas;
  profile.replicas = plan.replicas;
  profile.graph = {plan.sizes.vertices, plan.sizes.edges, plan.sizes.variables, plan.sizes.compute_sets};
  profile.tiles_per_ipu = plan.target.getTilesPerIPU();
  profile.memory_per_tile = plan.target.getBytesPerTile();
  const ProgramOrder order(plan);
  profile.cycles = {counters.compute, counters.exchange, counters.sync, counters.host};
  for (const std::uint64_t busy : counters.busy) profile.waiting.push_back(profile.cycles.total() - busy);
  for (std::size_t i = 0; i < plan.compute_sets.size(); ++i) {
    profile.compute_sets.push_back(profileOf(plan.compute_sets[i], counters.compute_sets[i]));
    profile.compute_sets.back().position = order.compute_sets[i];
  }
  for (std::size_t i = 0; i < plan.copies.size(); ++i) {
    const std::uint64_t executions = counters.copies[i].executions;
    const ExchangeCost& cost = plan.copies[i].cost;
    profile.copies.push_back(
        {plan.copies[i].name, order.copies[i], executions, cost.sync_cycles * executions, 0, times(cost, executions)});
  }
  for (std::size_t i = 0; i < plan.host.size(); ++i) {
    const CopyCounters& stream = counters.streams[i];
    if (stream.executions == 0) continue;
    const ExchangeCost& cost = plan.host[i].rearrangement;
    const std::uint64_t sync_cycles = stream.sync_cycles + cost.sync_cycles * stream.executions;
    ExchangeProfile exchange = times(cost, stream.executions);
    exchange.bytes = plan.host[i].bytes * stream.executions;
    profile.streams.push_back(
        {plan.host[i].name, order.host[i], stream.executions, sync_cycles, stream.host_cycles, exchange});
  }
  profile.codelets = merged(profile.compute_sets);
  for (const CodeletProfile& codelet : profile.codelets) {
    if (codelet.unknown > 0) profile.unknown_codelets.push_back(codelet.name);
  }
  profile.tiles = tilesOf(plan, counters);
  return profile;
}

}  // namespace ipu_model
