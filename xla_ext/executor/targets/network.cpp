#include "executor/targets/network.hpp"

#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>

#include "executor/plan/options.hpp"

namespace snnjax::executor::targets {
namespace {

// Throws where a number of slots is too large.
builders::LayerOptions optionsOf(const Instruction& instruction, const lif_network::LayerNumbers& numbers,
                                 const lif_network::LayerConstants<Value>& constants, bool keeps_second) {
  builders::LayerOptions options;
  if (numbers.capacity >= 0) {
    options.capacity = knownNumber(instruction, "capacity", numbers.capacity, std::numeric_limits<int>::max());
  }
  options.recurrent = constants.recurrent.array.has_value();
  options.neuron = {
      .reset = numbers.reset,
      .detach_reset = numbers.detach_reset,
      .surrogate = numbers.surrogate,
      .slope = numbers.slope,
      .second_state = constants.glif.second_state.w_decay.has_value(),
      .raises_threshold = constants.glif.second_state.threshold_coupling.has_value(),
      .keeps_second = keeps_second,
  };
  return options;
}

// The arrays of a call, which are there as the table says.
NetworkOperands networkOf(const Instruction& instruction, const std::vector<lif_network::LayerNumbers>& numbers,
                          const lif_network::Operands<Value>& from, const lif_network::RecordOnTiles<Value>& record) {
  NetworkOperands network;
  network.ids = from.inputs.ids;
  network.inputs = network.ids ? from.inputs.values.value() : from.inputs.array.value();
  network.lengths = from.lengths;
  // Of the first layer, whose delays made the lists of its inputs what they are.
  const Attributes attributes(instruction);
  const auto connections = lif_network::ConnectionNumbers::read(attributes, numbers.size() + 1);
  network.delay_rows =
      knownNumber(instruction, "delay_rows", connections.front().delay_rows, std::numeric_limits<int>::max());
  network.layers = layersOf(from, from.readout.decay.has_value());
  const bool is_known = std::ranges::all_of(network.layers, [](const LayerArrays& each) {
    return each.weights() && !each.linear.delays && !each.constants.recurrent.values &&
           !each.constants.recurrent_delays && !each.constants.synaptic_delays;
  });
  if (!is_known) refuseCall(instruction, "operands", "be dense weights of floats without delays", "others");
  for (std::size_t l = 0; l < numbers.size(); ++l) {
    network.options.push_back(optionsOf(instruction, numbers[l], from.constants[l], record.layers[l].w.has_value()));
  }
  return network;
}

// Throws unless the arrays of a root are there that the table asks for.
void checkGiven(const Instruction& instruction, const auto& root, const lif_network::Operands<Value>& operands,
                const std::vector<lif_network::LayerNumbers>& layers) {
  const auto has = [&](schema::Switch by, std::size_t layer) {
    if (by == schema::Switch::kCapacity) return layers[layer].capacity >= 0;
    return operands.has(by, layer) || root.has(by, layer);
  };
  schema::check(root, layers.size(), has, [](const auto&, std::size_t, const Value&) {}, refusal(instruction));
}

// Whether all values are 1, which is known only for constants.
bool isOne(const Plan& plan, ValueId value) {
  const auto splat = std::ranges::find(plan.constants, value, &Constant::value);
  if (splat == plan.constants.end() || !splat->is_splat) return false;
  constexpr float kOne = 1.0F;
  constexpr std::uint16_t kHalfOne = 0x3c00;
  const auto equals = [&](const auto& one) {
    const auto bytes = std::as_bytes(std::span(&one, 1));
    return std::ranges::equal(splat->bytes, bytes);
  };
  return plan.types[value].dtype == Dtype::kFloat16 ? equals(kHalfOne) : equals(kOne);
}

using builders::LayerPlan;
using builders::LayerTensors;
using builders::ListPlan;

class Bringer {
 public:
  Bringer(Lowering& lowering, const NetworkOperands& operands, NetworkOnTiles& network)
      : lowering_(lowering), operands_(operands), network_(network), plan_(network.plan) {}

  // Events are sorted behind all copies, which then share one exchange.
  void run() {
    poplar::program::Program sorting = poplar::program::Sequence();
    if (operands_.ids) {
      sorting = bringEvents();
    } else {
      const ListPlan& list = plan_.lists.front();
      const Tensor& history = network_.tensors.lists.front().values_history;
      bring(lowering_, array(operands_.inputs), builders::inTime(plan_, list, history, list.capacity));
    }
    bringLengths();
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) bringLayer(l);
    lowering_.program().add(sorting);
  }

  // Those that are not already on their tiles.
  void bringWeights(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerTensors& tensors = network_.tensors.layers[l];
    const LayerArrays& from = operands_.layers[l];
    const builders::LayerWeights& there = network_.in_place[l];
    matrix(layer, from.weights(), there.weights, tensors.weights, layer.inputs);
    if (from.recurrent()) matrix(layer, from.recurrent(), there.recurrent, tensors.recurrent, layer.neurons);
  }

  // What the forward pass added to what it was given; the readout's membranes are its output.
  void bringRecord(const lif_network::BackwardOnTiles<Value>& from) {
    for (std::size_t l = 0; l < plan_.layers.size(); ++l) {
      const LayerTensors& tensors = network_.tensors.layers[l];
      if (plan_.layers[l].leaky) {
        if (from.output) states(l, from.output, tensors.membranes);
        continue;
      }
      const lif_network::LayerOnTiles<Value>& own = from.record.layers[l];
      states(l, own.v, tensors.membranes);
      if (own.w) states(l, own.w, tensors.second_states);
      if (plan_.firesLists(l)) bringLists(l + 1, own.lists);
    }
  }

 private:
  Tensor array(const Value& value) { return operand(lowering_, value); }

  void matrix(const LayerPlan& layer, const Value& from, const Tensor& in_place, const Tensor& blocks,
              std::size_t rows) {
    if (!in_place.valid()) return this->rows(layer, array(from), blocks, rows);
    if (const std::optional<LastBlock> last = lastBlock(layer, in_place, blocks, rows)) {
      lowering_.graph().setInitialValue(blocks[layer.tiles.count - 1], 0.0F);
      bring(lowering_, last->in_place, last->own);
    }
  }

  Tensor constant(const poplar::Type& type, float value) {
    const Tensor tensor = lowering_.graph().addConstant(type, {1}, value, lowering_.debug("constant"));
    lowering_.graph().setTileMapping(tensor, plan_.layers.front().tiles.first);
    return tensor;
  }

  // After each step.
  void states(std::size_t l, const Value& from, const Tensor& blocks) {
    const std::size_t rows = std::size_t{plan_.options.num_steps} * plan_.options.batch;
    const std::size_t before = std::size_t{plan_.options.batch} * plan_.layers[l].tiles.columns;
    const Tensor after = blocks.slice(before, before + rows * plan_.layers[l].tiles.columns, 1);
    this->rows(plan_.layers[l], array(from), after, rows);
  }

  void bringLists(std::size_t l, const Value& from) {
    const ListPlan& list = plan_.lists[l];
    bring(lowering_, array(from), builders::inTime(plan_, list, network_.tensors.lists[l].history, list.stride));
  }

  void bringLengths() {
    const Tensor& all = network_.tensors.lengths;
    const auto steps = static_cast<int>(plan_.options.num_steps);
    const auto fill = [&](const Tensor& from) {
      bring(lowering_, from, all);
      for (const LayerTensors& layer : network_.tensors.layers) bring(lowering_, from, layer.lengths);
    };
    if (!operands_.lengths) return fill(constant(all.elementType(), static_cast<float>(steps)));
    namespace e = popops::expr;
    const Tensor within = popops::map(lowering_.graph(), e::Clamp(e::_1, e::Const(0), e::Const(steps)),
                                      {array(operands_.lengths)}, lowering_.program(), lowering_.debug("lengths"));
    fill(within);
  }

  void bringLayer(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerTensors& tensors = network_.tensors.layers[l];
    const auto& [linear, constants, first] = operands_.layers[l];
    bringWeights(l);
    ofGroups(layer, linear.bias ? array(linear.bias) : constant(poplar::FLOAT, 0), tensors.bias);
    ofGroups(layer, array(constants.glif.decay), tensors.decay);
    ofGroups(layer, array(constants.glif.gain), tensors.gain);
    rows(layer, array(first.v), builders::rowOf(plan_, l, tensors.membranes, 0), plan_.options.batch);
    if (layer.leaky) return;
    ofGroups(layer, array(constants.glif.threshold), tensors.threshold);
    // Without a capacity every neuron gets its gradient.
    const bool lists_all = !operands_.options[l].capacity;
    const Tensor second = lists_all ? constant(poplar::FLOAT, -std::numeric_limits<float>::infinity())
                                    : array(constants.second_threshold);
    ofGroups(layer, second, tensors.second_threshold);
    if (layer.neuron.second_state) bringSecond(l);
    if (tensors.first_spikes.valid()) bring(lowering_, array(first.spikes), tensors.first_spikes);
  }

  // Constants and first states; absent constants are 0 from the start.
  void bringSecond(std::size_t l) {
    const LayerPlan& layer = plan_.layers[l];
    const LayerTensors& tensors = network_.tensors.layers[l];
    const LayerArrays& from = operands_.layers[l];
    rows(layer, array(from.first.w), builders::rowOf(plan_, l, tensors.second_states, 0), plan_.options.batch);
    for (unsigned k = WDecay; k < kGlifConstants; ++k) {
      const Value& given = from.constants.glif.at(k);
      for (std::size_t g = 0; g < layer.sample_groups.size(); ++g) {
        const Tensor blocks = builders::secondConstant(layer, tensors, static_cast<GlifConstant>(k), g);
        if (given) {
          rows(layer, array(given), blocks, 1);
        } else {
          lowering_.graph().setInitialValue(blocks, 0.0F);
        }
      }
    }
  }

  void rows(const LayerPlan& layer, const Tensor& from, const Tensor& blocks, std::size_t rows) {
    bringRows(lowering_, from, blocks, layer.tiles, rows, layer.neurons);
  }

  // The same of all groups.
  void ofGroups(const LayerPlan& layer, const Tensor& from, const Tensor& blocks) {
    rows(layer, from, blocks, layer.sample_groups.size());
  }

  // In any order, with ids out of range; returns what sorts them at their homes.
  poplar::program::Program bringEvents() {
    poplar::Graph& graph = lowering_.graph();
    const ListPlan& list = plan_.lists.front();
    const builders::ListTensors& tensors = network_.tensors.lists.front();
    const auto add = [&](const poplar::Type& type, std::size_t width, const char* name, unsigned behind = 0) {
      return builders::addHistory(graph, type, plan_, list, width, name, behind);
    };
    const auto bringOwn = [&](const Tensor& from, const Tensor& to) {
      bring(lowering_, from, builders::inTime(plan_, list, to, list.capacity));
    };
    const Tensor from = array(operands_.ids), in_order = add(poplar::UNSIGNED_INT, kShares, "events/in_order"),
                 ids = add(from.elementType(), list.capacity, "events/ids", list.num_neurons);  // past the end nothing
    bringOwn(from, ids);
    Tensor values;
    if (list.valued) {
      values = add(poplar::FLOAT, list.capacity, "events/values");
      network_.event_slots = add(poplar::UNSIGNED_INT, list.capacity, "events/slots");
      bringOwn(array(operands_.inputs), values);
    }
    const auto run = [&](const char* codelet, const std::vector<builders::Field>& fields,
                         const std::vector<builders::State>& states) {
      const std::string vertex = poputil::templateVertex(codelet, ids.elementType(), list.valued);
      return builders::runOnHistories(graph, plan_, list, lowering_.debug("events").getPathName(), vertex, fields,
                                      builders::with(states, {{"num_inputs", list.num_neurons}}));
    };
    const auto check = run("snnjax::CheckEvents", {{"ids", ids}, {"values", values}, {"sorted", in_order}},
                           {{"capacity", list.capacity}});
    const auto sort = run("snnjax::SortEvents",
                          {{"ids", ids},
                           {"values", values},
                           {"in_order", in_order},
                           {"lists", tensors.history},
                           {"sorted", tensors.values_history},
                           {"slots", network_.event_slots}},
                          {{"capacity", list.capacity}, {"stride", list.stride}});
    return poplar::program::Sequence({check, sort});
  }

  Lowering& lowering_;
  const NetworkOperands& operands_;
  NetworkOnTiles& network_;
  const builders::NetworkPlan& plan_;
};

// The layout of a matrix [rows, neurons] on its layer's tiles: each block of columns spread over those of all groups.
Blocks blocksOf(const LayerPlan& layer, std::size_t rows) {
  Blocks blocks;
  blocks.rows = blocks.row_block = rows;
  blocks.columns = layer.neurons;
  blocks.column_block = layer.tiles.columns;
  blocks.spread = layer.sample_groups.size();
  blocks.whole_rows = true;
  blocks.first_tile = layer.tiles.first;
  return blocks;
}

}  // namespace

std::vector<builders::LayerWeights> inPlace(Lowering& lowering, const std::vector<LayerArrays>& layers,
                                            const builders::NetworkPlan& plan, bool are_results) {
  std::vector<builders::LayerWeights> in_place;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerPlan& layer = plan.layers[l];
    const auto find = [&](const Value& value, std::size_t rows) {
      if (!value || layer.isNarrow()) return Tensor();
      const Blocks blocks = blocksOf(layer, rows);
      return are_results && !isMadeIn(lowering, blocks, *value) ? Tensor() : lowering.memoryIn(blocks, *value);
    };
    in_place.push_back({find(layers[l].weights(), layer.inputs), find(layers[l].recurrent(), layer.neurons)});
  }
  return in_place;
}

std::optional<LastBlock> lastBlock(const LayerPlan& layer, const Tensor& in_place, const Tensor& blocks,
                                   std::size_t rows) {
  const std::size_t columns = layer.tiles.columns, rest = layer.neurons % columns;
  if (rest == 0) return std::nullopt;
  const Tensor there = in_place.slice(in_place.numElements() - rows * rest, in_place.numElements());
  const Tensor own = blocks[layer.tiles.count - 1].reshape({rows + 1, columns});
  return LastBlock{there.reshape({rows, rest}), own.slice(0, rows).slice(0, rest, 1)};
}

bool isZero(const Lowering& lowering, ValueId value) {
  const Constant* const splat = lowering.splatOf(value);
  return splat != nullptr && std::ranges::all_of(splat->bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

std::vector<LayerArrays> layersOf(const lif_network::Operands<Value>& operands, bool has_readout) {
  std::vector<LayerArrays> layers;
  for (std::size_t l = 0; l < operands.linears.size(); ++l) {
    layers.push_back({operands.linears[l], operands.constants[l], operands.first[l]});
  }
  if (!has_readout) return layers;
  LayerArrays& readout = layers.emplace_back();
  readout.linear = operands.readout.linear;
  readout.constants.glif.decay = operands.readout.decay;
  readout.constants.glif.gain = operands.readout.gain;
  readout.first.v = operands.first_readout;
  return layers;
}

std::vector<lif_network::LayerNumbers> numbersOf(const Instruction& instruction) {
  const Attributes attributes(instruction);
  const std::size_t layers = attributes.count("capacity");
  if (layers == 0) refuseCall(instruction, "capacity", "have a number for each layer", "none");
  return lif_network::LayerNumbers::read(attributes, layers);
}

bool keepsRecord(const ForwardCall& call) {
  if (call.to.has(schema::Switch::kRecord, 0)) return true;
  const auto& spikes = call.to.results.spikes;
  const std::size_t hidden = call.from.readout.decay ? spikes.size() : spikes.size() - 1;  // an output is no record
  return spikes.back().ids || std::any_of(spikes.begin(), spikes.begin() + static_cast<std::ptrdiff_t>(hidden),
                                          [](const auto& own) { return own.array || own.ids; });
}

NetworkOperands networkOf(const ForwardCall& call) {
  checkGiven(call.instruction, call.from, call.from, call.layers);
  checkGiven(call.instruction, call.to, call.from, call.layers);
  return networkOf(call.instruction, call.layers, call.from, call.to.record);
}

NetworkOperands networkOf(const BackwardCall& call) {
  checkGiven(call.instruction, call.from, call.from.operands, call.layers);
  return networkOf(call.instruction, call.layers, call.from.operands, call.from.record);
}

builders::NetworkOptions optionsOf(const Plan& plan, const NetworkOperands& operands, bool keeps_record) {
  const auto size = [&](const Value& value, std::size_t axis) {
    return static_cast<unsigned>(dimension(plan, value, axis));
  };
  builders::NetworkOptions options;
  options.num_steps = size(operands.inputs, 1);
  options.batch = size(operands.inputs, 2);
  options.num_inputs = size(operands.layers.front().weights(), 1);
  options.event_capacity = size(operands.inputs, 3);
  // A delayed spike arrives in two steps, and has a slot in one more than may hold it.
  options.event_entries =
      operands.delay_rows == 0 ? 0 : builders::ceilDivide(2 * options.event_capacity, operands.delay_rows + 1);
  options.inputs = !operands.ids                  ? builders::Inputs::Dense
                   : isOne(plan, operands.inputs) ? builders::Inputs::Spikes
                                                  : builders::Inputs::Events;
  options.layers = operands.options;
  for (std::size_t l = 0; l < options.layers.size(); ++l) {
    builders::LayerOptions& layer = options.layers[l];
    layer.neurons = size(operands.layers[l].weights(), 2);
    if (layer.capacity) layer.capacity = std::min(*layer.capacity, layer.neurons);
    options.first_spikes = options.first_spikes || layer.recurrent;
  }
  if (operands.hasReadout()) options.outputs = size(operands.layers.back().weights(), 2);
  options.half_weights = isHalf(plan, operands.layers.front().weights());
  options.keeps_record = keeps_record;
  options.attempts = executor::optionsOf(plan).attempts;
  return options;
}

builders::NetworkOptions optionsOf(const Lowering& lowering, const NetworkOperands& operands, bool keeps_record) {
  builders::NetworkOptions options = optionsOf(lowering.plan(), operands, keeps_record);
  options.first_spikes = std::ranges::any_of(operands.layers, [&](const LayerArrays& layer) {
    return layer.first.spikes && !isZero(lowering, *layer.first.spikes);
  });
  return options;
}

NetworkOnTiles bringNetwork(Lowering& lowering, const NetworkOperands& operands,
                            const builders::NetworkOptions& options, const BackwardCall* backward) {
  const poplar::Target& target = lowering.graph().getTarget();
  NetworkOnTiles network;
  network.plan = builders::planNetwork(options, target.getNumTiles(), target.getBytesPerTile());
  network.in_place = inPlace(lowering, operands.layers, network.plan, false);
  network.tensors = builders::addNetworkTensors(lowering.graph(), network.plan, network.in_place);
  Bringer bringer(lowering, operands, network);
  bringer.run();
  if (backward) bringer.bringRecord(backward->from);
  return network;
}

Tensor afterSteps(const builders::NetworkPlan& plan, std::size_t l, const Tensor& states) {
  const LayerPlan& layer = plan.layers[l];
  const std::size_t steps = plan.options.num_steps, batch = plan.options.batch;
  const Tensor rows = asRows(states, layer.tiles, states.dim(1) / layer.tiles.columns, layer.neurons);
  return rows.slice(batch, (steps + 1) * batch, 0).reshape({steps, batch, layer.neurons});
}

void readWeightsOf(Lowering& lowering, const NetworkOperands& operands, NetworkOnTiles& network) {
  const std::vector<builders::LayerWeights> before =
      std::exchange(network.in_place, inPlace(lowering, operands.layers, network.plan, false));
  Bringer bringer(lowering, operands, network);
  for (std::size_t l = 0; l < before.size(); ++l) {
    const auto isRead = [](const Tensor& there, const Tensor& now) { return !there.valid() || now.valid(); };
    const LayerPlan& layer = network.plan.layers[l];
    LayerTensors& tensors = network.tensors.layers[l];
    const builders::LayerWeights& now = network.in_place[l];
    if (!isRead(before[l].weights, now.weights) || !isRead(before[l].recurrent, now.recurrent)) {
      builders::addWeights(lowering.graph(), network.plan, l, now, tensors);
      bringer.bringWeights(l);
      continue;
    }
    // What is not in place is still there.
    if (before[l].weights.valid()) tensors.weights = builders::withGiven(layer, tensors.weights, now.weights);
    if (!before[l].recurrent.valid()) continue;
    tensors.recurrent = builders::withGiven(layer, tensors.recurrent, now.recurrent);
    if (layer.sample_groups.size() == 1) tensors.recurrent_copies = {tensors.recurrent};
  }
}

std::vector<Proposal> proposalsFor(const std::vector<LayerArrays>& layers, const builders::NetworkPlan& network) {
  std::vector<Proposal> proposals;
  const auto propose = [&](const builders::LayerPlan& layer, std::size_t rows, const Value& value) {
    if (value) proposals.push_back({*value, blocksOf(layer, rows)});
  };
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const builders::LayerPlan& layer = network.layers[l];
    if (layer.isNarrow()) continue;  // few tiles would have to send, or receive, all of it
    propose(layer, layer.inputs, layers[l].weights());
    propose(layer, layer.neurons, layers[l].recurrent());
  }
  return proposals;
}

builders::NetworkPlan planOf(const Plan& plan, const NetworkOperands& operands, bool keeps_record,
                             const poplar::Target& target) {
  const builders::NetworkOptions options = optionsOf(plan, operands, keeps_record);
  return builders::planNetwork(options, target.getNumTiles(), target.getBytesPerTile());
}

}  // namespace snnjax::executor::targets
