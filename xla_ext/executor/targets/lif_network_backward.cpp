// The target `snnjax_lif_network_backward`.
#include <builders/vertices.hpp>
#include <popops/Reduce.hpp>

#include "executor/targets/network.hpp"
#include "executor/targets/network_check.hpp"
#include "executor/targets/operands.hpp"

namespace snnjax::executor::targets {
namespace {

using builders::LayerCotangents;
using builders::LayerPlan;
using poplar::Tensor;

// The results that are gradients of weights, if requested.
struct WeightsResults {
  Value weights, recurrent;
};

// Of each layer and, at last, of the readout, if there is one.
std::vector<WeightsResults> weightsResults(const NetworkOperands& operands, const BackwardCall& call) {
  const lif_network::Operands<Value>& to = call.results.operands;
  std::vector<WeightsResults> results;
  for (std::size_t l = 0; l < operands.fields.size(); ++l) {
    results.push_back({to.linears[l].weights.array, to.constants[l].recurrent.array});
  }
  if (operands.has_readout) results.push_back({to.readout.linear.weights.array, std::nullopt});
  return results;
}

// Of each layer, whether a gradient of its constants is requested.
std::vector<bool> learningLayers(const NetworkOperands& operands, const BackwardCall& call) {
  std::vector<bool> learns;
  for (const lif_network::LayerConstants<Value>& to : call.results.operands.constants) {
    const std::array<Value, kSecondConstants> second = secondOf(to.second_state);
    const bool any = std::ranges::any_of(second, [](const Value& each) { return each.has_value(); });
    learns.push_back(any || to.decay || to.threshold || to.gain);
  }
  const lif_network::Readout<Value>& readout = call.results.operands.readout;
  if (operands.has_readout) learns.push_back(readout.decay || readout.gain);
  return learns;
}

bool wantsFirstSpikes(const BackwardCall& call) {
  return std::ranges::any_of(call.results.operands.first, [](const auto& to) { return to.spikes.has_value(); });
}

class BackwardPass {
 public:
  BackwardPass(Lowering& lowering, const BackwardCall& call, const NetworkOperands& operands,
               const NetworkOnTiles& network, const std::vector<bool>& learns)
      : lowering_(lowering),
        operands_(operands),
        from_(call.arguments.g),
        results_(call.results.operands),
        network_(network),
        plan_(network.plan),
        num_lif_(operands.fields.size()) {
    plan_.options.inputs_gradient = results_.inputs.array || results_.inputs.values;
    plan_.options.first_spikes_gradient = wantsFirstSpikes(call);
    plan_.options.last_spikes_gradient =
        std::ranges::any_of(from_.last, [&](const auto& g) { return g.spikes && !isZero(lowering, *g.spikes); });
    for (std::size_t l = 0; l < learns.size(); ++l) plan_.layers[l].learns_constants = learns[l];
    findGradients(weightsResults(operands, call));
    to_ = builders::addNetworkCotangents(lowering.graph(), plan_, in_place_);
  }

  void run() {
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) bringLayer(l);
    lowering_.program().add(builders::addBackward(lowering_.graph(), plan_, network_.tensors, to_));
    giveInputs();
    for (std::size_t l = 0; l < num_lif_; ++l) giveLinear(l, results_.linears[l]);
    for (std::size_t l = 0; l < num_lif_; ++l) giveConstants(l);
    if (operands_.has_readout) giveReadout();
    for (std::size_t l = 0; l < num_lif_; ++l) giveState(l);
    if (results_.first_readout) give(results_.first_readout, firstMembranes(num_lif_));
  }

 private:
  // Gradients of weights are accumulated in place if they share the weights' layout.
  void findGradients(const std::vector<WeightsResults>& results) {
    in_place_.resize(plan_.layers.size());
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerPlan& layer = plan_.layers[l];
      const auto find = [&](const Value& result, std::size_t rows) {
        return result ? gradientInPlace(lowering_, layer.tiles, rows, layer.neurons, *result) : Tensor();
      };
      in_place_[l] = {find(results[l].weights, layer.inputs), find(results[l].recurrent, layer.neurons)};
    }
  }
  std::size_t batch() const { return plan_.options.batch; }
  std::size_t numRows() const { return batch() * plan_.options.num_steps; }

  void bringLayer(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerCotangents& own = to_.layers[l];
    if (layer.leaky) {
      rows(layer, *from_.last_readout, own.g_v, batch());
    } else {
      const lif_network::LayerState<Value>& last = from_.last[l];
      rows(layer, *last.v, own.g_last, batch());
      if (from_.counts[l]) {
        rows(layer, *from_.counts[l], own.g_counts, batch());
      } else {
        lowering_.graph().setInitialValue(own.g_counts, 0.0F);
      }
      if (last.w) rows(layer, *last.w, own.g_last_w, batch());
      if (last.spikes && own.g_last_spikes.valid()) {
        bring(lowering_, lowering_.get(*last.spikes)[0], own.g_last_spikes);
      }
    }
    if (l + 1 < plan_.layers.size()) return;
    const Value& g_output = operands_.has_readout ? from_.output : from_.spikes.back();
    if (plan_.listsOutput()) return bringLists(*g_output, own.g_output);
    const Tensor steps = builders::outputInTime(plan_, own.g_output);
    rows(layer, *g_output, steps.slice(0, numRows() * layer.tiles.columns, 1), numRows());
  }

  // Gradients of listed spikes; slots may be more than neurons.
  void bringLists(ValueId from, const Tensor& history) {
    const builders::ListPlan& list = plan_.lists.back();
    const Tensor entries = lowering_.get(from)[0].slice(0, list.capacity, 2);
    bring(lowering_, entries, builders::inTime(plan_, list, history, list.capacity));
  }

  void rows(const LayerPlan& layer, ValueId from, const Tensor& blocks, std::size_t count) {
    zeroBeside(lowering_.graph(), blocks, layer.tiles, count, layer.neurons);
    bring(lowering_, lowering_.get(from)[0], asRows(blocks, layer.tiles, count, layer.neurons));
  }

  // If it is requested.
  void give(const Value& result, const Tensor& tensor) {
    if (result) yield(lowering_, *result, tensor);
  }

  void giveInputs() {
    if (!plan_.options.inputs_gradient) return;
    const builders::ListPlan& list = plan_.lists.front();
    if (list.dense) return give(results_.inputs.array, builders::inTime(plan_, list, to_.g_inputs, list.capacity));
    const Tensor unsorted =
        builders::addHistory(lowering_.graph(), poplar::FLOAT, plan_, list, list.capacity, "events/gradient");
    const poplar::ComputeSet set = lowering_.graph().addComputeSet(lowering_.debug("events"));
    for (const builders::Home& home : list.homes) {
      const auto own = [&](const Tensor& history, std::size_t width) {
        return builders::historyOf(plan_, width, history, home);
      };
      builders::addVertex(
          lowering_.graph(), set, "snnjax::UnsortEvents", home.tile,
          {{"lists", own(network_.tensors.lists.front().history, list.stride)},
           {"slots", own(network_.event_slots, list.capacity)},
           {"g", own(to_.g_inputs, list.capacity)},
           {"out", own(unsorted, list.capacity)}},
          {{"rows", plan_.num_blocks * home.rows}, {"capacity", list.capacity}, {"stride", list.stride}});
    }
    lowering_.program().add(poplar::program::Execute(set));
    give(results_.inputs.values, builders::inTime(plan_, list, unsorted, list.capacity));
  }

  void giveWeights(const Value& result, const LayerPlan& layer, const Tensor& in_place, const Tensor& gradient,
                   std::size_t rows) {
    if (result && !in_place.valid()) give(result, asRows(gradient, layer.tiles, rows, layer.neurons, 1));
  }

  void giveLinear(std::size_t l, const lif_network::Linear<Value>& to) {
    const LayerPlan& layer = plan_.layers[l];
    giveWeights(to.weights.array, layer, in_place_[l].weights, to_.layers[l].g_weights, layer.inputs);
    giveOverBatch(to.bias, l, to_.layers[l].g_bias);
  }

  void giveConstants(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerCotangents& own = to_.layers[l];
    const lif_network::LayerConstants<Value>& to = results_.constants[l];
    giveWeights(to.recurrent.array, layer, in_place_[l].recurrent, own.g_recurrent, layer.neurons);
    giveOverBatch(to.decay, l, own.g_decay);
    giveOverBatch(to.threshold, l, own.g_threshold);
    giveOverBatch(to.gain, l, own.g_gain);
    const std::size_t row = batch() * layer.tiles.columns;
    const std::array<Value, kSecondConstants> second = secondOf(to.second_state);
    for (unsigned k = 0; k < kSecondConstants; ++k) {
      if (second[k]) giveOverBatch(second[k], l, own.g_second.slice(k * row, (k + 1) * row, 1));
    }
  }

  void giveReadout() {
    const LayerCotangents& own = to_.layers[num_lif_];
    giveLinear(num_lif_, results_.readout.linear);
    giveOverBatch(results_.readout.decay, num_lif_, own.g_decay);
    giveOverBatch(results_.readout.gain, num_lif_, own.g_gain);
  }

  Tensor firstMembranes(std::size_t l) const {
    const LayerPlan& layer = plan_.layers[l];
    const LayerCotangents& own = to_.layers[l];
    return asRows(layer.leaky ? own.g_v : own.g_first, layer.tiles, batch(), layer.neurons);
  }

  void giveState(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerCotangents& own = to_.layers[l];
    const lif_network::LayerState<Value>& to = results_.first[l];
    if (to.v) give(to.v, firstMembranes(l));
    if (to.w) give(to.w, asRows(own.g_first_w, layer.tiles, batch(), layer.neurons));
    if (to.spikes) give(to.spikes, own.g_first_spikes);
  }

  // [tiles, batch * columns] summed over the batch, [neurons], if it is requested.
  void giveOverBatch(const Value& result, std::size_t l, const Tensor& blocks) {
    if (!result) return;
    const LayerPlan& layer = plan_.layers[l];
    const Tensor sum =
        popops::reduce(lowering_.graph(), asRows(blocks, layer.tiles, batch(), layer.neurons), poplar::FLOAT, {0},
                       popops::Operation::ADD, lowering_.program(), lowering_.debug("over_batch"));
    give(result, sum);
  }

  Lowering& lowering_;
  const NetworkOperands& operands_;
  const lif_network::Cotangents<Value>& from_;
  const lif_network::Operands<Value>& results_;
  const NetworkOnTiles& network_;
  builders::NetworkPlan plan_;
  std::size_t num_lif_;
  std::vector<builders::LayerWeights> in_place_;  // gradients computed in place
  builders::NetworkCotangents to_;
};

// Whether a forward pass kept the second states that gradients of constants need, and the first spikes for theirs.
bool keepsEnough(const NetworkOnTiles& network, const BackwardCall& call, const std::vector<bool>& learns) {
  for (std::size_t l = 0; l < learns.size(); ++l) {
    const bool reads_second = learns[l] && network.plan.layers[l].neuron.second_state;
    if (reads_second && !network.plan.keepsSecond(l)) return false;
  }
  return network.plan.options.first_spikes || !wantsFirstSpikes(call);
}

// From the record alone, where its network is out of reach or kept too little.
NetworkOnTiles restored(Lowering& lowering, const NetworkOperands& operands, const BackwardCall& call) {
  builders::NetworkOptions options = optionsOf(lowering, operands, true);
  options.first_spikes = options.first_spikes || wantsFirstSpikes(call);
  return restoreNetwork(lowering, operands, options, call.arguments.record, call.arguments.output);
}

void lifNetworkBackward(Lowering& lowering, const Instruction& instruction) {
  const BackwardCall call(instruction);
  const NetworkOperands operands = call.network();
  const Value& v = call.arguments.record.layers.front().v;
  const auto* const found = dynamic_cast<const NetworkOnTiles*>(lowering.recordOf(v.value()));
  const std::vector<bool> learns = learningLayers(operands, call);
  const bool is_enough = found != nullptr && keepsEnough(*found, call, learns);
  NetworkOnTiles network = is_enough ? *found : restored(lowering, operands, call);
  if (is_enough) readWeightsOf(lowering, operands, network);
  network.tensors.has_copies = is_enough;
  BackwardPass(lowering, call, operands, network, learns).run();
}

std::vector<Proposal> propose(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  const BackwardCall call(instruction);
  const NetworkOperands operands = call.network();
  const builders::NetworkPlan network = planOf(plan, operands, true, target);
  std::vector<Proposal> proposals = proposalsFor(operands, network);
  const std::vector<WeightsResults> results = weightsResults(operands, call);
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const LayerPlan& layer = network.layers[l];
    const auto add = [&](const Value& result, std::size_t rows) {
      const std::optional<Blocks> blocks = blocksOf(layer.tiles, rows, layer.neurons);
      if (result && blocks) proposals.push_back({*result, *blocks});
    };
    add(results[l].weights, layer.inputs);
    add(results[l].recurrent, layer.neurons);
  }
  return proposals;
}

void checkLifNetworkBackward(const OperationCheck& op) {
  const BackwardCall call(op.instruction());
  const NetworkOperands operands = call.network();
  const auto is_given = [](const Value& value) { return value.has_value(); };
  const std::vector<Value>& g_spikes = call.arguments.g.spikes;
  op.need(operands.has_readout || is_given(g_spikes.back()), "have an output");
  op.need(std::ranges::count_if(g_spikes, is_given) == (operands.has_readout ? 0 : 1), "record no spikes");
  op.need(std::ranges::none_of(call.results.g_v, is_given), "overwrite no record");
  const NetworkCheck check(op, operands);
  check.needAll(call.arguments);
  const std::vector<bool> learns = learningLayers(operands, call);
  for (std::size_t l = 0; l < operands.fields.size(); ++l) {
    const lif_network::LayerOnTiles<Value>& record = call.arguments.record.layers[l];
    check.needLists(l, record);
    op.need(!learns[l] || !operands.fields[l].has_second || record.w, "record second states for its constants");
  }
  check.needCotangents(call);
}

}  // namespace

extern const Operation kLifNetworkBackward = {checkLifNetworkBackward, lifNetworkBackward, propose};

}  // namespace snnjax::executor::targets
