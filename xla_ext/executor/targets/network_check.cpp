#include "executor/targets/network_check.hpp"

namespace snnjax::executor::targets {

NetworkCheck::NetworkCheck(const OperationCheck& op, const NetworkOperands& operands)
    : check_(op), operands_(operands), inputs_(check_.sizes(op.type(operands.inputs), 3)) {
  checkInputs();
  for (std::size_t l = 0; l < operands_.layers.size(); ++l) checkLayer(l);
  if (operands_.lengths) needSequences(*operands_.lengths, Numbers::kCounts, {});
}

void NetworkCheck::checkInputs() {
  op().need(!isAnyEmpty({inputs_[0], inputs_[1], inputs_[2]}), "have inputs");
  if (operands_.has_lists) need(*operands_.ids, Numbers::kIds, inputs_);
  const Dtype dtype = op().type(operands_.inputs).dtype;
  const bool is_counted = !operands_.has_lists && (dtype == Dtype::kUint8 || dtype == Dtype::kBool);
  need(operands_.inputs, is_counted ? Numbers::kAny : Numbers::kFloats, inputs_);
  const Shape weights = check_.sizes(op().type(operands_.layers.front().weights), 2);
  op().need(operands_.has_lists || weights[0] == inputs_[2], "have weights for its inputs");
  widths_ = {weights[0]};
}

void NetworkCheck::checkLayer(std::size_t l) {
  const LayerOperands& layer = operands_.layers[l];
  const std::size_t neurons = check_.sizes(op().type(layer.weights), 2)[1];
  op().need(neurons > 0, "have neurons in each layer");
  widths_.push_back(neurons);
  need(layer.weights, Numbers::kFloats, {inputs(l), neurons});
  if (layer.bias) need(*layer.bias, Numbers::kFloats, {neurons});
  if (layer.recurrent) need(*layer.recurrent, Numbers::kFloats, {neurons, neurons});
  const auto constant = [&](const std::optional<ValueId>& value) {
    if (value) check_.needConstant(op().type(*value), neurons);
  };
  for (const ValueId each : {layer.decay, layer.gain}) constant(each);
  for (const std::optional<ValueId>& each : {layer.threshold, layer.second_threshold}) constant(each);
  for (const std::optional<ValueId>& each : layer.second) constant(each);
  needSequences(layer.first_v, Numbers::kFloats, {neurons});
  for (const std::optional<ValueId>& each : {layer.first_w, layer.first_spikes}) {
    if (each) needSequences(*each, Numbers::kFloats, {neurons});
  }
}

void NetworkCheck::needTimed(ValueId value, Numbers numbers, Shape sizes) const {
  sizes.insert(sizes.begin(), {inputs_[0], inputs_[1]});
  need(value, numbers, sizes);
}

void NetworkCheck::needSequences(ValueId value, Numbers numbers, Shape sizes) const {
  sizes.insert(sizes.begin(), inputs_[1]);
  need(value, numbers, sizes);
}

void NetworkCheck::needStates(Taker& values) const {
  for (std::size_t l = 0; l < operands_.layers.size(); ++l) {
    const LayerOperands& layer = operands_.layers[l];
    needSequences(values.next(), Numbers::kFloats, {neurons(l)});
    if (layer.first_w) needSequences(values.next(), Numbers::kFloats, {neurons(l)});
    if (layer.first_spikes) needSequences(values.next(), Numbers::kFloats, {neurons(l)});
  }
}

}  // namespace snnjax::executor::targets
