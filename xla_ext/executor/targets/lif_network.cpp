// The target `snnjax_lif_network`: the forward pass, with results in the order of `Results` and `Record` in
// snnjax/ops/_lif_network/records.py.
#include <builders/vertices.hpp>
#include <popops/ElementWise.hpp>
#include <poputil/VertexTemplates.hpp>

#include "executor/targets/network.hpp"
#include "executor/targets/network_check.hpp"
#include "executor/targets/operands.hpp"

namespace snnjax::executor::targets {
namespace {

using builders::LayerPlan;
using builders::ListPlan;
using poplar::Tensor;

class Results {
 public:
  Results(Lowering& lowering, const Instruction& instruction, const NetworkOperands& operands,
          const NetworkOnTiles& network)
      : lowering_(lowering),
        instruction_(instruction),
        operands_(operands),
        network_(network),
        plan_(network.plan),
        num_lif_(operands.fields.size()) {}

  // Returns the number of results before the record.
  std::size_t run() {
    const std::size_t last = plan_.layers.size() - 1;
    give(operands_.has_readout ? membranes(last) : trueSpikes(last));
    for (std::size_t l = 0; l < num_lif_; ++l) give(inBatch(l, network_.tensors.layers[l].counts));
    for (std::size_t l = 0; l < num_lif_; ++l) giveDropped(l);
    for (std::size_t l = 0; l < num_lif_; ++l) {
      if (operands_.fields[l].records_spikes) giveSpikes(l);
    }
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const builders::LayerTensors& tensors = network_.tensors.layers[l];
      give(inBatch(l, builders::membraneRow(plan_, l, tensors, plan_.membraneRows(l) - 1)));
      if (tensors.second_states.valid()) {
        give(inBatch(l, builders::secondRow(plan_, l, tensors, plan_.secondRows(l) - 1)));
      }
      if (tensors.last_spikes.valid()) give(tensors.last_spikes);
    }
    return given_;
  }

 private:
  void give(const Tensor& tensor) { yield(lowering_, instruction_, given_++, tensor); }

  // Blocks [tiles, batch * columns] as [batch, neurons].
  Tensor inBatch(std::size_t l, const Tensor& blocks) const {
    return asRows(blocks, plan_.layers[l].tiles, plan_.options.batch, plan_.layers[l].neurons);
  }

  // Membranes or second states after each step: [num_steps, batch, neurons].
  Tensor afterSteps(std::size_t l, const Tensor& states) const {
    const LayerPlan& layer = plan_.layers[l];
    const std::size_t steps = plan_.options.num_steps, batch = plan_.options.batch;
    const Tensor rows = asRows(states, layer.tiles, (steps + 1) * batch, layer.neurons);
    return rows.slice(batch, (steps + 1) * batch, 0).reshape({steps, batch, layer.neurons});
  }
  Tensor membranes(std::size_t l) const { return afterSteps(l, network_.tensors.layers[l].membranes); }

  // Derived from the membranes, none past the end of a sequence: bool [num_steps, batch, neurons].
  Tensor trueSpikes(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    std::vector<unsigned> numbers(plan_.options.num_steps);
    for (unsigned t = 0; t < numbers.size(); ++t) numbers[t] = t;
    const Tensor steps = lowering_.graph().addConstant(poplar::UNSIGNED_INT, {numbers.size(), 1, 1},
                                                       poplar::ArrayRef<unsigned>(numbers), lowering_.debug("steps"));
    lowering_.graph().setTileMapping(steps, layer.tiles.first);
    const builders::LayerTensors& tensors = network_.tensors.layers[l];
    const auto constant = [&](const Tensor& blocks) {
      return asRows(blocks, layer.tiles, 1, layer.neurons).expand({0});
    };
    const Tensor ends = network_.tensors.lengths.reshape({1, plan_.options.batch, 1});
    namespace e = popops::expr;
    std::vector<Tensor> terms = {membranes(l), constant(tensors.threshold), steps, ends};
    const auto within = e::Lt(e::_3, e::_4);
    if (!layer.neuron.raises_threshold) return map(e::And(e::Gt(e::_1, e::_2), within), terms);
    terms.push_back(constant(builders::secondConstant(layer, tensors, ThresholdCoupling)));
    terms.push_back(afterSteps(l, tensors.second_states));
    return map(e::And(e::Gt(e::_1, e::Add(e::_2, e::Mul(e::_5, e::_6))), within), terms);
  }

  Tensor map(const popops::expr::Expr& expression, const std::vector<Tensor>& terms) {
    return popops::map(lowering_.graph(), expression, terms, lowering_.program(), lowering_.debug("spikes"));
  }

  void giveDropped(std::size_t l) {
    if (plan_.firesLists(l)) return give(network_.tensors.lists[l + 1].dropped);
    const Tensor none = lowering_.graph().addConstant(poplar::INT, {1}, 0, lowering_.debug("dropped"));
    lowering_.graph().setTileMapping(none, plan_.layers[l].tiles.first);
    give(none);
  }

  void giveSpikes(std::size_t l) {
    if (!operands_.fields[l].capacity) return give(trueSpikes(l));
    const ListPlan& list = plan_.lists[l + 1];
    const Tensor records = inTime(plan_, list, network_.tensors.lists[l + 1].history, list.stride);
    const auto entries = [&](std::size_t first, std::size_t last) { return records.slice(first, last, 2); };
    const std::size_t slots = lowering_.type(instruction_.outputs[given_]).shape.back();  // maybe more than neurons
    give(padded(entries(kListHeader, kListHeader + list.capacity), slots, list.num_neurons));
    give(padded(values(list, network_.tensors.lists[l + 1].history), slots, 0));
    give(entries(kTrueSpikes, kTrueSpikes + 1));
    give(entries(kListed, kListed + 1));
  }

  // With `slots` along the last dimension.
  Tensor padded(const Tensor& tensor, std::size_t slots, unsigned pad) {
    if (tensor.dim(2) == slots) return tensor;
    const Tensor one = lowering_.graph().addConstant(tensor.elementType(), {1, 1, 1}, pad, lowering_.debug("pad"));
    lowering_.graph().setTileMapping(one, plan_.layers.front().tiles.first);
    const auto times = [](std::size_t count) { return static_cast<unsigned>(count); };
    return poplar::concat(tensor,
                          one.broadcast(times(tensor.dim(0)), 0)
                              .broadcast(times(tensor.dim(1)), 1)
                              .broadcast(times(slots - tensor.dim(2)), 2),
                          2);
  }

  // 1 for spikes, 0 for other listed neurons: [num_steps, batch, capacity].
  Tensor values(const ListPlan& list, const Tensor& history) {
    const Tensor all = builders::addHistory(lowering_.graph(), poplar::FLOAT, plan_, list, list.capacity, "values");
    const poplar::ComputeSet set = lowering_.graph().addComputeSet(lowering_.debug("values"));
    const std::string vertex = poputil::templateVertex("snnjax::ListValues", poplar::FLOAT, poplar::UNSIGNED_SHORT);
    for (const builders::Home& home : list.homes) {
      builders::addVertex(
          lowering_.graph(), set, vertex, home.tile,
          {{"lists", builders::historyOf(plan_, list.stride, history, home)},
           {"values", builders::historyOf(plan_, list.capacity, all, home)}},
          {{"rows", plan_.options.num_steps * home.samples}, {"stride", list.stride}, {"capacity", list.capacity}});
    }
    lowering_.program().add(poplar::program::Execute(set));
    return inTime(plan_, list, all, list.capacity);
  }

  Lowering& lowering_;
  const Instruction& instruction_;
  const NetworkOperands& operands_;
  const NetworkOnTiles& network_;
  const builders::NetworkPlan& plan_;
  std::size_t num_lif_;
  std::size_t given_ = 0;
};

// The results from `first` on are the record, which stays on the tiles: what leaves instead marks itself.
void giveRecord(Lowering& lowering, const Instruction& instruction, std::size_t first, const NetworkOnTiles& network) {
  const auto record = std::make_shared<const NetworkOnTiles>(network);
  const auto marked = [&](const poplar::Type& type) {  // bits are all set
    const bool is_float = type == poplar::FLOAT;
    const unsigned bits = is_float ? kLeftOnTiles : type == poplar::BOOL ? 1 : 0xff;
    const poplar::Type stored = is_float ? poplar::UNSIGNED_INT : type;
    const Tensor one = lowering.graph().addConstant(stored, {1}, bits, lowering.debug("record"));
    lowering.graph().setTileMapping(one, network.plan.layers.front().tiles.first);
    return is_float ? one.reinterpret(type) : one;
  };
  for (std::size_t i = first; i < instruction.outputs.size(); ++i) {
    const ArrayType& type = lowering.type(instruction.outputs[i]);
    const auto elements = static_cast<unsigned>(type.numElements());
    lowering.bind(instruction.outputs[i], marked(poplarType(type.dtype)).broadcast(elements, 0).reshape(type.shape));
    lowering.attach(instruction.outputs[i], record);
  }
}

bool keepsRecord(const Instruction& instruction, const NetworkOperands& operands) {
  return flag(instruction, "records") || operands.recordSpikes();
}

void lifNetwork(Lowering& lowering, const Instruction& instruction) {
  Taker taker(instruction.inputs);
  const NetworkOperands operands(instruction, taker);
  const NetworkOnTiles network =
      bringNetwork(lowering, operands, optionsOf(lowering, instruction, operands, keepsRecord(instruction, operands)));
  lowering.program().add(builders::addForward(lowering.graph(), network.plan, network.tensors));
  const std::size_t results = Results(lowering, instruction, operands, network).run();
  if (flag(instruction, "records")) giveRecord(lowering, instruction, results, network);
}

std::vector<Proposal> propose(const Plan& plan, const Instruction& instruction, const poplar::Target& target) {
  Taker taker(instruction.inputs);
  const NetworkOperands operands(instruction, taker);
  return proposalsFor(operands, planOf(plan, instruction, operands, keepsRecord(instruction, operands), target));
}

void checkSpikes(const NetworkCheck& check, std::size_t l, Taker& results) {
  const LayerFields& fields = check.operands().fields[l];
  const std::size_t neurons = check.neurons(l);
  if (!fields.capacity) return check.needTimed(results.next(), Numbers::kAny, {neurons});
  // A spiking output fires no lists; a recurrent one lists all of its neurons.
  const bool is_output = !check.operands().has_readout && l + 1 == check.operands().fields.size();
  check.op().need(!is_output || (fields.is_recurrent && *fields.capacity >= neurons), "list what it records");
  check.needTimed(results.next(), Numbers::kIds, {*fields.capacity});
  check.needTimed(results.next(), Numbers::kFloats, {*fields.capacity});
  for (int count = 0; count < 2; ++count) check.needTimed(results.next(), Numbers::kCounts, {});
}

void checkLifNetwork(const OperationCheck& op) {
  Taker taker(op.instruction().inputs), results(op.instruction().outputs);
  const NetworkOperands operands(op.instruction(), taker);
  const NetworkCheck check(op, operands);
  op.need(taker.done(), "have as many operands as its attributes say");
  check.needTimed(results.next(), Numbers::kAny, {check.neurons(operands.layers.size() - 1)});
  const std::size_t count = operands.fields.size();
  for (std::size_t l = 0; l < count; ++l) check.needSequences(results.next(), Numbers::kFloats, {check.neurons(l)});
  for (std::size_t l = 0; l < count; ++l) check.needSequences(results.next(), Numbers::kCounts, {});
  for (std::size_t l = 0; l < count; ++l) {
    if (operands.fields[l].records_spikes) checkSpikes(check, l, results);
  }
  check.needStates(results);
  op.need(results.done() || flag(op.instruction(), "records"), "have as many results as its attributes say");
}

}  // namespace

extern const Operation kLifNetwork = {checkLifNetwork, lifNetwork, propose};

}  // namespace snnjax::executor::targets
