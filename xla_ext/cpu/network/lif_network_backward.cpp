// The target `snnjax_lif_network_backward`.
#include <algorithm>
#include <bit>
#include <deque>

#include "lif_network.hpp"
#include "readout_backward.hpp"

namespace snnjax {
namespace {

using Arguments = lif_network::BackwardArguments<Operand>;
using Cotangents = lif_network::BackwardResults<Result>;

// What a table of single arrays cannot say. Rows that are overwritten consist of whole vectors.
void checkTogether(const Network& network, const Arguments& arguments, const Cotangents& to) {
  const auto need = [](bool holds, const char* name, const char* expected, const char* actual) {
    if (!holds) throw misfit("lif_network", name, expected, actual);
  };
  need(!network.hasInt8(), "weights", "be floating for a gradient", "int8");
  for (std::size_t l = 0; l < network.size(); ++l) {
    const lif_network::LayerNumbers& fields = network.fields().of_layers[l];
    const lif_network::LayerRecord<Operand>& record = arguments.record.layers[l];
    // What follows from given currents is computed again.
    const bool is_given = l == 0 && network.hasCurrents() && !network.isRecurrent(l);
    const int records =
        static_cast<int>(static_cast<bool>(record.v)) + static_cast<int>(static_cast<bool>(record.listed_v));
    need(records == (is_given ? 0 : 1), "record.layers.v",
         "be given for all neurons or for those listed, or else follow from currents", "something else");
    // The second states cannot be recomputed without the currents that reach them, nor a gain's cotangent where some
    // were under way.
    const lif_network::LayerConstants<Operand>& constants = arguments.operands.constants[l];
    const bool needs_current = (fields.needs_w && constants.glif.second_state.w_gain) ||
                               (constants.synaptic_delays && to.operands.constants[l].glif.gain);
    need(!needs_current || is_given || record.current, "record.layers.current",
         "be given with second states or synaptic delays", "nothing");
    need(!arguments.g.spikes[l] || fields.capacity < 0 || arguments.results.spikes[l], "results.spikes.ids",
         "be given with cotangents of lists", "nothing");
    const Index neurons = network.sizes().neurons[l];
    need(!to.g_v[l] || strideOf(neurons) == neurons, "g_v", "be given for layers of whole vectors", "another one");
  }
}

class BackwardPass {
 public:
  BackwardPass(const Network& network, const Arguments& arguments, const Cotangents& to, Index group,
               const Threads& threads)
      : network_(network),
        from_(arguments),
        to_(to.operands),
        overwritten_(to.g_v),
        group_(group),
        threads_(threads),
        ends_(network.ends(group)),
        extent_{network.sizes().steps, network.sizes().batch, ends_.data()},
        source_(network.source(group)) {}

  void run() {
    const Index rows = extent_.rows(), num_inputs = network_.sizes().inputs;
    const lif_network::Record<Operand>& record = from_.record;
    if (record.input_bits) {
      input_bits_ = GivenBits(record.input_bits.at<std::uint8_t>(group_), rows, num_inputs);
      recorded_inputs_ = std::make_unique<RecordedSource>(*source_, input_bits_.row(0),
                                                          record.input_is_binary.at<std::uint8_t>(group_), num_inputs);
    }
    const RowSource& inputs = recorded_inputs_ ? *recorded_inputs_ : *source_;
    layers_ = network_.layers(group_, threads_);
    for (std::size_t l = 0; l < network_.size(); ++l) {
      const Index neurons = network_.sizes().neurons[l];
      const lif_network::LayerRecord<Operand>& own = record.layers[l];
      spikes_.emplace_back(own.spikes.at<std::uint8_t>(group_), rows, neurons);
      listed_.push_back(own.listed ? GivenBits(own.listed.at<std::uint8_t>(group_), rows, neurons) : GivenBits());
      sources_.emplace_back(spikes_.back().row(0), neurons);
    }
    if (network_.hasReadout()) {
      layers_.push_back(network_.readout(group_));
      list(network_.size(), sources_.back());
      runReadout();
    }
    for (std::size_t l = network_.size(); l-- > 0;) {
      list(l, l == 0 ? inputs : sources_[l - 1]);
      runLayer(l);
    }
    if (inputCotangents() && !network_.hasCurrents()) writeInputs();
  }

 private:
  // What reaches the weights of a layer or of the readout, and how it comes there.
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
    if (layer.has_currents) {
      reaching_.lists = std::make_unique<const SpikeLists>(spiking, 0, 0, batch, nullptr, threads_);
      return;
    }
    const auto listOf = [&](const RowSource& from, Index width, const std::int32_t* ends) {
      return std::make_unique<const SpikeLists>(from, rows, width, batch, ends, threads_);
    };
    if (layer.delays != nullptr) {
      const Index inputs = layer.delays->inputs();
      reaching_.sent = listOf(spiking, inputs, ends_.data());
      reaching_.arrivals =
          std::make_unique<const Arrivals>(*reaching_.sent, network_.pending(l, group_), extent_, *layer.delays,
                                           static_cast<bool>(to_.linears[l].delays), threads_);
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
    if (l == network_.size() || !to_.linears[l].delays) return false;
    return layers_[l].pooling == nullptr && layers_[l].convolution == nullptr;
  }

  // Whether anything needs the cotangents of what was sent to a layer, or of what arrived there.
  bool sendsDown(std::size_t l) const {
    if (l == network_.size()) return true;
    if (layers_[l].has_currents) return false;
    if (l > 0 || inputCotangents() || pendingRows(to_.first[l]) > 0) return true;
    return to_.linears[l].delays && !isSplit(l);
  }

  // Of dense ones or of the values of lists.
  const Result& inputCotangents() const { return to_.inputs.values ? to_.inputs.values : to_.inputs.array; }

  void runReadout() {
    const lif_network::ReadoutOperands<Result>& to = to_.readout;
    ReadoutBackward pass{
        .layer = layers_.back(),
        .inputs = *reaching_.lists,
        .extent = extent_,
        .first_v = network_.firstReadout(group_),
        .output = from_.results.output.numbers(group_),
        .g_output = from_.g.output.numbers(group_),
        .g_last_v = from_.g.last_readout.numbers(group_),
        .g_weights = to.linear.weights.array.numbers(group_),
        .g_bias = to.linear.bias.numbers(group_),
        .g_decay = to.decay.numbers(group_),
        .g_gain = to.gain.numbers(group_),
        .g_first_v = to_.first_readout.numbers(group_),
        .g_v = {},
    };
    runReadoutBackward(pass, threads_);
    sendDown(network_.size(), std::move(pass.g_v));
  }

  // Dense weights send back while the layer below runs; poolings, convolutions and few rows of any, before.
  void sendDown(std::size_t l, KeptRows g_v) {
    const Layer& layer = layers_[l];
    const Rows<const float> g = g_v.asConst();
    const bool is_dense = layer.delays == nullptr && layer.pooling == nullptr && layer.convolution == nullptr;
    if (is_dense && !isReadInPlace(layer.weights, extent_.rows())) {
      g_above_ = std::move(g_v);
      above_ = {layer.weights, layer.constants.outerGain(), g};
      if (l < network_.size()) {
        const lif_network::LayerNumbers& fields = network_.fields().of_layers[l];
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
    delayed_ = std::make_unique<const DelayedCotangents>(delays, extent_, sent_.g, underWay(from_.g.last[l], group_));
    sent_.delayed = delayed_.get();
    if (to_.linears[l].delays && !isSplit(l)) {
      delayed_->sumDelays(*reaching_.arrivals, to_.linears[l].delays.numbers(group_), threads_);
    }
    writePending(delays, to_.first[l]);
  }

  // The cotangents of what was under way before the first step.
  void writePending(const Delays& delays, const lif_network::LayerState<Result>& first) {
    const Index inputs = delays.inputs();
    threads_.run(pendingRows(first), [&](Index row, Index) {
      std::vector<float> g(static_cast<std::size_t>(inputs));
      for (Index sample = 0; sample < extent_.batch; ++sample) {
        std::fill(g.begin(), g.end(), 0.0F);
        delayed_->addTo(row - delays.rows(), sample, 0, inputs, g.data());
        first.pending.numbers(group_).write((row * extent_.batch + sample) * inputs, inputs, g.data());
      }
    });
  }

  void runLayer(std::size_t l) {
    const lif_network::Cotangents<Operand>& g = from_.g;
    const lif_network::Weighted<Result>& to = to_.linears[l];
    const lif_network::LayerConstants<Result>& to_constants = to_.constants[l];
    const lif_network::LayerRecord<Operand>& record = from_.record.layers[l];
    LayerBackward pass{
        .layer = layers_[l],
        .inputs = *reaching_.lists,
        .split = isSplit(l) ? layers_[l].delays.get() : nullptr,
        .currents = layers_[l].has_currents ? network_.currents(group_) : Numbers(),
        .extent = extent_,
        .first = numbersOf(network_.first(l), group_),
        .g_last = numbersOf(g.last[l], group_),
        .record = record.v.numbers(group_),
        .listed_record = record.listed_v.numbers(group_),
        .record_current = record.current.at<float>(group_),
        .needs_w = network_.fields().of_layers[l].needs_w,
        .spikes = spikes_[l],
        .listed = listed_[l],
        .above = above_,
        .sent = sent_,
        // Those that reach a layer's spikes past the layer above, of recorded spikes; absent without any.
        .g_spikes = layers_[l].hasLists() ? Numbers() : g.spikes[l].numbers(group_),
        .g_lists = layers_[l].hasLists() && g.spikes[l] ? listedCotangents(l) : nullptr,
        .g_counts = g.counts[l].numbers(group_),
        .g_currents = layers_[l].has_currents ? to_.inputs.array.numbers(group_) : WritableNumbers(),
        .g_weights = to.weights.array.numbers(group_),
        .g_recurrent = to_constants.recurrent.array.numbers(group_),
        .g_recurrent_delays = to_constants.recurrent_delays.numbers(group_),
        .g_synaptic_delays = to_constants.synaptic_delays.numbers(group_),
        .g_bias = to.bias.numbers(group_),
        .g_factor = to.factor.numbers(group_),
        .g_delays = to.delays.numbers(group_),
        .g_constants = {},
        .g_first = numbersOf(to_.first[l], group_),
        .keeps_g_v = sendsDown(l),
        .g_v = KeptRows({overwritten_[l].at<float>(group_), network_.sizes().neurons[l]}),
    };
    for (unsigned i = 0; i < kGlifConstants; ++i) {
      pass.g_constants.at(i) = to_constants.glif.at(i).numbers(group_);
    }
    runBackward(pass, threads_);
    if (!layers_[l].has_currents) sendDown(l, std::move(pass.g_v));
  }

  std::unique_ptr<const ListedCotangents> listedCotangents(std::size_t l) const {
    return std::make_unique<const ListedCotangents>(from_.g.spikes[l].numbers(group_), layers_[l].capacity, spikes_[l],
                                                    listed_[l], extent_.rows(), threads_);
  }

  // The cotangents of the inputs: of dense ones all, of lists those of the values.
  void writeInputs() {
    const auto* lists = dynamic_cast<const ListSource*>(source_.get());
    const WritableNumbers to = inputCotangents().numbers(group_);
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
  const Arguments& from_;
  const lif_network::Operands<Result>& to_;
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
  Above above_{{}, nullptr, {nullptr, 0}};
  SentBack sent_{{nullptr, 0}, nullptr};
  std::unique_ptr<const DelayedCotangents> delayed_;
};

void lifNetworkBackward(Call<Arguments, Cotangents, NetworkFields>& call) {
  const Network network(call.numbers, call.from.operands);
  network.check(call.from, call.operands);
  network.checkBits(call.from.record);
  network.checkCotangents(call.to, call.results);
  checkTogether(network, call.from, call.to);
  needSameGroups(call.operands, call.results);
  for (Index group = 0; group < call.groups(); ++group) {
    BackwardPass(network, call.from, call.to, group, call.threads).run();
  }
}

}  // namespace
}  // namespace snnjax

SNNJAX_TARGET(snnjax_lif_network_backward, "lif_network", snnjax::lifNetworkBackward);
