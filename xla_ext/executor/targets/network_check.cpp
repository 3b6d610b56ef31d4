#include "executor/targets/network_check.hpp"

namespace snnjax::executor::targets {
using schema::Axis;

NetworkCheck::NetworkCheck(const OperationCheck& op, const NetworkOperands& operands)
    : check_(op), operands_(operands), inputs_(check_.sizes(op.type(operands.inputs), 3)) {
  op.need(!isAnyEmpty({inputs_[0], inputs_[1], inputs_[2]}), "have inputs");
  const Dtype dtype = op.type(operands_.inputs).dtype;
  const bool is_counted = !operands_.ids && (dtype == Dtype::kUint8 || dtype == Dtype::kBool);
  check_.need(op.type(operands_.inputs), is_counted ? schema::Numbers::kInputs : schema::Numbers::kFloats, inputs_);
  for (const LayerArrays& layer : operands_.layers) {
    const Shape weights = check_.sizes(op.type(*layer.weights()), 2);
    if (widths_.empty()) widths_ = {weights[0]};
    widths_.push_back(weights[1]);
    op.need(weights[1] > 0 && std::max(weights[0], weights[1]) < kMaxShortNeurons,
            "have 1 to 65534 neurons in each layer");
  }
  op.need(operands_.ids || widths_[0] == inputs_[2], "have weights for its inputs");
}

std::size_t NetworkCheck::lengthOf(Axis axis, std::size_t l) const {
  const auto capacity = [&] { return std::size_t{operands_.options[l].capacity.value_or(0)}; };
  const auto bytes = [](std::size_t bits) { return (bits + 7) / 8; };
  switch (axis) {
    case Axis::kSteps: return inputs_[0];
    case Axis::kBatch: return inputs_[1];
    case Axis::kWidth: return inputs_[2];
    case Axis::kInputBytes: return bytes(widths_[0]);
    case Axis::kSent:
    case Axis::kWeightRows: return widths_[l];
    case Axis::kWeightColumns:
    case Axis::kRecurrentRows:
    case Axis::kRecurrentColumns:
    case Axis::kNeurons: return neurons(l);
    case Axis::kNeuronBytes: return bytes(neurons(l));
    case Axis::kCapacity: return capacity();
    case Axis::kListEntries: {
      const std::size_t slots = std::min<std::size_t>(operands_.options[l].capacity.value_or(neurons(l)), neurons(l));
      return listStride(static_cast<unsigned>(slots));
    }
    case Axis::kSlots: return operands_.options[l].capacity ? capacity() : neurons(l);
    default: return 0;  // of delays
  }
}

void NetworkCheck::need(const schema::Leaf& leaf, std::size_t l, ValueId value) const {
  const ArrayType& type = check_.op().type(value);
  const Shape own = check_.sizes(type, leaf.rank);
  Shape sizes;
  for (std::size_t i = 0; i < leaf.rank; ++i) {
    const schema::AxisForm axis = schema::formOf(leaf.axes[i]);
    const bool is_fixed = axis.other < 0 || leaf.axes[i] == Axis::kBatchOr0;  // every sequence is computed here
    const bool may_be_own = !is_fixed && own[i] == static_cast<std::size_t>(axis.other);
    sizes.push_back(may_be_own ? own[i] : lengthOf(axis.base, l));
  }
  check_.need(type, leaf.numbers, sizes);
}

void NetworkCheck::needLists(std::size_t l, const lif_network::LayerOnTiles<Value>& record) const {
  const builders::LayerOptions& layer = operands_.options[l];
  const bool fires = operands_.hasReadout() || l + 1 < operands_.options.size() || layer.recurrent || layer.capacity;
  check_.op().need(!record.v || record.lists.has_value() == fires, "record the lists that layers read");
  check_.op().need(!record.w || layer.neuron.second_state, "record second states only where there are some");
  const auto is = [&](const Value& value, Dtype dtype) { return !value || check_.op().type(*value).dtype == dtype; };
  check_.op().need(is(record.v, Dtype::kFloat32) && is(record.w, Dtype::kFloat32) && is(record.lists, Dtype::kUint16),
                   "record states in float32 and lists in uint16");
}

void NetworkCheck::needCotangents(const BackwardCall& call) const {
  const auto visit = [&](const schema::Leaf& leaf, std::size_t l, const Value* operand, const Value& g) {
    Shape sizes;
    for (std::size_t i = 0; i < leaf.rank; ++i) sizes.push_back(lengthOf(schema::formOf(leaf.axes[i]).base, l));
    if (operand != nullptr) check_.need(check_.op().type(*g), schema::Numbers::kFloats, sizes);
  };
  schema::checkCotangents(call.from.operands, call.to, operands_.options.size(), visit, refusal(call.instruction),
                          false);
}

}  // namespace snnjax::executor::targets
