// The target `snnjax_lif_network_backward`.
#include <algorithm>
#include <deque>

#include "leaky_readout.hpp"
#include "lif_network.hpp"
#include "spike_lists.hpp"

namespace snnjax {
namespace {

// What the backward pass takes besides the operands, in the order of the Python side: the record of the forward pass,
// the output, and the cotangents of the results.
struct Recorded {
  struct LayerArrays {
    Array record_v, record_w, record_current, record_spikes, record_listed;
    Array g_counts, g_spikes, spike_ids, g_last_v, g_last_w, g_last_spikes;
  };

  Array output, g_output, g_last_readout, record_inputs, record_is_binary;
  std::vector<LayerArrays> layers;

  Recorded(const Network& network, bool has_g_counts, Arrays& arrays) : layers(network.size()) {
    const Arrays::Types types{network.type()};
    const NetworkFields& fields = network.fields();
    const Index steps = network.steps(), batch = network.batch();
    const Index outputs = fields.has_readout ? network.outputs() : network.neurons(network.size() - 1);
    if (!fields.has_lists) {
      record_inputs = arrays.take("record.inputs", {steps, batch, (network.inputs() + 7) / 8}, {ffi::U8});
      record_is_binary = arrays.take("record.is_binary", {steps, batch}, {ffi::PRED});
    }
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Index bytes = (network.neurons(l) + 7) / 8;
      const Arrays::Shape all{steps, batch, network.neurons(l)};
      layers[l].record_v = arrays.take("record.v", all, fields.layers[l].hasSecondState() ? kWide : types);
      if (fields.layers[l].records_w) layers[l].record_w = arrays.take("record.w", all, {ffi::F32});
      if (fields.layers[l].records_current) layers[l].record_current = arrays.take("record.current", all, {ffi::F32});
      layers[l].record_spikes = arrays.take("record.spikes", {steps, batch, bytes}, {ffi::U8});
      if (fields.layers[l].capacity < 0) continue;
      layers[l].record_listed = arrays.take("record.listed", {steps, batch, bytes}, {ffi::U8});
    }
    if (fields.has_readout) output = arrays.take("output", {steps, batch, outputs}, types);
    g_output = arrays.take("g.output", {steps, batch, outputs}, types);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      LayerArrays& layer = layers[l];
      const Index neurons = network.neurons(l), capacity = fields.layers[l].capacity;
      if (has_g_counts) layer.g_counts = arrays.take("g.counts", {batch, neurons}, {ffi::F32});
      const bool records_spikes = fields.layers[l].records_spikes;
      if (records_spikes && capacity >= 0) {
        layer.spike_ids = arrays.take("spikes.ids", {steps, batch, capacity}, {idType(neurons)});
        layer.g_spikes = arrays.take("g.spikes", {steps, batch, capacity}, types);
      } else if (records_spikes) {
        layer.g_spikes = arrays.take("g.spikes", {steps, batch, neurons}, types);
      }
      layer.g_last_v = arrays.take("g.state.v", {batch, neurons}, kWide);
      if (fields.layers[l].hasSecondState()) layer.g_last_w = arrays.take("g.state.w", {batch, neurons}, kWide);
      if (fields.layers[l].is_recurrent) layer.g_last_spikes = arrays.take("g.state.spikes", {batch, neurons}, types);
    }
    if (fields.has_readout) g_last_readout = arrays.take("g.state.readout", {batch, outputs}, kWide);
  }
};

// The cotangents of the operands: those that are needed, in the order of the leaves of `Operands`.
struct Cotangents {
  struct LayerArrays {
    Array weights, bias, recurrent, first_v, first_w, first_spikes;
    std::array<Array, kNumSummed> constants;  // by `Summed`

    Array& of(Summed constant) { return constants[static_cast<std::size_t>(constant)]; }
    const Array& of(Summed constant) const { return constants[static_cast<std::size_t>(constant)]; }
  };

  Array inputs;
  std::vector<LayerArrays> layers;
  LayerArrays readout;

  Cotangents(const Network& network, ffi::Span<const std::int64_t> needs, Arrays& arrays)
      : layers(network.size()), needs_(needs), arrays_(arrays) {
    const NetworkFields& fields = network.fields();
    const Arrays::Types types{network.type()};
    const Index batch = network.batch();
    inputs = take("g.inputs", {network.steps(), batch, network.inputWidth()}, kFloating);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Index width = l == 0 ? network.inputs() : network.neurons(l - 1);
      layers[l].weights = take("g.weights", {width, network.neurons(l)}, types);
      if (fields.layers[l].has_bias) layers[l].bias = take("g.bias", {network.neurons(l)}, types);
    }
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Index neurons = network.neurons(l);
      if (fields.layers[l].is_recurrent) layers[l].recurrent = take("g.recurrent", {neurons, neurons}, types);
      layers[l].of(Summed::kDecay) = take("g.decay", {neurons}, {ffi::F32});
      layers[l].of(Summed::kThreshold) = take("g.threshold", {neurons}, {ffi::F32});
      layers[l].of(Summed::kGain) = take("g.gain", {neurons}, {ffi::F32});
      for (std::size_t i = 0; i < kNumCouplings; ++i) {
        if (!fields.layers[l].has(i)) continue;
        layers[l].of(summedOf(static_cast<Coupling>(i))) = take("g.second_state", {neurons}, {ffi::F32});
      }
    }
    if (fields.has_readout) {
      const Index width = network.neurons(network.size() - 1), outputs = network.outputs();
      readout.weights = take("g.readout.weights", {width, outputs}, types);
      if (fields.readout_has_bias) readout.bias = take("g.readout.bias", {outputs}, types);
      readout.of(Summed::kDecay) = take("g.readout.decay", {outputs}, {ffi::F32});
      readout.of(Summed::kGain) = take("g.readout.gain", {outputs}, {ffi::F32});
    }
    for (std::size_t l = 0; l < layers.size(); ++l) {
      layers[l].first_v = arrays.take("g.state.v", {batch, network.neurons(l)}, kWide);
      if (fields.layers[l].hasSecondState()) {
        layers[l].first_w = arrays.take("g.state.w", {batch, network.neurons(l)}, kWide);
      }
      if (!fields.layers[l].is_recurrent) continue;
      layers[l].first_spikes = arrays.take("g.state.spikes", {batch, network.neurons(l)}, types);
    }
    if (fields.has_readout) readout.first_v = arrays.take("g.state.readout", {batch, network.outputs()}, kWide);
  }

 private:
  Array take(const char* name, const Arrays::Shape& shape, const Arrays::Types& types) {
    if (next_ >= needs_.size()) throw Misfit("lif_network: `needs` must name every operand. Call it through snnjax.");
    return needs_[next_++] != 0 ? arrays_.take(name, shape, types) : Array();
  }

  ffi::Span<const std::int64_t> needs_;
  Arrays& arrays_;
  std::size_t next_ = 0;
};

class BackwardPass {
 public:
  BackwardPass(const Network& network, const Recorded& recorded, const Cotangents& to, Index group,
               const Threads& threads)
      : network_(network),
        recorded_(recorded),
        to_(to),
        group_(group),
        threads_(threads),
        ends_(network.ends(group)),
        extent_{network.steps(), network.batch(), ends_.data()},
        source_(network.source(group)) {}

  void run() {
    const Index rows = extent_.rows();
    if (recorded_.record_inputs) {
      input_bits_ = GivenBits(recorded_.record_inputs.at<const std::uint8_t>(group_), rows, network_.inputs());
      recorded_inputs_ = std::make_unique<RecordedSource>(
          *source_, input_bits_.row(0), recorded_.record_is_binary.at<const std::uint8_t>(group_), network_.inputs());
    }
    const RowSource& inputs = recorded_inputs_ ? *recorded_inputs_ : *source_;
    lists_.emplace_back(inputs, rows, network_.inputs(), extent_.batch, ends_.data(), threads_);
    for (std::size_t l = 0; l < network_.size(); ++l) {
      layers_.push_back(network_.layer(l, group_));
      const Index neurons = network_.neurons(l);
      spikes_.emplace_back(recorded_.layers[l].record_spikes.at<const std::uint8_t>(group_), rows, neurons);
      if (l + 1 == network_.size() && !network_.fields().has_readout) continue;
      sources_.emplace_back(spikes_.back().row(0), neurons);
      lists_.emplace_back(sources_.back(), rows, neurons, extent_.batch, nullptr, threads_);
    }
    if (network_.fields().has_readout) runReadout();
    for (std::size_t l = network_.size(); l-- > 0;) runLayer(l);
    if (to_.inputs) writeInputs();
  }

 private:
  void runReadout() {
    layers_.push_back(network_.readout(group_));
    ReadoutBackward pass{
        .layer = layers_.back(),
        .inputs = lists_.back(),
        .extent = extent_,
        .first_v = network_.firstReadout(group_),
        .output = recorded_.output.numbers(group_),
        .g_output = recorded_.g_output.numbers(group_),
        .g_last_v = recorded_.g_last_readout.numbers(group_),
        .g_weights = to_.readout.weights.numbers(group_),
        .g_bias = to_.readout.bias.numbers(group_),
        .g_decay = to_.readout.of(Summed::kDecay).numbers(group_),
        .g_gain = to_.readout.of(Summed::kGain).numbers(group_),
        .g_first_v = to_.readout.first_v.numbers(group_),
        .g_v = {},
    };
    runReadoutBackward(pass, threads_);
    sendDown(layers_.back(), std::move(pass.g_v), pass.g_v_stride);
  }

  void sendDown(const Layer& layer, Borrowed<float> g_v, Index stride) {
    g_above_ = std::move(g_v);
    above_ = {layer.weights, layer.constants.outerGain(), {g_above_.data(), stride}};
  }

  void runLayer(std::size_t l) {
    const Recorded::LayerArrays& from = recorded_.layers[l];
    const Cotangents::LayerArrays& to = to_.layers[l];
    const GivenBits listed = from.record_listed ? GivenBits(from.record_listed.at<const std::uint8_t>(group_),
                                                            extent_.rows(), network_.neurons(l))
                                                : GivenBits();
    LayerBackward pass{
        .layer = layers_[l],
        .inputs = lists_[l],
        .extent = extent_,
        .first_v = network_.firstV(l, group_),
        .first_w = network_.firstW(l, group_),
        .first_spikes = network_.firstSpikes(l, group_),
        .record = from.record_v.numbers(group_),
        .record_w = from.record_w.at<const float>(group_),
        .record_current = from.record_current.at<const float>(group_),
        .spikes = spikes_[l],
        .listed = listed,
        .above = above_,
        .g_spikes = furtherCotangents(l),
        .g_counts = from.g_counts.numbers(group_),
        .g_last_v = from.g_last_v.numbers(group_),
        .g_last_w = from.g_last_w.numbers(group_),
        .g_last_spikes = from.g_last_spikes.numbers(group_),
        .g_weights = to.weights.numbers(group_),
        .g_recurrent = to.recurrent.numbers(group_),
        .g_bias = to.bias.numbers(group_),
        .g_constants = {},
        .g_first_v = to.first_v.numbers(group_),
        .g_first_w = to.first_w.numbers(group_),
        .g_first_spikes = to.first_spikes.numbers(group_),
        .keeps_g_v = l > 0 || to_.inputs,
        .g_v = {},
    };
    for (std::size_t i = 0; i < to.constants.size(); ++i) pass.g_constants[i] = to.constants[i].numbers(group_);
    runBackward(pass, threads_);
    sendDown(layers_[l], std::move(pass.g_v), pass.g_v_stride);
  }

  // The cotangents that reach a layer's spikes past the layer above: of the output, and of recorded spikes.
  std::vector<Numbers> furtherCotangents(std::size_t l) {
    std::vector<Numbers> all;
    if (l + 1 == network_.size() && !network_.fields().has_readout) all.push_back(recorded_.g_output.numbers(group_));
    const Recorded::LayerArrays& from = recorded_.layers[l];
    if (!from.g_spikes) return all;
    all.push_back(from.spike_ids ? scattered(l) : from.g_spikes.numbers(group_));
    return all;
  }

  // The cotangents of recorded lists, dense.
  Numbers scattered(std::size_t l) {
    const Recorded::LayerArrays& from = recorded_.layers[l];
    const Index neurons = network_.neurons(l), capacity = network_.fields().layers[l].capacity;
    const ListSource source(from.spike_ids.at(group_), from.spike_ids.type() == ffi::U16, from.g_spikes.numbers(group_),
                            capacity, neurons);
    g_recorded_ = Buffer<float>(extent_.rows() * neurons);
    threads_.run(extent_.rows(), [&](Index row, Index) { source.expand(row, g_recorded_.data() + row * neurons); });
    return {g_recorded_.data(), false};
  }

  // The cotangents of the inputs: of dense ones all, of lists those of the values.
  void writeInputs() {
    const auto* lists = dynamic_cast<const ListSource*>(source_.get());
    const Numbers to = to_.inputs.numbers(group_);
    const Weights& weights = above_.weights;
    const Index rows = extent_.rows(), inputs = weights.inputs, tile = columnsOfTile(inputs, weights.outputs);
    const Index width = lists == nullptr ? inputs : lists->capacity();
    const float kNone = 0.0F;
    for (Index i = 0; lists != nullptr && i < rows * width; ++i) to.write(i, 1, &kNone);
    threads_.run((inputs + tile - 1) / tile, [&](Index task, Index) {
      const Index first = task * tile, columns = std::min(tile, inputs - first);
      PackedWeights packed;
      packed.resize(weights.outputs, roundUp(columns, kernels().lanes));
      packTransposed(weights, first, columns, above_.gain, packed);
      std::vector<float> g(static_cast<std::size_t>(packed.columns()));
      for (Index row = 0; row < rows; ++row) {
        kernels().multiplyRows({above_.g_v.row(row), above_.g_v.stride}, 1, weights.outputs,
                               {packed.rows().data, packed.columns()}, packed.columns(), {nullptr, 0},
                               {g.data(), packed.columns()});
        if (lists == nullptr) {
          to.write(row * width + first, columns, g.data());
          continue;
        }
        for (Index slot = 0; slot < width; ++slot) {
          const Index id = lists->idAt(row, slot) - first;
          if (id >= 0 && id < columns) to.write(row * width + slot, 1, &g[static_cast<std::size_t>(id)]);
        }
      }
    });
  }

  const Network& network_;
  const Recorded& recorded_;
  const Cotangents& to_;
  const Index group_;
  const Threads& threads_;
  const std::vector<std::int32_t> ends_;
  const Extent extent_;
  const std::unique_ptr<RowSource> source_;
  GivenBits input_bits_;
  std::unique_ptr<RowSource> recorded_inputs_;
  // Deques, because layers, lists and bits are referred to.
  std::deque<Layer> layers_;
  std::deque<GivenBits> spikes_;
  std::deque<BitSource> sources_;
  std::deque<SpikeLists> lists_;  // of the inputs, and of the spikes of each layer
  Borrowed<float> g_above_;
  Buffer<float> g_recorded_;
  Above above_{{}, nullptr, {nullptr, 0}};
};

ffi::Error lifNetworkBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                              ffi::Dictionary attributes) {
  return guarded("lif_network", [&] {
    const NetworkFields fields = NetworkFields::read(attributes);
    Arrays operand_arrays("lif_network", operands), result_arrays("lif_network", results);
    const Network network(fields, operand_arrays);
    const Recorded recorded(network, booleanOf(attributes, "has_g_counts"), operand_arrays);
    const auto needs = attributes.get<ffi::Span<const std::int64_t>>("needs");
    if (needs.has_error()) throw Misfit("lif_network: `needs` must be given. Call it through snnjax.");
    const Cotangents to(network, *needs, result_arrays);
    Arrays::finish(operand_arrays, result_arrays);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < result_arrays.groups(); ++group) {
      BackwardPass(network, recorded, to, group, threads).run();
    }
  });
}

}  // namespace
}  // namespace snnjax

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    snnjax_lif_network_backward, snnjax::lifNetworkBackward,
    xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs());
