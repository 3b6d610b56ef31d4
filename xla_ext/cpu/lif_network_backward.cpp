// The target `snnjax_lif_network_backward`.
#include <algorithm>
#include <bit>
#include <deque>

#include "lif_network.hpp"
#include "readout_backward.hpp"

namespace snnjax {
namespace {

// What the backward pass takes besides the operands, in the order of the Python side: the record of the forward pass,
// the output, and the cotangents of the results.
struct Recorded {
  struct LayerArrays {
    Operand g_counts, g_spikes, spike_ids;
    StateArrays<Operand> g_last;
  };

  NetworkRecord<Operand> record;
  Operand output, g_output, g_last_readout;
  std::vector<LayerArrays> layers;

  Recorded(const Network& network, bool has_g_counts, Operands& arrays)
      : record(network.fields(), network.sizes(), {network.type()}, arrays), layers(network.size()) {
    const Types types{network.type()};
    const NetworkFields& fields = network.fields();
    const NetworkSizes& sizes = network.sizes();
    const Shape of_output{sizes.steps, sizes.batch, sizes.outputs};
    if (fields.has_readout) output = arrays.take("output", of_output, types);
    g_output = arrays.take("g.output", of_output, types);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      LayerArrays& layer = layers[l];
      const Index neurons = sizes.neurons[l], capacity = fields.layers[l].capacity;
      if (has_g_counts) layer.g_counts = arrays.take("g.counts", {sizes.batch, neurons}, {ffi::F32});
      if (fields.layers[l].records_spikes) {
        const bool has_lists = capacity >= 0;
        const Shape of_spikes{sizes.steps, sizes.batch, has_lists ? capacity : neurons};
        if (has_lists) layer.spike_ids = arrays.take("spikes.ids", of_spikes, {idType(neurons)});
        layer.g_spikes = arrays.take("g.spikes", of_spikes, types);
      }
      layer.g_last = takeState(fields, sizes, l, types, arrays);
    }
    if (fields.has_readout) g_last_readout = arrays.take("g.state.readout", {sizes.batch, sizes.outputs}, kWide);
  }
};

// Takes the cotangents that are needed: `needs` has a number for each operand that may have one.
struct CotangentTake {
  ffi::Span<const std::int64_t> needs;
  Results& from;
  Types of_weights;
  std::size_t next = 0;

  Result take(const char* name, const Shape& shape, const Types& types) {
    if (next >= needs.size()) {
      throw misfit(from.op(), "needs", "name every operand", std::to_string(needs.size()));
    }
    return needs[next++] != 0 ? from.take(name, shape, types) : Result();
  }
  Result weights(const char* name, const Shape& shape) { return take(name, shape, of_weights); }
  Result scale(Index) { return {}; }  // int8 weights have no gradient
  Result bias(Index outputs) { return weights("bias", {outputs}); }
  Result delays(Index inputs) { return take("delays", {inputs}, kWide); }
  Result constant(const char* name, Index neurons) { return take(name, {neurons}, kWide); }
  Result fixed(const char*, Index) { return {}; }
};

// The cotangents of the operands, in the order of the operands; states always have one.
NetworkArrays<Result> takeCotangents(const Network& network, ffi::Span<const std::int64_t> needs, Results& results) {
  const NetworkSizes& sizes = network.sizes();
  NetworkArrays<Result> arrays;
  CotangentTake take{needs, results, {network.type()}};
  arrays.inputs = take.take("inputs", {sizes.steps, sizes.batch, sizes.width}, kFloating);
  takeParameters(network.fields(), sizes, arrays, take);
  takeFirst(network.fields(), sizes, take.of_weights, arrays, results);
  return arrays;
}

// The cotangents of the membranes of those layers that `overwrites` marks, [steps, batch, neurons], float32: results,
// which may lie in the memory of the recorded membranes, since each of these is read before its cotangent is written.
std::vector<Result> takeOverwritten(const Network& network, ffi::Dictionary attributes, Results& results) {
  const auto marks = attributes.get<ffi::Span<const std::int64_t>>("overwrites");
  std::vector<Result> all(network.size());
  if (marks.has_error()) return all;  // as from other platforms: no layer is marked
  if (marks->size() != all.size()) {
    throw misfit(results.op(), "overwrites", "have a number for each layer", std::to_string(marks->size()));
  }
  const NetworkSizes& sizes = network.sizes();
  for (std::size_t l = 0; l < all.size(); ++l) {
    if (marks->begin()[l] == 0) continue;
    const Index neurons = sizes.neurons[l];
    if (strideOf(neurons) != neurons) {
      throw misfit(results.op(), "overwrites", "mark layers of whole vectors", std::to_string(neurons));
    }
    all[l] = results.take("g.v", {sizes.steps, sizes.batch, neurons}, kWide);
  }
  return all;
}

class BackwardPass {
 public:
  BackwardPass(const Network& network, const Recorded& recorded, const NetworkArrays<Result>& to,
               const std::vector<Result>& overwritten, Index group, const Threads& threads)
      : network_(network),
        recorded_(recorded),
        to_(to),
        overwritten_(overwritten),
        group_(group),
        threads_(threads),
        ends_(network.ends(group)),
        extent_{network.sizes().steps, network.sizes().batch, ends_.data()},
        source_(network.source(group)) {}

  void run() {
    const Index rows = extent_.rows(), num_inputs = network_.sizes().inputs;
    const InputRecordArrays<Operand>& record = recorded_.record.inputs;
    if (record.bits) {
      input_bits_ = GivenBits(record.bits.at<std::uint8_t>(group_), rows, num_inputs);
      recorded_inputs_ = std::make_unique<RecordedSource>(*source_, input_bits_.row(0),
                                                          record.is_binary.at<std::uint8_t>(group_), num_inputs);
    }
    const RowSource& inputs = recorded_inputs_ ? *recorded_inputs_ : *source_;
    for (std::size_t l = 0; l < network_.size(); ++l) {
      layers_.push_back(network_.layer(l, group_));
      const Index neurons = network_.sizes().neurons[l];
      const RecordArrays<Operand>& own = recorded_.record.layers[l];
      spikes_.emplace_back(own.spikes.at<std::uint8_t>(group_), rows, neurons);
      listed_.push_back(own.listed ? GivenBits(own.listed.at<std::uint8_t>(group_), rows, neurons) : GivenBits());
      sources_.emplace_back(spikes_.back().row(0), neurons);
    }
    if (network_.fields().has_readout) {
      layers_.push_back(network_.readout(group_));
      list(network_.size(), sources_.back());
      runReadout();
    }
    for (std::size_t l = network_.size(); l-- > 0;) {
      list(l, l == 0 ? inputs : sources_[l - 1]);
      runLayer(l);
    }
    if (to_.inputs) writeInputs();
  }

 private:
  // What reaches the weights of a layer or of the read-out, and how it comes there.
  struct Reaching {
    std::unique_ptr<const SpikeLists> sent;  // after delays, as the next two; otherwise absent
    std::unique_ptr<const Arrivals> arrivals;
    std::unique_ptr<const RowSource> arriving;
    std::unique_ptr<const RowSource> pooled;  // may be absent
    std::unique_ptr<const SpikeLists> lists;
  };

  // Makes that of a layer in the memory of the layer before.
  void list(std::size_t l, const RowSource& spiking) {
    const Layer& layer = layers_[l];
    const Index rows = extent_.rows(), batch = extent_.batch;
    const RowSource* source = &spiking;
    reaching_ = {};
    const auto listOf = [&](const RowSource& from, Index width, const std::int32_t* ends) {
      return std::make_unique<const SpikeLists>(from, rows, width, batch, ends, threads_);
    };
    if (layer.delays != nullptr) {
      const Index inputs = layer.delays->inputs();
      reaching_.sent = listOf(spiking, inputs, ends_.data());
      reaching_.arrivals =
          std::make_unique<const Arrivals>(*reaching_.sent, network_.pending(l, group_), extent_, *layer.delays,
                                           static_cast<bool>(to_.layers[l].delays), threads_);
      if (isSplit(l)) {
        reaching_.arriving = std::make_unique<const SplitSource>(*reaching_.arrivals);
        reaching_.lists = listOf(*reaching_.arriving, 2 * inputs, nullptr);
        return;
      }
      reaching_.arriving = std::make_unique<const ArrivingSource>(*reaching_.arrivals);
      source = reaching_.arriving.get();
    }
    if (layer.pooling != nullptr) {
      reaching_.pooled = std::make_unique<const PooledSource>(*source, *layer.pooling);
      source = reaching_.pooled.get();
    }
    reaching_.lists = listOf(*source, layer.weights.inputs, l == 0 ? ends_.data() : nullptr);
  }

  // Whether the cotangents of delays come with those of dense weights.
  bool isSplit(std::size_t l) const {
    if (l == network_.size() || !to_.layers[l].delays) return false;
    return layers_[l].pooling == nullptr && layers_[l].convolution == nullptr;
  }

  // Whether anything needs the cotangents of what was sent to a layer, or of what arrived there.
  bool sendsDown(std::size_t l) const {
    if (l == network_.size()) return true;
    if (l > 0 || to_.inputs || to_.first[l].pending_rows > 0) return true;
    return to_.layers[l].delays && !isSplit(l);
  }

  void runReadout() {
    ReadoutBackward pass{
        .layer = layers_.back(),
        .inputs = *reaching_.lists,
        .extent = extent_,
        .first_v = network_.firstReadout(group_),
        .output = recorded_.output.numbers(group_),
        .g_output = recorded_.g_output.numbers(group_),
        .g_last_v = recorded_.g_last_readout.numbers(group_),
        .g_weights = to_.readout.weights.numbers(group_),
        .g_bias = to_.readout.bias.numbers(group_),
        .g_decay = to_.readout.of(Summed::kDecay).numbers(group_),
        .g_gain = to_.readout.of(Summed::kGain).numbers(group_),
        .g_first_v = to_.first_readout.numbers(group_),
        .g_v = {},
    };
    runReadoutBackward(pass, threads_);
    sendDown(network_.size(), std::move(pass.g_v));
  }

  // Dense weights send back while the layer below runs; poolings and convolutions, before.
  void sendDown(std::size_t l, KeptRows g_v) {
    const Layer& layer = layers_[l];
    const Rows<const float> g = g_v.asConst();
    if (layer.delays == nullptr && layer.pooling == nullptr && layer.convolution == nullptr) {
      g_above_ = std::move(g_v);
      above_ = {layer.weights, layer.constants.outerGain(), g};
      if (l < network_.size()) {
        const LayerFields& fields = network_.fields().layers[l];
        // Where rounding gains nothing, numbers that are partly exact may as well be wholly so.
        above_.rounds = fields.rounds_cotangents && (fields.exact_within == 0.0F || kernels().roundingPays());
        above_.exact_within = above_.rounds ? fields.exact_within : 0.0F;
      }
      sent_ = {{nullptr, 0}, nullptr};
      return;
    }
    above_ = {{}, nullptr, {nullptr, 0}};
    sent_ = {{nullptr, 0}, nullptr};
    if (g.data == nullptr || !sendsDown(l)) return;
    static const auto& kAll = *new GivenBits;  // never destroyed: threads may outlive everything else
    const GivenBits& listed = l == 0 || layer.delays != nullptr ? kAll : listed_[l - 1];
    const Index rows_behind = layer.delays == nullptr ? 0 : layer.delays->rows() * extent_.batch;
    const SendBack of{g,
                      extent_.rows(),
                      layer.constants.outerGain(),
                      layer.weights,
                      layer.convolution.get(),
                      layer.pooling.get(),
                      listed,
                      rows_behind};
    g_above_ = {sendBack(of, threads_), strideOf(layer.weights.inputs)};
    sent_ = {g_above_.asConst(), layer.pooling};
    if (layer.delays != nullptr) sendThroughDelays(l, *layer.delays);
  }

  // From the cotangents of what arrived to those of what was sent.
  void sendThroughDelays(std::size_t l, const Delays& delays) {
    if (sent_.pooling != nullptr) {
      const Index rows = extent_.rows() + delays.rows() * extent_.batch;
      KeptRows spread(rows, delays.inputs());
      threads_.run(rows, [&](Index row, Index) {
        std::fill_n(spread.rows().row(row), delays.inputs(), 0.0F);
        sent_.addTo(row, 0, delays.inputs(), spread.rows().row(row));
      });
      g_above_ = std::move(spread);
      sent_ = {g_above_.asConst(), nullptr};
    }
    const StateArrays<Operand>& left = recorded_.layers[l].g_last;
    delayed_ = std::make_unique<const DelayedCotangents>(delays, extent_, sent_.g,
                                                         UnderWay{left.pending.numbers(group_), left.pending_rows});
    sent_.delayed = delayed_.get();
    if (to_.layers[l].delays && !isSplit(l)) {
      delayed_->sumDelays(*reaching_.arrivals, to_.layers[l].delays.numbers(group_), threads_);
    }
    writePending(delays, to_.first[l]);
  }

  // The cotangents of what was under way before the first step.
  void writePending(const Delays& delays, const StateArrays<Result>& first) {
    const Index inputs = delays.inputs();
    threads_.run(first.pending_rows, [&](Index row, Index) {
      std::vector<float> g(static_cast<std::size_t>(inputs));
      for (Index sample = 0; sample < extent_.batch; ++sample) {
        std::fill(g.begin(), g.end(), 0.0F);
        delayed_->addTo(row - delays.rows(), sample, 0, inputs, g.data());
        first.pending.numbers(group_).write((row * extent_.batch + sample) * inputs, inputs, g.data());
      }
    });
  }

  void runLayer(std::size_t l) {
    const Recorded::LayerArrays& from = recorded_.layers[l];
    const LayerArrays<Result>& to = to_.layers[l];
    const RecordArrays<Operand>& record = recorded_.record.layers[l];
    const StateArrays<Operand>& first = network_.first(l);
    LayerBackward pass{
        .layer = layers_[l],
        .inputs = *reaching_.lists,
        .split = isSplit(l) ? layers_[l].delays.get() : nullptr,
        .extent = extent_,
        .first_v = first.v.numbers(group_),
        .first_w = first.w.numbers(group_),
        .first_spikes = first.spikes.numbers(group_),
        .record = record.v.numbers(group_),
        .listed_record = record.listed_v.numbers(group_),
        .record_current = record.current.at<float>(group_),
        .needs_w = network_.fields().layers[l].needs_w,
        .spikes = spikes_[l],
        .listed = listed_[l],
        .above = above_,
        .sent = sent_,
        .g_spikes = furtherCotangents(l),
        .g_counts = from.g_counts.numbers(group_),
        .g_last_v = from.g_last.v.numbers(group_),
        .g_last_w = from.g_last.w.numbers(group_),
        .g_last_spikes = from.g_last.spikes.numbers(group_),
        .g_weights = to.weights.numbers(group_),
        .g_recurrent = to.recurrent.numbers(group_),
        .g_bias = to.bias.numbers(group_),
        .g_delays = to.delays.numbers(group_),
        .g_constants = {},
        .g_first_v = to_.first[l].v.numbers(group_),
        .g_first_w = to_.first[l].w.numbers(group_),
        .g_first_spikes = to_.first[l].spikes.numbers(group_),
        .keeps_g_v = sendsDown(l),
        .g_v = KeptRows({overwritten_[l].at<float>(group_), network_.sizes().neurons[l]}),
    };
    for (std::size_t i = 0; i < to.constants.size(); ++i) pass.g_constants[i] = to.constants[i].numbers(group_);
    runBackward(pass, threads_);
    sendDown(l, std::move(pass.g_v));
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
    const Index neurons = network_.sizes().neurons[l], capacity = network_.fields().layers[l].capacity;
    const ListSource source(from.spike_ids.at(group_), from.spike_ids.type() == ffi::U16, from.g_spikes.numbers(group_),
                            capacity, neurons);
    g_recorded_ = Buffer<float>(extent_.rows() * neurons);
    threads_.run(extent_.rows(), [&](Index row, Index) { source.expand(row, g_recorded_.data() + row * neurons); });
    return {g_recorded_.data(), false};
  }

  // The cotangents of the inputs: of dense ones all, of lists those of the values.
  void writeInputs() {
    const auto* lists = dynamic_cast<const ListSource*>(source_.get());
    const WritableNumbers to = to_.inputs.numbers(group_);
    if (sent_) return writeSent(lists, to);
    const Weights& weights = above_.weights;
    const Index rows = extent_.rows(), inputs = weights.inputs, tile = columnsOfTile(inputs, weights.outputs);
    const Index width = lists == nullptr ? inputs : lists->capacity();
    const float kNone = 0.0F;
    for (Index i = 0; lists != nullptr && i < rows * width; ++i) to.write(i, 1, &kNone);
    threads_.run((inputs + tile - 1) / tile, [&](Index task, Index) {
      const Index first = task * tile, columns = std::min(tile, inputs - first);
      const Index padded = roundUp(columns, kernels().lanes);
      PanelProduct product;
      product.pack(weights, first, columns, padded, above_.gain);
      PackedWeights g, scratch;
      g.resize(kBackwardBlock, padded);
      for (Index start = 0; start < rows; start += kBackwardBlock) {
        const Index count = std::min(kBackwardBlock, rows - start);
        product.multiply({{above_.g_v.row(start), above_.g_v.stride}, count}, g.rows(), scratch);
        for (Index r = 0; r < count; ++r) writeInputs(lists, start + r, width, first, columns, g.rows().row(r), to);
      }
    });
  }

  // What the first layer has sent.
  void writeSent(const ListSource* lists, const WritableNumbers& to) {
    const Index inputs = network_.sizes().inputs, width = lists == nullptr ? inputs : lists->capacity();
    threads_.run(extent_.steps, [&](Index step, Index) {
      std::vector<float> g(static_cast<std::size_t>(inputs)), values(static_cast<std::size_t>(width));
      for (Index row = step * extent_.batch; row < (step + 1) * extent_.batch; ++row) {
        std::fill(g.begin(), g.end(), 0.0F);
        sent_.addTo(row, 0, inputs, g.data());
        for (Index slot = 0; lists != nullptr && slot < width; ++slot) {
          const Index id = lists->idAt(row, slot);
          values[static_cast<std::size_t>(slot)] = id < 0 ? 0.0F : g[static_cast<std::size_t>(id)];
        }
        to.write(row * width, width, lists == nullptr ? g.data() : values.data());
      }
    });
  }

  // The columns of a row from `first` on; for lists, those that they name.
  static void writeInputs(const ListSource* lists, Index row, Index width, Index first, Index columns, const float* g,
                          const WritableNumbers& to) {
    if (lists == nullptr) return to.write(row * width + first, columns, g);
    for (Index slot = 0; slot < width; ++slot) {
      const Index id = lists->idAt(row, slot) - first;
      if (id >= 0 && id < columns) to.write(row * width + slot, 1, &g[id]);
    }
  }

  const Network& network_;
  const Recorded& recorded_;
  const NetworkArrays<Result>& to_;
  const std::vector<Result>& overwritten_;
  const Index group_;
  const Threads& threads_;
  const std::vector<std::int32_t> ends_;
  const Extent extent_;
  const std::unique_ptr<RowSource> source_;
  GivenBits input_bits_;
  std::unique_ptr<RowSource> recorded_inputs_;
  // Deques, because layers and bits must keep their addresses.
  std::deque<Layer> layers_;
  std::deque<GivenBits> spikes_, listed_;  // of each layer
  std::deque<BitSource> sources_;
  Reaching reaching_;  // of the current layer
  KeptRows g_above_;
  Buffer<float> g_recorded_;
  Above above_{{}, nullptr, {nullptr, 0}};
  SentBack sent_{{nullptr, 0}, nullptr};
  std::unique_ptr<const DelayedCotangents> delayed_;
};

// Membranes that an IPU kept on its tiles do not tell the gradient.
void refuseLeftOnTiles(const Network& network, const Recorded& recorded, Index groups) {
  const Index rows = network.sizes().steps * network.sizes().batch;
  for (std::size_t l = 0; l < network.size(); ++l) {
    const RecordArrays<Operand>& record = recorded.record.layers[l];
    const Operand& v = record.v ? record.v : record.listed_v;
    const Index width = record.v ? network.sizes().neurons[l] : network.fields().layers[l].capacity;
    if (v.type() != ffi::F32 || rows * width == 0) continue;
    for (Index group = 0; group < groups; ++group) {
      if (std::bit_cast<std::uint32_t>(*v.at<float>(group)) != kLeftOnTiles) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  "lif_network: `pull-back` must be called where the forward pass ran, got one of an IPU, which keeps "
                  "the record on its tiles. Call it there, or take the gradient inside one jax.jit.");
    }
  }
}

ffi::Error lifNetworkBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                              ffi::Dictionary attributes) {
  return guarded("lif_network", [&] {
    const NetworkFields fields = NetworkFields::read(attributes);
    Operands operand_arrays("lif_network", operands);
    Results result_arrays("lif_network", results);
    const Network network(fields, operand_arrays);
    if (network.hasInt8()) throw misfit("lif_network", "weights", "be floating for a gradient", "int8");
    const bool has_g_counts = attributeOf<bool>("lif_network", attributes, "has_g_counts");
    const Recorded recorded(network, has_g_counts, operand_arrays);
    const auto needs = attributeOf<ffi::Span<const std::int64_t>>("lif_network", attributes, "needs");
    const NetworkArrays<Result> to = takeCotangents(network, needs, result_arrays);
    const std::vector<Result> overwritten = takeOverwritten(network, attributes, result_arrays);
    finish(operand_arrays, result_arrays);
    refuseLeftOnTiles(network, recorded, result_arrays.groups());
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < result_arrays.groups(); ++group) {
      BackwardPass(network, recorded, to, overwritten, group, threads).run();
    }
  });
}

}  // namespace
}  // namespace snnjax

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    snnjax_lif_network_backward, snnjax::lifNetworkBackward,
    xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs());
