// The target `snnjax_lif_network_backward`: operands, record and cotangents as _backward_leaves of
// snnjax/ops/_lif_network/kernel.py, results as its `needs` says.
#include <bit>
#include <builders/loop.hpp>
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

// Decay, threshold and gain; the constants of a second state follow.
constexpr std::size_t kConstants = 3;

std::size_t numConstants(const LayerFields& fields) {
  return kConstants + static_cast<std::size_t>(std::popcount(fields.second_mask));
}

// The operands behind those of the forward pass.
struct CotangentOperands {
  struct Layer {
    std::optional<ValueId> g_counts, g_last_w, g_last_spikes;
    ValueId g_last;
  };

  CotangentOperands(const Instruction& instruction, const NetworkOperands& operands, Taker& taker) {
    if (!operands.has_lists) {
      for (int leaf = 0; leaf < 2; ++leaf) taker.next();  // the record of dense inputs
    }
    mark = taker.next();
    for (std::size_t l = 0; l < operands.fields.size(); ++l) {
      if (l > 0) taker.next();
      taker.nextIf(operands.fields[l].records_current);
      taker.next();
      taker.nextIf(operands.fields[l].capacity.has_value());
    }
    taker.nextIf(operands.has_readout);  // the output
    g_output = taker.next();
    const bool has_g_counts = flag(instruction, "has_g_counts");
    for (const LayerFields& fields : operands.fields) {
      Layer& layer = layers.emplace_back();
      layer.g_counts = taker.nextIf(has_g_counts);
      layer.g_last = taker.next();
      layer.g_last_w = taker.nextIf(fields.hasSecond());
      layer.g_last_spikes = taker.nextIf(fields.is_recurrent);
    }
    if (operands.has_readout) layers.emplace_back().g_last = taker.next();
  }

  ValueId mark;  // of the record
  ValueId g_output;
  std::vector<Layer> layers;
};

// Which results are gradients of weights, if requested.
struct WeightsResults {
  std::optional<std::size_t> weights, recurrent;
};

std::vector<WeightsResults> weightsResults(const NetworkOperands& operands, const std::vector<long>& needs) {
  std::vector<WeightsResults> results(operands.layers.size());
  std::size_t at = 0, result = 0;
  const auto next = [&] { return needs.at(at++) != 0 ? std::optional(result++) : std::nullopt; };
  next();  // of the inputs
  for (std::size_t l = 0; l < operands.fields.size(); ++l) {
    results[l].weights = next();
    if (operands.layers[l].bias) next();
  }
  for (std::size_t l = 0; l < operands.fields.size(); ++l) {
    if (operands.layers[l].recurrent) results[l].recurrent = next();
    for (std::size_t i = 0; i < numConstants(operands.fields[l]); ++i) next();
  }
  if (operands.has_readout) results.back().weights = next();
  return results;
}

// Of each layer, whether `needs` names one of its constants: after the inputs, weights and biases, each after its
// layer's recurrent weights.
std::vector<bool> learningLayers(const Instruction& instruction, const NetworkOperands& operands) {
  const std::vector<long> needs = wholeNumbers(instruction, "needs");
  std::size_t at = 1;
  const auto skipLinear = [&](const LayerOperands& layer) { at += layer.bias ? 2 : 1; };
  const auto anyOfNext = [&](std::size_t count) {
    bool any = false;
    for (const std::size_t end = at + count; at < end; ++at) any = any || needs.at(at) != 0;
    return any;
  };
  for (std::size_t l = 0; l < operands.fields.size(); ++l) skipLinear(operands.layers[l]);
  std::vector<bool> learns;
  for (std::size_t l = 0; l < operands.fields.size(); ++l) {
    if (operands.layers[l].recurrent) ++at;
    learns.push_back(anyOfNext(numConstants(operands.fields[l])));
  }
  if (!operands.has_readout) return learns;
  skipLinear(operands.layers.back());
  learns.push_back(anyOfNext(2));
  return learns;
}

class BackwardPass {
 public:
  BackwardPass(Lowering& lowering, const Instruction& instruction, const NetworkOperands& operands,
               const CotangentOperands& cotangents, const NetworkOnTiles& network, const std::vector<bool>& learns)
      : lowering_(lowering),
        instruction_(instruction),
        operands_(operands),
        from_(cotangents),
        network_(network),
        plan_(network.plan),
        needs_(wholeNumbers(instruction, "needs")),
        num_lif_(operands.fields.size()) {
    plan_.options.inputs_gradient = needs_.at(0) != 0;
    for (std::size_t l = 0; l < learns.size(); ++l) plan_.layers[l].learns_constants = learns[l];
    findGradients();
    to_ = builders::addNetworkCotangents(lowering.graph(), plan_, in_place_);
  }

  void run() {
    addZeros();
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) bringLayer(l);
    lowering_.program().add(builders::addBackward(lowering_.graph(), plan_, network_.tensors, to_));
    giveInputs();
    for (std::size_t l = 0; l < num_lif_; ++l) giveLinear(l);
    for (std::size_t l = 0; l < num_lif_; ++l) giveConstants(l);
    if (operands_.has_readout) giveReadout();
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) giveState(l);
  }

 private:
  // Gradients of weights are accumulated in place if they share the weights' layout.
  void findGradients() {
    const std::vector<WeightsResults> results = weightsResults(operands_, needs_);
    in_place_.resize(plan_.layers.size());
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerPlan& layer = plan_.layers[l];
      const auto find = [&](const std::optional<std::size_t>& result, std::size_t rows) {
        if (!result) return Tensor();
        return gradientInPlace(lowering_, layer.tiles, rows, layer.neurons, instruction_.outputs[*result]);
      };
      in_place_[l] = {find(results[l].weights, layer.inputs), find(results[l].recurrent, layer.neurons)};
    }
  }
  std::size_t batch() const { return plan_.options.batch; }
  std::size_t steps() const { return plan_.options.num_steps; }

  // Gradients are accumulated.
  void addZeros() {
    std::vector<Tensor> zero;
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerCotangents& own = to_.layers[l];
      for (const Tensor& each : {own.g_weights, own.g_bias, own.g_recurrent, own.g_decay, own.g_threshold, own.g_gain,
                                 own.g_w, own.g_second}) {
        if (each.valid()) zero.push_back(each);
      }
      const std::vector<Tensor>& rows = network_.tensors.layers[l].zero_rows;
      zero.insert(zero.end(), rows.begin(), rows.end());
      if (!plan_.layers[l].leaky) zero.push_back(own.g_v);
      if (l < num_lif_ && !from_.layers[l].g_counts) zero.push_back(own.g_counts);
    }
    lowering_.program().add(builders::zeros(lowering_.graph(), zero, lowering_.debug("zeros").getPathName()));
  }

  void bringLayer(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerCotangents& own = to_.layers[l];
    const CotangentOperands::Layer& from = from_.layers[l];
    rows(layer, from.g_last, layer.leaky ? own.g_v : own.g_last, batch());
    if (from.g_counts) rows(layer, *from.g_counts, own.g_counts, batch());
    if (from.g_last_w) rows(layer, *from.g_last_w, own.g_last_w, batch());
    if (from.g_last_spikes) bring(lowering_, lowering_.get(*from.g_last_spikes)[0], own.g_last_spikes);
    if (l + 1 == plan_.layers.size()) rows(layer, from_.g_output, own.g_output, steps() * batch());
  }

  void rows(const LayerPlan& layer, ValueId from, const Tensor& blocks, std::size_t count) {
    zeroBeside(lowering_.graph(), blocks, layer.tiles, count, layer.neurons);
    bring(lowering_, lowering_.get(from)[0], asRows(blocks, layer.tiles, count, layer.neurons));
  }

  // Whether the next operand that `needs` names wants its cotangent.
  bool wanted() { return needs_.at(next_need_++) != 0; }
  void give(const Tensor& tensor) { yield(lowering_, instruction_, given_++, tensor); }

  void giveInputs() {
    if (!wanted()) return;
    const builders::ListPlan& list = plan_.lists.front();
    if (list.dense) return give(inTime(plan_, list, to_.g_inputs, list.capacity));
    const Tensor unsorted =
        builders::addHistory(lowering_.graph(), poplar::FLOAT, plan_, list, list.capacity, "events/gradient");
    const poplar::ComputeSet set = lowering_.graph().addComputeSet(lowering_.debug("events"));
    for (const builders::Home& home : list.homes) {
      const auto own = [&](const Tensor& history) { return builders::historyOf(plan_, list.capacity, history, home); };
      builders::addVertex(lowering_.graph(), set, "snnjax::UnsortEvents", home.tile,
                          {{"g", own(to_.g_inputs)}, {"slots", own(network_.event_slots)}, {"out", own(unsorted)}},
                          {{"rows", plan_.options.num_steps * home.samples}, {"capacity", list.capacity}});
    }
    lowering_.program().add(poplar::program::Execute(set));
    give(inTime(plan_, list, unsorted, list.capacity));
  }

  void giveWeights(const LayerPlan& layer, const Tensor& in_place, const Tensor& gradient, std::size_t rows) {
    if (in_place.valid()) {
      ++given_;
    } else {
      give(asRows(gradient, layer.tiles, rows, layer.neurons, 1));
    }
  }

  void giveLinear(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    if (wanted()) giveWeights(layer, in_place_[l].weights, to_.layers[l].g_weights, layer.inputs);
    if (operands_.layers[l].bias && wanted()) give(overBatch(l, to_.layers[l].g_bias));
  }

  void giveConstants(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerCotangents& own = to_.layers[l];
    if (operands_.layers[l].recurrent && wanted()) {
      giveWeights(layer, in_place_[l].recurrent, own.g_recurrent, layer.neurons);
    }
    for (const Tensor& each : {own.g_decay, own.g_threshold, own.g_gain}) {
      if (wanted()) give(overBatch(l, each));
    }
    const std::size_t row = batch() * layer.tiles.columns;
    for (unsigned k = 0; k < kSecondConstants; ++k) {
      if (operands_.layers[l].second[k] && wanted()) {
        give(overBatch(l, own.g_second.slice(k * row, (k + 1) * row, 1)));
      }
    }
  }

  void giveReadout() {
    const std::size_t last = num_lif_;
    giveLinear(last);
    for (const Tensor& each : {to_.layers[last].g_decay, to_.layers[last].g_gain}) {
      if (wanted()) give(overBatch(last, each));
    }
  }

  void giveState(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerCotangents& own = to_.layers[l];
    give(asRows(layer.leaky ? own.g_v : own.g_first, layer.tiles, batch(), layer.neurons));
    if (own.g_first_w.valid()) give(asRows(own.g_first_w, layer.tiles, batch(), layer.neurons));
    if (!layer.recurrent) return;
    if (own.g_first_spikes.valid()) return give(own.g_first_spikes);
    give(zeroScalar());
  }

  Tensor zeroScalar() {
    const Tensor zero = lowering_.graph().addConstant(poplar::FLOAT, {1}, 0.0F, lowering_.debug("zero"));
    lowering_.graph().setTileMapping(zero, plan_.layers.front().tiles.first);
    return zero;
  }

  // [tiles, batch * columns] summed over the batch: [neurons].
  Tensor overBatch(std::size_t l, const Tensor& blocks) {
    const LayerPlan& layer = plan_.layers[l];
    return popops::reduce(lowering_.graph(), asRows(blocks, layer.tiles, batch(), layer.neurons), poplar::FLOAT, {0},
                          popops::Operation::ADD, lowering_.program(), lowering_.debug("over_batch"));
  }

  Lowering& lowering_;
  const Instruction& instruction_;
  const NetworkOperands& operands_;
  const CotangentOperands& from_;
  const NetworkOnTiles& network_;
  builders::NetworkPlan plan_;
  std::vector<long> needs_;
  std::size_t num_lif_;
  std::vector<builders::LayerWeights> in_place_;  // gradients computed in place
  builders::NetworkCotangents to_;
  std::size_t next_need_ = 0, given_ = 0;
};

// Whether a forward pass kept the second states that gradients of constants need.
bool keepsEnough(const NetworkOnTiles& network, const std::vector<bool>& learns) {
  for (std::size_t l = 0; l < learns.size(); ++l) {
    const bool reads_second = learns[l] && network.plan.layers[l].neuron.second_state;
    if (reads_second && !network.plan.keepsSecond(l)) return false;
  }
  return true;
}

// Runs the forward pass again, where its network is out of reach or kept too little.
NetworkOnTiles recompute(Lowering& lowering, const Instruction& instruction, const NetworkOperands& operands,
                         const std::vector<bool>& learns) {
  builders::NetworkOptions options = optionsOf(lowering, instruction, operands, true);
  for (std::size_t l = 0; l < options.layers.size(); ++l) options.layers[l].neuron.keeps_second = learns[l];
  NetworkOnTiles network = bringNetwork(lowering, operands, options);
  lowering.program().add(builders::addForward(lowering.graph(), network.plan, network.tensors));
  return network;
}

void lifNetworkBackward(Lowering& lowering, const Instruction& instruction) {
  Taker taker(instruction.inputs);
  const NetworkOperands operands(instruction, taker);
  const CotangentOperands cotangents(instruction, operands, taker);
  const auto* const found = dynamic_cast<const NetworkOnTiles*>(lowering.recordOf(cotangents.mark));
  const std::vector<bool> learns = learningLayers(instruction, operands);
  const bool is_enough = found != nullptr && keepsEnough(*found, learns);
  NetworkOnTiles network = is_enough ? *found : recompute(lowering, instruction, operands, learns);
  if (is_enough) readWeightsOf(lowering, operands, network);
  BackwardPass(lowering, instruction, operands, cotangents, network, learns).run();
}

std::vector<Proposal> propose(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  Taker taker(instruction.inputs);
  const NetworkOperands operands(instruction, taker);
  const builders::NetworkPlan network = planOf(plan, instruction, operands, true, target);
  std::vector<Proposal> proposals = proposalsFor(operands, network);
  const std::vector<WeightsResults> results = weightsResults(operands, wholeNumbers(instruction, "needs"));
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const LayerPlan& layer = network.layers[l];
    const auto add = [&](const std::optional<std::size_t>& result, std::size_t rows) {
      const std::optional<Blocks> blocks = blocksOf(layer.tiles, rows, layer.neurons);
      if (result && blocks) proposals.push_back({instruction.outputs.at(*result), *blocks});
    };
    add(results[l].weights, layer.inputs);
    add(results[l].recurrent, layer.neurons);
  }
  return proposals;
}

void checkCotangents(const NetworkCheck& check, const CotangentOperands& cotangents) {
  const std::size_t last = cotangents.layers.size() - 1;
  check.needTimed(cotangents.g_output, Numbers::kFloats, {check.neurons(last)});
  for (std::size_t l = 0; l <= last; ++l) {
    const CotangentOperands::Layer& layer = cotangents.layers[l];
    for (const std::optional<ValueId>& each :
         {layer.g_counts, std::optional(layer.g_last), layer.g_last_w, layer.g_last_spikes}) {
      if (each) check.needSequences(*each, Numbers::kFloats, {check.neurons(l)});
    }
  }
}

// The results that `needs` asks for, in its order.
class NeededResults {
 public:
  NeededResults(const NetworkCheck& check, Taker& results)
      : check_(check), results_(results), needs_(wholeNumbers(check.op().instruction(), "needs")) {}

  void next(const Shape& sizes) {
    check_.op().need(at_ < needs_.size(), "have as many `needs` as its attributes say");
    if (needs_[at_++] != 0) check_.need(results_.next(), Numbers::kFloats, sizes);
  }
  void end() { check_.op().need(at_ == needs_.size(), "have as many `needs` as its attributes say"); }

 private:
  const NetworkCheck& check_;
  Taker& results_;
  std::vector<long> needs_;
  std::size_t at_ = 0;
};

void checkNeeded(const NetworkCheck& check, Taker& results) {
  const NetworkOperands& operands = check.operands();
  NeededResults needed(check, results);
  const auto linear = [&](std::size_t l) {
    needed.next({check.inputs(l), check.neurons(l)});
    if (operands.layers[l].bias) needed.next({check.neurons(l)});
  };
  needed.next(check.sizesOfInputs());
  for (std::size_t l = 0; l < operands.fields.size(); ++l) linear(l);
  for (std::size_t l = 0; l < operands.fields.size(); ++l) {
    const std::size_t neurons = check.neurons(l);
    if (operands.layers[l].recurrent) needed.next({neurons, neurons});
    for (std::size_t i = 0; i < numConstants(operands.fields[l]); ++i) needed.next({neurons});
  }
  if (operands.has_readout) {
    const std::size_t last = operands.fields.size();
    linear(last);
    for (int constant = 0; constant < 2; ++constant) needed.next({check.neurons(last)});
  }
  needed.end();
}

void checkLifNetworkBackward(const OperationCheck& op) {
  Taker taker(op.instruction().inputs), results(op.instruction().outputs);
  const NetworkOperands operands(op.instruction(), taker);
  op.need(!operands.recordSpikes(), "record no spikes");
  const NetworkCheck check(op, operands);
  checkCotangents(check, CotangentOperands(op.instruction(), operands, taker));
  op.need(taker.done(), "have as many operands as its attributes say");
  checkNeeded(check, results);
  check.needStates(results);
  op.need(results.done(), "have as many results as its attributes say");
}

}  // namespace

extern const Operation kLifNetworkBackward = {checkLifNetworkBackward, lifNetworkBackward, propose};

}  // namespace snnjax::executor::targets
