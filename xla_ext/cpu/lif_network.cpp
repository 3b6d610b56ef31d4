#include "lif_network.hpp"

#include <algorithm>

namespace snnjax {
namespace {

template <typename T>
T attribute(ffi::Dictionary attributes, const char* name) {
  const auto value = attributes.get<T>(name);
  if (value.has_error())
    throw Misfit("lif_network: `" + std::string(name) + "` must be given. Call it through snnjax.");
  return *value;
}

constexpr std::array<const char*, kNumCouplings> kCouplingNames{"w_decay", "w_membrane", "w_gain",
                                                                "w_jump",  "v_coupling", "threshold_coupling"};

}  // namespace

bool booleanOf(ffi::Dictionary attributes, const char* name) { return attribute<bool>(attributes, name); }

NetworkFields NetworkFields::read(ffi::Dictionary attributes) {
  NetworkFields fields;
  const auto numbers = attribute<ffi::Span<const std::int64_t>>(attributes, "layers");
  const auto slopes = attribute<ffi::Span<const float>>(attributes, "slopes");
  if (numbers.size() == 0 || numbers.size() != slopes.size() * LayerFields::kFields) {
    throw Misfit("lif_network: `layers` must have ten numbers a layer. Call it through snnjax.");
  }
  for (std::size_t i = 0; i < numbers.size(); i += LayerFields::kFields) {
    fields.layers.push_back({
        .has_bias = numbers[i] != 0,
        .is_recurrent = numbers[i + 1] != 0,
        .reset = static_cast<Reset>(std::clamp<std::int64_t>(numbers[i + 2], 0, 2)),
        .detach_reset = numbers[i + 3] != 0,
        .surrogate = static_cast<Surrogate>(std::clamp<std::int64_t>(numbers[i + 4], 0, 6)),
        .capacity = std::max<Index>(numbers[i + 5], -1),
        // Without its decay there is no second state, whatever else is said of it.
        .second_state = (numbers[i + 6] & 1) != 0 ? numbers[i + 6] : 0,
        .records_w = (numbers[i + 6] & 1) != 0 && numbers[i + 7] != 0,
        .records_current = (numbers[i + 6] & 1) != 0 && numbers[i + 8] != 0,
        .records_spikes = numbers[i + 9] != 0,
    });
  }
  fields.slopes.assign(slopes.begin(), slopes.end());
  fields.has_lists = booleanOf(attributes, "has_lists");
  fields.has_readout = booleanOf(attributes, "has_readout");
  fields.readout_has_bias = booleanOf(attributes, "readout_has_bias");
  fields.has_lengths = booleanOf(attributes, "has_lengths");
  return fields;
}

// In the order of the leaves of `Operands` in snnjax/ops/_lif_network_reference.py.
Network::Network(const NetworkFields& fields, Arrays& operands) : fields_(fields), layers_(fields.layers.size()) {
  steps_ = operands.nextLength(0);
  batch_ = operands.nextLength(1);
  if (fields.has_lists) {
    capacity_ = operands.nextLength(2);
    ids_ = operands.take("ids", {steps_, batch_, capacity_}, {ffi::U16, ffi::S32});
    values_ = operands.take("values", {steps_, batch_, capacity_}, kFloating);
    inputs_ = operands.nextLength(0);
  } else {
    inputs_ = operands.nextLength(2);
    dense_inputs_ = operands.take("inputs", {steps_, batch_, inputs_}, {ffi::F32, ffi::BF16, ffi::U8, ffi::PRED});
  }
  Index width = inputs_;
  Arrays::Types types = kFloating;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    takeLinear(operands, layers_[l], width, fields.layers[l].has_bias, types);
    types = {type()};  // all weights, biases and spikes have the dtype of the first weights
    width = layers_[l].neurons;
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    LayerArrays& layer = layers_[l];
    if (fields.layers[l].is_recurrent) {
      layer.recurrent = operands.take("recurrent", {layer.neurons, layer.neurons}, types);
    }
    layer.decay = takeConstant(operands, "decay", layer.neurons);
    layer.threshold = takeConstant(operands, "threshold", layer.neurons);
    layer.gain = takeConstant(operands, "gain", layer.neurons);
    layer.second_threshold = takeConstant(operands, "second_threshold", layer.neurons);
    for (std::size_t i = 0; i < kNumCouplings; ++i) {
      if (fields.layers[l].has(i)) layer.couplings[i] = takeConstant(operands, kCouplingNames[i], layer.neurons);
    }
  }
  if (fields.has_readout) {
    takeLinear(operands, readout_, width, fields.readout_has_bias, types);
    readout_.decay = takeConstant(operands, "readout.decay", readout_.neurons);
    readout_.gain = takeConstant(operands, "readout.gain", readout_.neurons);
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    LayerArrays& layer = layers_[l];
    layer.first_v = operands.take("state.v", {batch_, layer.neurons}, kWide);
    if (fields.layers[l].hasSecondState()) layer.first_w = operands.take("state.w", {batch_, layer.neurons}, kWide);
    if (fields.layers[l].is_recurrent) {
      layer.first_spikes = operands.take("state.spikes", {batch_, layer.neurons}, types);
    }
  }
  if (fields.has_readout) readout_.first_v = operands.take("state.readout", {batch_, readout_.neurons}, kWide);
  if (fields.has_lengths) lengths_ = operands.take("lengths", {batch_}, {ffi::S32});
}

void Network::takeLinear(Arrays& operands, LayerArrays& layer, Index inputs, bool has_bias,
                         const Arrays::Types& types) {
  layer.inputs = inputs;
  layer.neurons = operands.nextLength(1);
  layer.weights = operands.take("weights", {inputs, layer.neurons}, types);
  if (has_bias) layer.bias = operands.take("bias", {layer.neurons}, {layer.weights.type()});
}

Network::Constant Network::takeConstant(Arrays& operands, const char* name, Index neurons) {
  const Index count = operands.nextLength(0) == 1 ? 1 : neurons;
  return {operands.take(name, {count}, kWide), count};
}

LayerConstants Network::constants(const LayerArrays& layer, Index group) const {
  GivenConstants given{
      .decay = layer.decay.numbers(group),
      .gain = layer.gain.numbers(group),
      .threshold = layer.threshold.numbers(group),
      .second_threshold = layer.second_threshold.numbers(group),
      .couplings = {},
      .bias = layer.bias.numbers(group),
  };
  for (std::size_t i = 0; i < kNumCouplings; ++i) given.couplings[i] = layer.couplings[i].numbers(group);
  return {layer.neurons, given};
}

Layer Network::layer(std::size_t index, Index group) const {
  const LayerArrays& arrays = layers_[index];
  const LayerFields& fields = fields_.layers[index];
  return {
      .weights = {arrays.weights.numbers(group), arrays.inputs, arrays.neurons},
      .recurrent = {arrays.recurrent.numbers(group), arrays.neurons, arrays.neurons},
      .constants = constants(arrays, group),
      .reset = fields.reset,
      .detach_reset = fields.detach_reset,
      .surrogate = {fields.surrogate, fields_.slopes[index]},
      .capacity = fields.capacity,
  };
}

// A leaky integrator is a neuron that never reaches its threshold.
Layer Network::readout(Index group) const {
  return {
      .weights = {readout_.weights.numbers(group), readout_.inputs, readout_.neurons},
      .recurrent = {},
      .constants = constants(readout_, group),
      .reset = Reset::None,
      .detach_reset = true,
      .surrogate = {Surrogate::StraightThrough, 1.0F},
      .capacity = -1,
  };
}

std::vector<std::int32_t> Network::ends(Index group) const {
  const auto steps = static_cast<std::int32_t>(std::min<Index>(steps_, INT32_MAX));
  std::vector<std::int32_t> ends(static_cast<std::size_t>(batch_), steps);
  if (!lengths_) return ends;
  const auto* lengths = lengths_.at<const std::int32_t>(group);
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] = std::clamp(lengths[i], 0, steps);
  return ends;
}

std::unique_ptr<RowSource> Network::source(Index group) const {
  if (fields_.has_lists) {
    return std::make_unique<ListSource>(ids_.at(group), ids_.type() == ffi::U16, values_.numbers(group), capacity_,
                                        inputs_);
  }
  const auto type = dense_inputs_.type() == ffi::F32    ? DenseSource::Type::kFloat32
                    : dense_inputs_.type() == ffi::BF16 ? DenseSource::Type::kBfloat16
                                                        : DenseSource::Type::kUint8;
  return std::make_unique<DenseSource>(dense_inputs_.at(group), type, inputs_);
}

}  // namespace snnjax
