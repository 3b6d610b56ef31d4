// What the two targets of `lif_network` have in common: their static values, and their arrays, which are found by name
// and checked against the table of the Python side (snnjax/ops/_lif_network/records.py).
#pragma once

#include <deque>

#include "cpu/call.hpp"
#include "cpu/lists/marks.hpp"
#include "lif_layer.hpp"

namespace snnjax {

// The static part of a network.
struct NetworkFields {
  explicit NetworkFields(const Attributes& attributes);

  std::size_t layers() const { return of_layers.size(); }

  std::vector<lif_network::LayerNumbers> of_layers;
  std::vector<ConnectionShape> connections;              // before each layer and, at last, of the readout
  std::vector<std::shared_ptr<const Windows>> poolings;  // by connection; may be absent
};

// The lengths of its arrays' axes; those of the readout, 0 where there is none, stand behind those of the layers.
struct NetworkSizes {
  Index steps, batch, inputs;
  Index width;                  // of the array of inputs: their number, or the slots of their lists
  std::vector<Index> neurons;   // or outputs
  std::vector<Index> reaching;  // the weights, pooled or not
  std::vector<std::array<Index, 2>> weights;

  static NetworkSizes read(const NetworkFields& fields, const lif_network::Operands<Operand>& arrays);

  Index inputsOf(std::size_t layer) const { return layer == 0 ? inputs : neurons[layer - 1]; }
};

// What is under way before a step, or after it: as many rows as the delays have, or none.
template <typename Item>
Index pendingRows(const lif_network::LayerState<Item>& state) {
  return std::max<Index>(state.pending.length(0), 0);
}
inline UnderWay underWay(const lif_network::LayerState<Operand>& state, Index group) {
  return {state.pending.numbers(group), pendingRows(state)};
}
// The numbers of a state; those without rows are absent.
template <typename Item>
auto numbersOf(const lif_network::LayerState<Item>& state, Index group) {
  lif_network::LayerState<decltype(state.v.numbers(group))> numbers;
  for (unsigned i = 0; i < numbers.kArrays; ++i) {
    if (state.at(i).length(0) > 0) numbers.at(i) = state.at(i).numbers(group);
  }
  return numbers;
}

// The operands of a network.
class Network {
 public:
  // The constructor checks nothing but what sizes need.
  Network(const NetworkFields& fields, const lif_network::Operands<Operand>& arrays);

  const NetworkFields& fields() const { return fields_; }
  const NetworkSizes& sizes() const { return sizes_; }
  std::size_t size() const { return fields_.layers(); }
  bool hasReadout() const { return static_cast<bool>(arrays_.readout.decay); }
  bool isRecurrent(std::size_t layer) const { return arrays_.has(schema::Switch::kConstantsRecurrent, layer); }
  bool hasInt8() const;
  // Whether the inputs are the currents of the first layer, which has no weights.
  bool hasCurrents() const { return has_currents_; }

  // Throws unless the arrays of a root are those that the table asks for.
  template <typename Root, typename Item>
  void check(Root& root, const Arrays<Item>& from) const {
    const auto has = [&](schema::Switch by, std::size_t layer) {
      if (by == schema::Switch::kCapacity) return fields_.of_layers[layer].capacity >= 0;
      return arrays_.has(by, layer) || root.has(by, layer);
    };
    const auto visit = [&](const schema::Leaf& leaf, std::size_t layer, Item& item) {
      const std::array<Index, schema::kMaxRank> shape = shapeOf(leaf, layer, item);
      from.need(leaf.name, item, std::span(shape).first(leaf.rank), typesOf(leaf.numbers, layer));
      // Recorded twice, those that nobody reads have no rows.
      const bool is_dropped = leaf.axes[0] == schema::Axis::kStepsOr0 && item.length(0) == 0 && sizes_.steps > 0;
      if (is_dropped) item = Item();
    };
    schema::check(root, size(), has, visit, refuse);
  }
  // Throws if spikes of the inputs are recorded that are no spikes.
  template <typename Item>
  void checkBits(const lif_network::Record<Item>& record) const {
    if (record.input_bits && (has_currents_ || arrays_.inputs.ids)) {
      refuse("record.input_bits", "be left out", "an array");
    }
  }
  // The same for the results of the backward pass: cotangents have the shapes of their operands, but those of constants
  // one number a neuron.
  void checkCotangents(const lif_network::BackwardResults<Result>& to, const Results& from) const;

  // Of one group of operands:
  // All layers but the readout, at addresses that stay.
  std::deque<Layer> layers(Index group, const Threads& threads) const;
  Layer readout(Index group) const;
  std::vector<std::int32_t> ends(Index group) const;
  std::unique_ptr<RowSource> source(Index group) const;
  Numbers currents(Index group) const { return has_currents_ ? arrays_.inputs.array.numbers(group) : Numbers(); }
  const lif_network::LayerState<Operand>& first(std::size_t layer) const { return arrays_.first[layer]; }
  UnderWay pending(std::size_t layer, Index group) const { return underWay(first(layer), group); }
  Numbers firstReadout(Index group) const { return arrays_.first_readout.numbers(group); }

 private:
  [[noreturn]] static void refuse(const std::string& name, const std::string& expected, const std::string& actual);
  Index lengthOf(schema::Axis axis, std::size_t layer) const;
  Types typesOf(schema::Numbers numbers, std::size_t layer) const;
  // With the lengths that an array has where it may have them; only a result may have no sequences.
  template <typename Item>
  std::array<Index, schema::kMaxRank> shapeOf(const schema::Leaf& leaf, std::size_t layer, const Item& item) const {
    std::array<Index, schema::kMaxRank> shape{};
    for (std::size_t i = 0; i < leaf.rank; ++i) {
      const schema::AxisForm axis = schema::formOf(leaf.axes[i]);
      const Index own = item.length(i);
      const bool may_be_own = std::is_same_v<Item, Result> || leaf.axes[i] != schema::Axis::kBatchOr0;
      shape[i] = may_be_own && own == axis.other ? own : lengthOf(axis.base, layer);
    }
    return shape;
  }
  void checkWeights() const;
  void checkConnections() const;
  void checkRecurrentDelays(std::size_t l) const;
  Layer layer(std::size_t index, Index group) const;
  Layer layerOf(const lif_network::Weighted<Operand>& linear, const lif_network::LayerConstants<Operand>& constants,
                std::size_t index, Index group) const;

  const NetworkFields& fields_;
  const lif_network::Operands<Operand>& arrays_;
  NetworkSizes sizes_;
  bool has_currents_;
  ffi::DataType type_;                                   // of the op
  std::vector<std::shared_ptr<const Windows>> poolings;  // by connection; may be absent
};

}  // namespace snnjax
