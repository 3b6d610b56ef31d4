#include "lif_network.hpp"

#include <algorithm>
#include <optional>

namespace snnjax {
namespace {

using lif_network::ConnectionNumbers;
using schema::Axis;

constexpr const char* kOp = "lif_network";

// So few that steps and delays fit into 32 bits together.
Index delayRows(std::int64_t rows) { return std::clamp<std::int64_t>(rows, 0, INT32_MAX - 1); }

ConnectionShape connectionOf(const ConnectionNumbers& n) {
  ConnectionShape shape;
  shape.delay_rows = delayRows(n.delay_rows);
  if (n.pooling_height != 0) {
    shape.pooling = PoolingShape{
        .height = n.pooling_height,
        .width = n.pooling_width,
        .channels = n.pooling_channels,
        .window_height = n.window_height,
        .window_width = n.window_width,
        .is_mean = n.is_mean,
    };
  }
  if (n.height != 0) shape.convolution = ConvolutionShape::of(n);
  const bool is_valid =
      (!shape.pooling || shape.pooling->isValid()) && (!shape.convolution || shape.convolution->isValid());
  if (!is_valid) throw misfit(kOp, "connections", "be those of images", "others");
  return shape;
}

// What reaches the weights of a connection with so many inputs.
Index reachingOf(const ConnectionShape& shape, Index inputs) {
  Index reaching = inputs;
  if (shape.pooling) {
    if (shape.pooling->numInputs() != inputs) throw misfit(kOp, "connections", "fit the layers", "another pooling");
    reaching = shape.pooling->numOutputs();
  }
  if (shape.convolution && shape.convolution->numInputs() != reaching) {
    throw misfit(kOp, "connections", "fit the layers", "another convolution");
  }
  return reaching;
}

// The weights themselves, without the scale of those in int8.
template <typename Weights>
const Operand& stored(const Weights& weights) {
  return weights.values ? weights.values : weights.array;
}

// The recurrent synapses that exist, if not all do.
std::optional<Synapses> structureOf(const lif_network::LayerConstants<Operand>& constants, Index neurons, Index group) {
  const Operand &ends = constants.recurrent_ends, &targets = constants.recurrent_targets;
  if (!ends) return {};
  const bool are_uint16 = targets.type() == ffi::U16;
  return Synapses{ends.at<std::int32_t>(group), targets.at(group), are_uint16, neurons, targets.length(0), neurons};
}

std::shared_ptr<const RecurrentSynapses> synapsesOf(const lif_network::LayerConstants<Operand>& constants,
                                                    Index neurons, Index group) {
  const std::optional<Synapses> all = structureOf(constants, neurons, group);
  if (!all) return nullptr;
  const Numbers weights = stored(constants.recurrent).numbers(group), scale = constants.recurrent.scale.numbers(group);
  return std::make_shared<const RecurrentSynapses>(RecurrentSynapses{*all, {weights, scale, neurons}});
}

std::shared_ptr<const SynapticDelays> synapticDelaysOf(const lif_network::LayerConstants<Operand>& constants,
                                                       Index neurons, Index longest, Index group) {
  return std::make_shared<const SynapticDelays>(structureOf(constants, neurons, group), neurons,
                                                constants.recurrent.array.numbers(group),
                                                constants.synaptic_delays.at<float>(group), longest);
}

bool takesCurrents(const lif_network::Operands<Operand>& arrays) { return !stored(arrays.linears[0].weights); }

}  // namespace

NetworkFields::NetworkFields(const Attributes& attributes) {
  const std::size_t layers = attributes.count("capacity");
  if (layers == 0) throw misfit(kOp, "capacity", "have a value for each layer", "none");
  of_layers = lif_network::LayerNumbers::read(attributes, layers);
  for (lif_network::LayerNumbers& numbers : of_layers) {
    numbers.recurrent_delay_rows = delayRows(numbers.recurrent_delay_rows);
    if (!(numbers.exact_within > 0.0F)) numbers.exact_within = 0.0F;  // NaN: for none
  }
  for (const ConnectionNumbers& numbers : ConnectionNumbers::read(attributes, layers + 1)) {
    connections.push_back(connectionOf(numbers));
    const std::optional<PoolingShape>& pooling = connections.back().pooling;
    poolings.push_back(pooling ? std::make_shared<const Windows>(*pooling) : nullptr);
  }
}

// Lists do not give the number of inputs; the weights do.
NetworkSizes NetworkSizes::read(const NetworkFields& fields, const lif_network::Operands<Operand>& arrays) {
  const Operand& given = arrays.inputs.ids ? arrays.inputs.ids : arrays.inputs.array;
  NetworkSizes sizes{
      .steps = given.length(0),
      .batch = given.length(1),
      .inputs = given.length(2),
      .width = given.length(2),
      .neurons = {},
      .reaching = {},
      .weights = {},
  };
  if (arrays.inputs.ids) {
    const ConnectionShape& first = fields.connections[0];
    sizes.inputs = first.pooling       ? first.pooling->numInputs()
                   : first.convolution ? first.convolution->numInputs()
                                       : stored(arrays.linears[0].weights).length(0);
  }
  const auto add = [&](const ConnectionShape& connection, const Operand& weights, Index inputs) {
    const auto& convolution = connection.convolution;
    sizes.reaching.push_back(reachingOf(connection, inputs));
    sizes.neurons.push_back(convolution ? convolution->numOutputs() : weights.length(1));
    if (convolution) {
      sizes.weights.push_back({convolution->numWeights() / convolution->channels_out, convolution->channels_out});
    } else {
      sizes.weights.push_back({sizes.reaching.back(), sizes.neurons.back()});
    }
  };
  if (takesCurrents(arrays)) {
    sizes.reaching.push_back(0);
    sizes.neurons.push_back(sizes.inputs);
    sizes.weights.push_back({0, sizes.inputs});
  }
  for (std::size_t l = sizes.neurons.size(); l < fields.layers(); ++l) {
    add(fields.connections[l], stored(arrays.linears[l].weights), sizes.inputsOf(l));
  }
  if (arrays.readout.decay) {
    add(fields.connections.back(), stored(arrays.readout.linear.weights), sizes.neurons.back());
  } else {
    sizes.reaching.push_back(0);
    sizes.neurons.push_back(0);
    sizes.weights.push_back({0, 0});
  }
  return sizes;
}

Network::Network(const NetworkFields& fields, const lif_network::Operands<Operand>& arrays)
    : fields_(fields),
      arrays_(arrays),
      sizes_(NetworkSizes::read(fields_, arrays)),
      has_currents_(takesCurrents(arrays)) {
  const schema::Weights<Operand>& first = arrays.linears[0].weights;
  type_ = has_currents_ ? arrays.inputs.array.type() : first.values ? first.scale.type() : first.array.type();
  if (type_ != ffi::F32 && type_ != ffi::BF16)
    refuse("linears.weights", "have a dtype of weights", "type " + std::to_string(static_cast<int>(type_)));
  checkWeights();
  checkConnections();
}

// The table lets weights be absent.
void Network::checkWeights() const {
  for (std::size_t l = 1; l < size(); ++l) {
    if (!stored(arrays_.linears[l].weights)) refuse("linears.weights", "be given behind the first layer", "nothing");
  }
  if (hasReadout() && !stored(arrays_.readout.linear.weights)) refuse("readout.linear.weights", "be given", "nothing");
  for (std::size_t l = has_currents_ ? 1 : 0; l < size(); ++l) {
    if (arrays_.linears[l].factor) refuse("linears.factor", "be left out with weights", "an array");
  }
  if (arrays_.readout.linear.factor) refuse("readout.linear.factor", "be left out with weights", "an array");
  const ConnectionShape& first = fields_.connections[0];
  if (has_currents_ && (first.pooling || first.convolution || first.delay_rows > 0)) {
    refuse("connections", "be absent in front of given currents", "a connection");
  }
}

void Network::checkConnections() const {
  for (std::size_t l = 0; l < size(); ++l) {
    const ConnectionShape& connection = fields_.connections[l];
    if (connection.convolution && isRecurrent(l)) {
      refuse("connections", "be dense in front of recurrent layers", "a convolution");
    }
    if (connection.convolution && arrays_.linears[l].weights.values) refuse("weights", "be floating", "int8 taps");
    if (static_cast<bool>(arrays_.linears[l].delays) != (connection.delay_rows > 0)) {
      refuse("linears.delays", "come with their rows", "one without the other");
    }
    checkRecurrentDelays(l);
    if (arrays_.constants[l].recurrent_ends && !isRecurrent(l)) {
      refuse("constants.recurrent_ends", "come with recurrent weights", "none");
    }
  }
  const ConnectionShape& last = fields_.connections.back();
  if (last.convolution || last.delay_rows > 0 || arrays_.readout.linear.delays) {
    refuse("connections", "be dense in front of the readout", "a convolution or delays");
  }
}

void Network::checkRecurrentDelays(std::size_t l) const {
  const lif_network::LayerConstants<Operand>& constants = arrays_.constants[l];
  const bool of_neurons = static_cast<bool>(constants.recurrent_delays);
  const bool of_synapses = static_cast<bool>(constants.synaptic_delays), has_delays = of_neurons || of_synapses;
  if (has_delays != (fields_.of_layers[l].recurrent_delay_rows > 0) || (has_delays && !isRecurrent(l))) {
    refuse("constants.recurrent_delays", "come with their rows and recurrent weights", "one without the others");
  }
  if (of_synapses && (of_neurons || constants.recurrent.values)) {
    refuse("constants.synaptic_delays", "be the only ones, of floating weights", "others");
  }
}

bool Network::hasInt8() const {
  const auto is_int8 = [](const auto& weights) { return static_cast<bool>(weights.values); };
  bool any = is_int8(arrays_.readout.linear.weights);
  for (std::size_t l = 0; l < size(); ++l) {
    any = any || is_int8(arrays_.linears[l].weights) || is_int8(arrays_.constants[l].recurrent);
  }
  return any;
}

void Network::refuse(const std::string& name, const std::string& expected, const std::string& actual) {
  throw misfit(kOp, name, expected, actual);
}

Index Network::lengthOf(Axis axis, std::size_t layer) const {
  switch (axis) {
    case Axis::kSteps: return sizes_.steps;
    case Axis::kBatch: return sizes_.batch;
    case Axis::kWidth: return sizes_.width;
    case Axis::kInputBytes: return (sizes_.inputs + 7) / 8;
    case Axis::kSent: return sizes_.inputsOf(layer);
    case Axis::kWeightRows: return sizes_.weights[layer][0];
    case Axis::kWeightColumns: return sizes_.weights[layer][1];
    case Axis::kNeurons:
    case Axis::kOutputs: return sizes_.neurons[layer];  // those of recurrent weights
    case Axis::kRecurrentRows: return arrays_.constants[layer].recurrent_ends ? 1 : sizes_.neurons[layer];
    case Axis::kRecurrentColumns: {
      const Operand& targets = arrays_.constants[layer].recurrent_targets;
      return targets ? targets.length(0) : sizes_.neurons[layer];
    }
    case Axis::kNeuronBytes: return (sizes_.neurons[layer] + 7) / 8;
    case Axis::kPending: return fields_.connections[layer].delay_rows;
    case Axis::kEarlier: return fields_.of_layers[layer].recurrent_delay_rows;
    case Axis::kArrivals: return std::max<Index>(fields_.of_layers[layer].recurrent_delay_rows - 1, 0);
    case Axis::kCapacity: return fields_.of_layers[layer].capacity;
    default: break;  // slots
  }
  const Index capacity = fields_.of_layers[layer].capacity;
  return capacity < 0 ? sizes_.neurons[layer] : capacity;
}

Types Network::typesOf(schema::Numbers numbers, std::size_t layer) const {
  const bool is_wide =
      numbers == schema::Numbers::kMembranes && arrays_.has(schema::Switch::kConstantsGlifSecondState, layer);
  return is_wide ? kWide : snnjax::typesOf(numbers, type_, sizes_.neurons[layer]);
}

void Network::checkCotangents(const lif_network::BackwardResults<Result>& to, const Results& from) const {
  const auto visit = [&](const schema::Leaf& leaf, std::size_t layer, const Operand* operand, const Result& g) {
    std::array<Index, schema::kMaxRank> shape{};
    for (std::size_t i = 0; i < leaf.rank; ++i) {
      const bool is_alike = operand != nullptr && leaf.axes[i] != Axis::kNeuronsOr1;
      shape[i] = is_alike ? operand->length(i) : lengthOf(schema::formOf(leaf.axes[i]).base, layer);
    }
    const bool is_input = leaf.numbers == schema::Numbers::kInputs;
    from.need(leaf.name, g, std::span(shape).first(leaf.rank), is_input ? kFloating : typesOf(leaf.numbers, layer));
  };
  schema::checkCotangents(arrays_, to, size(), visit, refuse);
}

Layer Network::layerOf(const lif_network::Weighted<Operand>& linear,
                       const lif_network::LayerConstants<Operand>& constants, std::size_t index, Index group) const {
  const Index neurons = sizes_.neurons[index];
  const auto& convolution = fields_.connections[index].convolution;
  const auto weightsOf = [&](const auto& weights, Index inputs) {
    return Weights{stored(weights).numbers(group), inputs, neurons, weights.scale.numbers(group)};
  };
  const auto delaysOf = [&](const Operand& delays, Index rows, Index inputs, Index more) {
    return delays ? std::make_shared<const Delays>(rows, delays.at<float>(group), inputs, more) : nullptr;
  };
  const Index recurrent_rows = index < size() ? fields_.of_layers[index].recurrent_delay_rows : 0;
  const bool is_sparse = static_cast<bool>(constants.recurrent_ends);
  const bool has_synaptic_delays = static_cast<bool>(constants.synaptic_delays);
  // A leaky integrator is a neuron that never reaches threshold.
  return {
      .weights = weightsOf(linear.weights, sizes_.reaching[index]),
      .has_currents = has_currents_ && index == 0,
      .recurrent = is_sparse || has_synaptic_delays ? Weights() : weightsOf(constants.recurrent, neurons),
      .constants = {neurons, constants, linear, group, convolution.has_value()},
      .reset = Reset::None,
      .detach_reset = true,
      .surrogate = surrogateOf(StraightThrough, 1.0F, 0.0F),
      .capacity = -1,
      .delays = delaysOf(linear.delays, fields_.connections[index].delay_rows, sizes_.inputsOf(index), 0),
      .recurrent_delays = delaysOf(constants.recurrent_delays, recurrent_rows, neurons, 1),
      .synapses = has_synaptic_delays ? nullptr : synapsesOf(constants, neurons, group),
      .synaptic_delays =
          has_synaptic_delays ? synapticDelaysOf(constants, neurons, recurrent_rows - 1, group) : nullptr,
      .pooling = fields_.poolings[index],
      .convolution =
          convolution ? std::make_shared<const PackedConvolution>(*convolution, stored(linear.weights).numbers(group))
                      : nullptr,
  };
}

Layer Network::layer(std::size_t index, Index group) const {
  const lif_network::LayerNumbers& numbers = fields_.of_layers[index];
  Layer layer = layerOf(arrays_.linears[index], arrays_.constants[index], index, group);
  layer.reset = numbers.reset;
  layer.detach_reset = numbers.detach_reset;
  layer.surrogate = surrogateOf(numbers.surrogate, numbers.slope, numbers.reach);
  layer.capacity = numbers.capacity;
  return layer;
}

std::deque<Layer> Network::layers(Index group, const Threads& threads) const {
  Index numbers = 0;  // that are copied: weights of convolutions, and constants
  for (std::size_t l = 0; l < size(); ++l) {
    const auto& convolution = fields_.connections[l].convolution;
    numbers += sizes_.neurons[l] * kGlifConstants + (convolution ? convolution->numWeights() : 0);
  }
  std::vector<std::optional<Layer>> made(size());
  threadsFor(numbers, threads).run(static_cast<Index>(size()), [&](Index l, Index) {
    made[static_cast<std::size_t>(l)].emplace(layer(static_cast<std::size_t>(l), group));
  });
  std::deque<Layer> layers;
  for (std::optional<Layer>& each : made) layers.push_back(std::move(*each));
  return layers;
}

Layer Network::readout(Index group) const {
  lif_network::LayerConstants<Operand> constants;
  constants.glif.decay = arrays_.readout.decay;
  constants.glif.gain = arrays_.readout.gain;
  return layerOf(arrays_.readout.linear, constants, size(), group);
}

std::vector<std::int32_t> Network::ends(Index group) const {
  const auto steps = static_cast<std::int32_t>(std::min<Index>(sizes_.steps, INT32_MAX));
  std::vector<std::int32_t> ends(static_cast<std::size_t>(sizes_.batch), steps);
  if (!arrays_.lengths) return ends;
  const auto* lengths = arrays_.lengths.at<std::int32_t>(group);
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] = std::clamp(lengths[i], 0, steps);
  return ends;
}

std::unique_ptr<RowSource> Network::source(Index group) const {
  const auto& [inputs, ids, values] = arrays_.inputs;
  if (ids) {
    return std::make_unique<ListSource>(ids.at(group), ids.type() == ffi::U16, values.numbers(group), sizes_.width,
                                        sizes_.inputs);
  }
  const auto type = inputs.type() == ffi::F32    ? DenseSource::Type::kFloat32
                    : inputs.type() == ffi::BF16 ? DenseSource::Type::kBfloat16
                                                 : DenseSource::Type::kUint8;
  return std::make_unique<DenseSource>(inputs.at(group), type, sizes_.inputs);
}

}  // namespace snnjax
