// What the two targets of `lif_network` have in common: their attributes, and their arrays in the order in which the
// Python side passes them. The same functions walk operands and cotangents, results and their records.
#pragma once

#include <memory>

#include "ffi.hpp"
#include "lif_layer.hpp"
#include "marks.hpp"

namespace snnjax {

// The static part of a layer, as the attribute `layers` holds it: kFields numbers a layer.
struct LayerFields {
  static constexpr std::size_t kFields = 12;
  bool has_bias, is_recurrent;
  Reset reset;
  bool detach_reset;
  SurrogateForm surrogate;
  Index capacity;             // -1: none
  std::int64_t second_state;  // a bit for each constant of a second state that is there, by `Coupling`; 0: none
  bool needs_w;               // whether the backward pass needs the second states
  bool records_current;       // for the backward pass
  bool records_spikes;        // as a result
  bool rounds_cotangents;     // to bfloat16, before they are multiplied with the weights
  float exact_within;         // but not those of neurons below that are nearer than this to their threshold
  bool records_listed;        // the membranes of listed neurons: forward beside those of all, backward instead of them

  bool hasSecondState() const { return second_state != 0; }
  bool has(std::size_t coupling) const { return ((second_state >> coupling) & 1) != 0; }
};

// The static part of a network. `has_lists`: the inputs are lists of spikes.
struct NetworkFields {
  std::vector<LayerFields> layers;
  std::vector<ConnectionShape> connections;  // before each layer and, at last, of the read-out
  bool has_lists, has_readout, readout_has_bias, has_lengths;

  static NetworkFields read(ffi::Dictionary attributes);
};

// The lengths of its arrays' axes.
struct NetworkSizes {
  Index steps, batch, inputs;
  Index width;  // of the array of inputs: their number, or the capacity of their lists
  std::vector<Index> neurons;
  Index outputs;  // of the read-out, or the neurons of the last layer
  // What reaches the weights of each layer and of the read-out, pooled or not; and their shapes.
  std::vector<Index> reaching;
  std::vector<Shape> weights;

  static NetworkSizes read(const NetworkFields& fields, const Operands& operands);

  Index inputsOf(std::size_t layer) const { return layer == 0 ? inputs : neurons[layer - 1]; }
};

// The arrays of a layer, or of the read-out: operands, or their cotangents.
template <typename Item>
struct LayerArrays {
  Item weights, scale, bias, delays, recurrent, recurrent_scale, second_threshold;  // scales: of int8 weights alone
  std::array<Item, kNumSummed> constants;                                           // by `Summed`

  Item& of(Summed constant) { return constants[static_cast<std::size_t>(constant)]; }
  const Item& of(Summed constant) const { return constants[static_cast<std::size_t>(constant)]; }
};

// A layer's state from step to step, [batch, neurons].
template <typename Item>
struct StateArrays {
  Item v, w, spikes;
  Item pending;            // [rows, batch, inputs], of a layer after delays
  Index pending_rows = 0;  // as many as the delays have, or none
};

// What the forward pass records of a layer for the backward pass, [steps, batch, neurons]; `listed_v`, the membranes of
// the listed neurons by ascending id, [steps, batch, capacity].
template <typename Item>
struct RecordArrays {
  Item v, listed_v, current, spikes, listed;
};

// And of dense inputs.
template <typename Item>
struct InputRecordArrays {
  Item bits, is_binary;
};

template <typename Item>
struct NetworkArrays {
  Item inputs;  // dense, or the values of lists
  std::vector<LayerArrays<Item>> layers;
  LayerArrays<Item> readout;
  std::vector<StateArrays<Item>> first;
  Item first_readout;
};

inline constexpr std::array<const char*, kNumSummed> kConstantNames{
    "decay", "threshold", "gain", "w_decay", "w_membrane", "w_gain", "w_jump", "v_coupling", "threshold_coupling"};

// The weights and constants: `take` has functions `weights(name, shape)`, `scale(outputs)` behind them,
// `bias(outputs)`, `delays(inputs)`, `constant(name, neurons)` and, for a constant without a cotangent, `fixed(name,
// neurons)`.
template <typename Item, typename Take>
void takeParameters(const NetworkFields& fields, const NetworkSizes& sizes, NetworkArrays<Item>& arrays, Take& take) {
  const std::size_t size = fields.layers.size();
  const auto takeLinear = [&](LayerArrays<Item>& to, const Shape& weights, Index outputs, bool has_bias) {
    to.weights = take.weights("weights", weights);
    to.scale = take.scale(outputs);
    if (has_bias) to.bias = take.bias(outputs);
  };
  const auto takeConstant = [&](LayerArrays<Item>& to, Summed constant, Index neurons) {
    to.of(constant) = take.constant(kConstantNames[static_cast<std::size_t>(constant)], neurons);
  };
  arrays.layers.resize(size);
  for (std::size_t l = 0; l < size; ++l) {
    takeLinear(arrays.layers[l], sizes.weights[l], sizes.neurons[l], fields.layers[l].has_bias);
    if (fields.connections[l].delay_rows > 0) arrays.layers[l].delays = take.delays(sizes.inputsOf(l));
  }
  for (std::size_t l = 0; l < size; ++l) {
    const Index neurons = sizes.neurons[l];
    LayerArrays<Item>& to = arrays.layers[l];
    if (fields.layers[l].is_recurrent) {
      to.recurrent = take.weights("recurrent", {neurons, neurons});
      to.recurrent_scale = take.scale(neurons);
    }
    for (const Summed constant : {Summed::kDecay, Summed::kThreshold, Summed::kGain}) {
      takeConstant(to, constant, neurons);
    }
    to.second_threshold = take.fixed("second_threshold", neurons);
    for (std::size_t i = 0; i < kNumCouplings; ++i) {
      if (fields.layers[l].has(i)) takeConstant(to, summedOf(static_cast<Coupling>(i)), neurons);
    }
  }
  if (!fields.has_readout) return;
  takeLinear(arrays.readout, sizes.weights[size], sizes.outputs, fields.readout_has_bias);
  for (const Summed constant : {Summed::kDecay, Summed::kGain}) takeConstant(arrays.readout, constant, sizes.outputs);
}

template <typename Item>
StateArrays<Item> takeState(const NetworkFields& network, const NetworkSizes& sizes, std::size_t layer,
                            const Types& of_weights, Arrays<Item>& from) {
  const LayerFields& fields = network.layers[layer];
  const Index batch = sizes.batch, neurons = sizes.neurons[layer], rows = network.connections[layer].delay_rows;
  StateArrays<Item> state;
  state.v = from.take("state.v", {batch, neurons}, kWide);
  if (fields.hasSecondState()) state.w = from.take("state.w", {batch, neurons}, kWide);
  if (fields.is_recurrent) state.spikes = from.take("state.spikes", {batch, neurons}, of_weights);
  if (rows == 0) return state;
  state.pending_rows = from.nextLength(0) == 0 ? 0 : rows;
  state.pending = from.take("state.pending", {state.pending_rows, batch, sizes.inputsOf(layer)}, of_weights);
  return state;
}

template <typename Item>
void takeFirst(const NetworkFields& fields, const NetworkSizes& sizes, const Types& of_weights,
               NetworkArrays<Item>& arrays, Arrays<Item>& from) {
  for (std::size_t l = 0; l < fields.layers.size(); ++l) {
    arrays.first.push_back(takeState(fields, sizes, l, of_weights, from));
  }
  if (fields.has_readout) arrays.first_readout = from.take("state.readout", {sizes.batch, sizes.outputs}, kWide);
}

template <typename Item>
struct NetworkRecord {
  InputRecordArrays<Item> inputs;
  std::vector<RecordArrays<Item>> layers;

  NetworkRecord() = default;
  NetworkRecord(const NetworkFields& fields, const NetworkSizes& sizes, const Types& of_weights, Arrays<Item>& from) {
    const Index steps = sizes.steps, batch = sizes.batch;
    Types of_membranes = of_weights;
    of_membranes.push_back(ffi::BF16);
    if (!fields.has_lists) {
      inputs.bits = from.take("record.inputs", {steps, batch, (sizes.inputs + 7) / 8}, {ffi::U8});
      inputs.is_binary = from.take("record.is_binary", {steps, batch}, {ffi::PRED});
    }
    for (std::size_t l = 0; l < fields.layers.size(); ++l) {
      const LayerFields& layer = fields.layers[l];
      const Shape all{steps, batch, sizes.neurons[l]}, bits{steps, batch, (sizes.neurons[l] + 7) / 8};
      RecordArrays<Item>& to = layers.emplace_back();
      takeMembranes(layer, all, layer.hasSecondState() ? kWide : of_membranes, to, from);
      if (layer.records_current) to.current = from.take("record.current", all, kWide);
      to.spikes = from.take("record.spikes", bits, {ffi::U8});
      if (layer.capacity >= 0) to.listed = from.take("record.listed", bits, {ffi::U8});
    }
  }

 private:
  // Recorded twice, those that nobody reads have no rows.
  static void takeMembranes(const LayerFields& layer, const Shape& all, const Types& types, RecordArrays<Item>& to,
                            Arrays<Item>& from) {
    constexpr bool kIsGiven = std::is_same_v<Item, Operand>;
    if (!layer.records_listed) {
      to.v = from.take("record.v", all, types);
      return;
    }
    const auto takeRead = [&](const char* name, Shape shape) {
      const bool is_dropped = !kIsGiven && from.nextLength(0) == 0;
      if (is_dropped) shape[0] = 0;
      const Item taken = from.take(name, shape, types);
      return is_dropped ? Item() : taken;
    };
    if (!kIsGiven) to.v = takeRead("record.v", all);
    to.listed_v = takeRead("record.listed_v", {all[0], all[1], layer.capacity});
  }
};

// The operands of a network.
class Network {
 public:
  Network(const NetworkFields& fields, Operands& operands);

  const NetworkFields& fields() const { return fields_; }
  const NetworkSizes& sizes() const { return sizes_; }
  std::size_t size() const { return fields_.layers.size(); }
  ffi::DataType type() const { return type_; }  // of the op
  bool hasInt8() const { return has_int8_; }

  // Of one group of operands:
  Layer layer(std::size_t index, Index group) const;
  Layer readout(Index group) const;
  std::vector<std::int32_t> ends(Index group) const;
  std::unique_ptr<RowSource> source(Index group) const;
  const StateArrays<Operand>& first(std::size_t layer) const { return arrays_.first[layer]; }
  UnderWay pending(std::size_t layer, Index group) const {
    return {first(layer).pending.numbers(group), first(layer).pending_rows};
  }
  Numbers firstReadout(Index group) const { return arrays_.first_readout.numbers(group); }

 private:
  Layer layerOf(const LayerArrays<Operand>& arrays, std::size_t index, Index neurons, Index group) const;
  std::shared_ptr<const Delays> delaysOf(const LayerArrays<Operand>& arrays, std::size_t index, Index group) const;

  NetworkFields fields_;
  NetworkSizes sizes_;
  ffi::DataType type_;
  bool has_int8_;
  Operand ids_, lengths_;
  NetworkArrays<Operand> arrays_;
  std::vector<std::shared_ptr<const Windows>> poolings_;  // by connection; may be absent
};

}  // namespace snnjax
