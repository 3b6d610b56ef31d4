#include "executor/targets/network_operands.hpp"

#include <algorithm>

#include "executor/targets/operands.hpp"

namespace snnjax::executor::targets {
namespace {

// Numbers a layer in the attribute `layers`. Those of a second state, 6 to 8, are 0: it is refused before.
constexpr std::size_t kFields = 10;

std::vector<LayerFields> fieldsOf(const Lowering& lowering, const Instruction& instruction) {
  const std::vector<long> numbers = wholeNumbers(instruction, "layers");
  if (numbers.empty() || numbers.size() % kFields != 0) {
    lowering.refuse(instruction, "its attribute `layers` must hold 10 numbers a layer", "Call snnjax.lif_network");
  }
  std::vector<LayerFields> fields;
  for (std::size_t i = 0; i < numbers.size(); i += kFields) {
    LayerFields layer{numbers[i] != 0,
                      numbers[i + 1] != 0,
                      static_cast<unsigned>(numbers[i + 2]),
                      numbers[i + 3] != 0,
                      static_cast<unsigned>(numbers[i + 4]),
                      std::nullopt,
                      numbers[i + 9] != 0};
    if (numbers[i + 5] >= 0) layer.capacity = static_cast<unsigned>(numbers[i + 5]);
    fields.push_back(layer);
  }
  return fields;
}

bool isZero(const Lowering& lowering, ValueId value) {
  const Constant* const splat = lowering.splatOf(value);
  return splat != nullptr && std::ranges::all_of(splat->bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// Whether all values are 1, which is known of constants alone.
bool isOne(const Lowering& lowering, ValueId value) {
  const Constant* const splat = lowering.splatOf(value);
  if (splat == nullptr) return false;
  constexpr float kOne = 1.0F;
  constexpr std::uint16_t kHalfOne = 0x3c00;
  const auto equals = [&](const auto& one) {
    const auto bytes = std::as_bytes(std::span(&one, 1));
    return std::ranges::equal(splat->bytes, bytes);
  };
  return lowering.type(value).dtype == Dtype::kFloat16 ? equals(kHalfOne) : equals(kOne);
}

}  // namespace

ValueId Taker::next() {
  if (done()) {
    throw Error(ErrorCode::kInvalidArgument,
                "lif_network: `operands` must be as many as its attributes say, got fewer. Call snnjax.lif_network.");
  }
  return (*values_)[taken_++];
}

std::optional<ValueId> Taker::nextIf(bool is_there) { return is_there ? std::optional(next()) : std::nullopt; }

NetworkOperands::NetworkOperands(const Lowering& lowering, const Instruction& instruction, Taker& taker)
    : fields(fieldsOf(lowering, instruction)),
      has_lists(flag(instruction, "has_lists")),
      has_readout(flag(instruction, "has_readout")) {
  ids = taker.nextIf(has_lists);
  inputs = taker.next();
  layers.resize(fields.size() + (has_readout ? 1 : 0));
  for (std::size_t l = 0; l < fields.size(); ++l) {
    layers[l].weights = taker.next();
    layers[l].bias = taker.nextIf(fields[l].has_bias);
  }
  for (std::size_t l = 0; l < fields.size(); ++l) {
    layers[l].recurrent = taker.nextIf(fields[l].is_recurrent);
    layers[l].decay = taker.next();
    layers[l].threshold = taker.next();
    layers[l].gain = taker.next();
    layers[l].second_threshold = taker.next();
  }
  if (has_readout) {
    layers.back().weights = taker.next();
    layers.back().bias = taker.nextIf(flag(instruction, "readout_has_bias"));
    layers.back().decay = taker.next();
    layers.back().gain = taker.next();
  }
  for (std::size_t l = 0; l < fields.size(); ++l) {
    layers[l].first_v = taker.next();
    layers[l].first_spikes = taker.nextIf(fields[l].is_recurrent);
  }
  if (has_readout) layers.back().first_v = taker.next();
  lengths = taker.nextIf(flag(instruction, "has_lengths"));
}

bool NetworkOperands::recordSpikes() const {
  return std::ranges::any_of(fields, [](const LayerFields& layer) { return layer.records_spikes; });
}

builders::NetworkOptions optionsOf(const Lowering& lowering, const Instruction& instruction,
                                   const NetworkOperands& operands, bool keeps_record) {
  const auto size = [&](ValueId value, std::size_t axis) {
    return static_cast<unsigned>(dimension(lowering, value, axis));
  };
  builders::NetworkOptions options;
  options.num_steps = size(operands.inputs, 1);
  options.batch = size(operands.inputs, 2);
  options.num_inputs = size(operands.layers.front().weights, 1);
  options.event_capacity = size(operands.inputs, 3);
  options.inputs = builders::Inputs::Dense;
  if (operands.has_lists) {
    options.inputs = isOne(lowering, operands.inputs) ? builders::Inputs::Spikes : builders::Inputs::Events;
  }
  for (std::size_t l = 0; l < operands.fields.size(); ++l) {
    const LayerFields& fields = operands.fields[l];
    builders::LayerOptions layer;
    layer.neurons = size(operands.layers[l].weights, 2);
    if (fields.capacity) layer.capacity = std::min(*fields.capacity, layer.neurons);
    layer.recurrent = fields.is_recurrent;
    options.layers.push_back(layer);
    const std::optional<ValueId>& spikes = operands.layers[l].first_spikes;
    if (spikes && (keeps_record || !isZero(lowering, *spikes))) options.first_spikes = true;
  }
  if (operands.has_readout) options.outputs = size(operands.layers.back().weights, 2);
  options.reset = static_cast<Reset>(operands.fields.front().reset);
  options.detach_reset = operands.fields.front().detach_reset;
  options.surrogate = static_cast<Surrogate>(operands.fields.front().surrogate);
  options.slope = realNumbers(instruction, "slopes").at(0);
  const Dtype dtype = lowering.type(operands.layers.front().weights).dtype;
  if (dtype != Dtype::kFloat16 && dtype != Dtype::kFloat32) {
    lowering.refuse(instruction, "its weights must be float16 or float32", "Cast them");
  }
  options.half_weights = dtype == Dtype::kFloat16;
  options.keeps_record = keeps_record;
  return options;
}

}  // namespace snnjax::executor::targets
