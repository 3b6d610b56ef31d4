#include "lif_network.hpp"

#include <algorithm>

namespace snnjax {
namespace {

constexpr const char* kOp = "lif_network";

// Weights, or the scales of those in int8, and biases have the dtype of the first; a constant is one number or one a
// neuron.
struct OperandTake {
  Operands& from;
  Types of_weights = kFloating;
  bool are_int8 = false, any_int8 = false;  // the weights taken last, or any

  Operand weights(const char* name, const Shape& shape) {
    are_int8 = from.nextIs(ffi::S8);
    any_int8 = any_int8 || are_int8;
    return are_int8 ? from.take(name, shape, {ffi::S8}) : ofOp(name, shape);
  }
  Operand scale(Index outputs) { return are_int8 ? ofOp("scale", {outputs}) : Operand(); }
  Operand bias(Index outputs) { return ofOp("bias", {outputs}); }
  Operand ofOp(const char* name, const Shape& shape) {
    const Operand taken = from.take(name, shape, of_weights);
    of_weights = {taken.type()};
    return taken;
  }
  Operand constant(const char* name, Index neurons) {
    return from.take(name, {from.nextLength(0) == 1 ? 1 : neurons}, kWide);
  }
  Operand fixed(const char* name, Index neurons) { return constant(name, neurons); }
  Operand delays(Index inputs) { return from.take("delays", {inputs}, kWide); }
};

// The shapes of connections: the rows of the delays, six numbers of a pooling and thirteen of a convolution each, zeros
// where there is none.
std::vector<ConnectionShape> connectionsOf(ffi::Span<const std::int64_t> numbers, std::size_t count) {
  constexpr std::size_t kPooling = 6, kConvolution = 13, kAll = 1 + kPooling + kConvolution;
  if (numbers.size() != count * kAll) {
    throw misfit(kOp, "connections", "have 20 numbers for each layer and the read-out", std::to_string(numbers.size()));
  }
  std::vector<ConnectionShape> shapes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t* n = numbers.begin() + i * kAll;
    shapes[i].delay_rows = std::clamp<std::int64_t>(*n++, 0, INT32_MAX);
    if (n[0] != 0) shapes[i].pooling = PoolingShape{n[0], n[1], n[2], n[3], n[4], n[5] != 0};
    n += kPooling;
    if (n[0] != 0) {
      shapes[i].convolution =
          ConvolutionShape{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12]};
    }
    const bool is_valid = (!shapes[i].pooling || shapes[i].pooling->isValid()) &&
                          (!shapes[i].convolution || shapes[i].convolution->isValid());
    if (!is_valid) throw misfit(kOp, "connections", "be those of images", "others");
  }
  return shapes;
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

// The static values of a layer, from its numbers in the order of `LayerFields`.
LayerFields layerOf(const std::int64_t* numbers, float slope, float reach, float exact_within) {
  // Without its decay there is no second state, whatever its other constants.
  const bool has_second = (numbers[6] & 1) != 0;
  LayerFields layer{
      .has_bias = numbers[0] != 0,
      .is_recurrent = numbers[1] != 0,
      .reset = static_cast<Reset>(std::clamp<std::int64_t>(numbers[2], Subtract, None)),
      .detach_reset = numbers[3] != 0,
      .surrogate = surrogateOf(numbers[4], slope, reach),
      .capacity = std::max<Index>(numbers[5], -1),
      .second_state = has_second ? numbers[6] : 0,
      .needs_w = has_second && numbers[7] != 0,
      .records_current = numbers[8] != 0,
      .records_spikes = numbers[9] != 0,
      .rounds_cotangents = numbers[10] != 0,
      .exact_within = exact_within > 0.0F ? exact_within : 0.0F,  // NaN: for none
      .records_listed = numbers[11] != 0 && numbers[5] >= 0,
  };
  // The second states cannot be recomputed without the currents that reach them.
  if (layer.needs_w && layer.has(static_cast<std::size_t>(Coupling::kWGain))) layer.records_current = true;
  return layer;
}

// How many operands the weights at this place are: with a scale, if they are int8.
std::size_t widthOf(const Operands& operands, std::size_t place) { return operands.nextIs(ffi::S8, place) ? 2 : 1; }

}  // namespace

NetworkFields NetworkFields::read(ffi::Dictionary attributes) {
  NetworkFields fields;
  const auto numbers = attributeOf<ffi::Span<const std::int64_t>>(kOp, attributes, "layers");
  const auto slopes = attributeOf<ffi::Span<const float>>(kOp, attributes, "slopes");
  const auto reaches = attributeOf<ffi::Span<const float>>(kOp, attributes, "reaches");
  const auto exact_within = attributeOf<ffi::Span<const float>>(kOp, attributes, "exact_within");
  if (numbers.size() == 0 || numbers.size() != slopes.size() * LayerFields::kFields) {
    throw misfit(kOp, "layers", "have twelve numbers for each of `slopes`", std::to_string(numbers.size()));
  }
  if (reaches.size() != slopes.size()) {
    throw misfit(kOp, "reaches", "be as many as `slopes`", std::to_string(reaches.size()));
  }
  if (exact_within.size() != slopes.size()) {
    throw misfit(kOp, "exact_within", "be as many as `slopes`", std::to_string(exact_within.size()));
  }
  for (std::size_t i = 0; i < numbers.size(); i += LayerFields::kFields) {
    const std::size_t layer = i / LayerFields::kFields;
    fields.layers.push_back(layerOf(numbers.begin() + i, slopes[layer], reaches[layer], exact_within[layer]));
  }
  const auto connections = attributeOf<ffi::Span<const std::int64_t>>(kOp, attributes, "connections");
  fields.connections = connectionsOf(connections, fields.layers.size() + 1);
  for (std::size_t l = 0; l < fields.layers.size(); ++l) {
    if (fields.layers[l].is_recurrent && fields.connections[l].convolution) {
      throw misfit(kOp, "connections", "be dense in front of recurrent layers", "a convolution");
    }
  }
  if (fields.connections.back().convolution || fields.connections.back().delay_rows > 0) {
    throw misfit(kOp, "connections", "be dense in front of the read-out", "a convolution or delays");
  }
  fields.has_lists = attributeOf<bool>(kOp, attributes, "has_lists");
  fields.has_readout = attributeOf<bool>(kOp, attributes, "has_readout");
  fields.readout_has_bias = attributeOf<bool>(kOp, attributes, "readout_has_bias");
  fields.has_lengths = attributeOf<bool>(kOp, attributes, "has_lengths");
  return fields;
}

// Lists do not give the number of neurons; the weights, which follow the inputs, do.
NetworkSizes NetworkSizes::read(const NetworkFields& fields, const Operands& operands) {
  std::size_t place = fields.has_lists ? 2 : 1;
  NetworkSizes sizes{
      .steps = operands.nextLength(0),
      .batch = operands.nextLength(1),
      .inputs = operands.nextLength(2),
      .width = operands.nextLength(2),
      .neurons = {},
      .outputs = 0,
      .reaching = {},
      .weights = {},
  };
  if (fields.has_lists) {
    const ConnectionShape& first = fields.connections[0];
    sizes.inputs = first.pooling       ? first.pooling->numInputs()
                   : first.convolution ? first.convolution->numInputs()
                                       : operands.nextLength(0, place);
  }
  for (std::size_t l = 0; l < fields.layers.size(); ++l) {
    const auto& convolution = fields.connections[l].convolution;
    sizes.reaching.push_back(reachingOf(fields.connections[l], sizes.inputsOf(l)));
    sizes.neurons.push_back(convolution ? convolution->numOutputs() : operands.nextLength(1, place));
    if (convolution) {
      sizes.weights.push_back({convolution->numWeights() / convolution->channels_out, convolution->channels_out});
    } else {
      sizes.weights.push_back({sizes.reaching[l], sizes.neurons[l]});
    }
    if (convolution && operands.nextIs(ffi::S8, place)) throw misfit(kOp, "weights", "be floating", "int8 taps");
    place += widthOf(operands, place) + (fields.layers[l].has_bias ? 1 : 0);
    place += fields.connections[l].delay_rows > 0 ? 1 : 0;
  }
  sizes.outputs = sizes.neurons.back();
  if (!fields.has_readout) return sizes;
  for (const LayerFields& layer : fields.layers) {  // behind the constants of all layers
    place += (layer.is_recurrent ? widthOf(operands, place) : 0) + 4;
    for (std::size_t i = 0; i < kNumCouplings; ++i) place += layer.has(i) ? 1 : 0;
  }
  sizes.outputs = operands.nextLength(1, place);
  sizes.reaching.push_back(reachingOf(fields.connections.back(), sizes.neurons.back()));
  sizes.weights.push_back({sizes.reaching.back(), sizes.outputs});
  return sizes;
}

Network::Network(const NetworkFields& fields, Operands& operands)
    : fields_(fields), sizes_(NetworkSizes::read(fields, operands)) {
  const Shape of_inputs{sizes_.steps, sizes_.batch, sizes_.width};
  if (fields.has_lists) {
    ids_ = operands.take("ids", of_inputs, {ffi::U16, ffi::S32});
    arrays_.inputs = operands.take("values", of_inputs, kFloating);
  } else {
    arrays_.inputs = operands.take("inputs", of_inputs, {ffi::F32, ffi::BF16, ffi::U8, ffi::PRED});
  }
  OperandTake take{operands};
  takeParameters(fields, sizes_, arrays_, take);
  type_ = take.of_weights.front();
  has_int8_ = take.any_int8;
  takeFirst(fields, sizes_, take.of_weights, arrays_, operands);
  if (fields.has_lengths) lengths_ = operands.take("lengths", {sizes_.batch}, {ffi::S32});
  for (const ConnectionShape& shape : fields.connections) {
    poolings_.push_back(shape.pooling ? std::make_shared<const Windows>(*shape.pooling) : nullptr);
  }
}

Layer Network::layerOf(const LayerArrays<Operand>& arrays, std::size_t index, Index neurons, Index group) const {
  const auto& convolution = fields_.connections[index].convolution;
  const auto constant = [&](const Operand& array) {
    return ConstantNumbers{array.numbers(group), array.groupBytes() / static_cast<Index>(sizeof(float))};
  };
  GivenConstants given{
      .decay = constant(arrays.of(Summed::kDecay)),
      .gain = constant(arrays.of(Summed::kGain)),
      .threshold = constant(arrays.of(Summed::kThreshold)),
      .second_threshold = constant(arrays.second_threshold),
      .couplings = {},
      .bias = arrays.bias.numbers(group),
  };
  for (std::size_t i = 0; i < kNumCouplings; ++i) {
    given.couplings[i] = constant(arrays.of(summedOf(static_cast<Coupling>(i))));
  }
  // A leaky integrator is a neuron that never reaches threshold.
  return {
      .weights = {arrays.weights.numbers(group), sizes_.reaching[index], neurons, arrays.scale.numbers(group)},
      .recurrent = {arrays.recurrent.numbers(group), neurons, neurons, arrays.recurrent_scale.numbers(group)},
      .constants = {neurons, given, convolution.has_value()},
      .reset = Reset::None,
      .detach_reset = true,
      .surrogate = surrogateOf(StraightThrough, 1.0F, 0.0F),
      .capacity = -1,
      .delays = delaysOf(arrays, index, group),
      .pooling = poolings_[index],
      .convolution = convolution
                         ? std::make_shared<const PackedConvolution>(*convolution, arrays.weights.numbers(group))
                         : nullptr,
  };
}

std::shared_ptr<const Delays> Network::delaysOf(const LayerArrays<Operand>& arrays, std::size_t index,
                                                Index group) const {
  if (!arrays.delays) return nullptr;
  const Index rows = fields_.connections[index].delay_rows;
  return std::make_shared<const Delays>(rows, arrays.delays.at<float>(group), sizes_.inputsOf(index));
}

Layer Network::layer(std::size_t index, Index group) const {
  const LayerFields& fields = fields_.layers[index];
  Layer layer = layerOf(arrays_.layers[index], index, sizes_.neurons[index], group);
  layer.reset = fields.reset;
  layer.detach_reset = fields.detach_reset;
  layer.surrogate = fields.surrogate;
  layer.capacity = fields.capacity;
  return layer;
}

Layer Network::readout(Index group) const { return layerOf(arrays_.readout, size(), sizes_.outputs, group); }

std::vector<std::int32_t> Network::ends(Index group) const {
  const auto steps = static_cast<std::int32_t>(std::min<Index>(sizes_.steps, INT32_MAX));
  std::vector<std::int32_t> ends(static_cast<std::size_t>(sizes_.batch), steps);
  if (!lengths_) return ends;
  const auto* lengths = lengths_.at<std::int32_t>(group);
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] = std::clamp(lengths[i], 0, steps);
  return ends;
}

std::unique_ptr<RowSource> Network::source(Index group) const {
  const Operand& inputs = arrays_.inputs;
  if (fields_.has_lists) {
    return std::make_unique<ListSource>(ids_.at(group), ids_.type() == ffi::U16, inputs.numbers(group), sizes_.width,
                                        sizes_.inputs);
  }
  const auto type = inputs.type() == ffi::F32    ? DenseSource::Type::kFloat32
                    : inputs.type() == ffi::BF16 ? DenseSource::Type::kBfloat16
                                                 : DenseSource::Type::kUint8;
  return std::make_unique<DenseSource>(inputs.at(group), type, sizes_.inputs);
}

}  // namespace snnjax
