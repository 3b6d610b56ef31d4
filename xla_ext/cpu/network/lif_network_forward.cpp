// The target `snnjax_lif_network`.
#include <algorithm>
#include <deque>
#include <functional>

#include "lif_network.hpp"

namespace snnjax {
namespace {

using ForwardResults = lif_network::ForwardResults<Result>;

// The dense form of rows of spikes.
void writeDense(const Bits& spikes, Index rows, Index neurons, const WritableNumbers& to, const Threads& threads) {
  constexpr Index kRowsPerTask = 64;
  threads.run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](Index task, Index) {
    std::vector<float> dense(static_cast<std::size_t>(to.is_bfloat16 ? neurons : 0));
    for (Index row = task * kRowsPerTask; row < std::min((task + 1) * kRowsPerTask, rows); ++row) {
      float* own = to.is_bfloat16 ? dense.data() : to.float32() + row * neurons;
      kernels().expandBits(spikes.row(row), neurons, own);
      if (to.is_bfloat16) to.write(row * neurons, neurons, own);
    }
  });
}

class ForwardPass {
 public:
  ForwardPass(const Network& network, const ForwardResults& results, Index group, const Threads& threads)
      : network_(network),
        results_(results),
        group_(group),
        threads_(threads),
        ends_(network.ends(group)),
        extent_{network.sizes().steps, network.sizes().batch, ends_.data()},
        inputs_(network.sizes().inputs) {}

  void run() {
    const std::unique_ptr<RowSource> source = network_.source(group_);
    if (!network_.hasCurrents()) {
      lists_.emplace_back(*source, extent_.rows(), inputs_, extent_.batch, ends_.data(), threads_);
      if (results_.record.input_bits) recordInputs();
    }
    spiking_ = source.get();
    layers_ = network_.layers(group_, threads_);
    for (std::size_t l = 0; l < network_.size(); ++l) runLayer(l);
    if (network_.hasReadout()) runReadout();
  }

 private:
  void recordInputs() {
    const SpikeLists& inputs = lists_.back();
    auto* is_binary = results_.record.input_is_binary.at<std::uint8_t>(group_);
    Bits bits = Bits::over(results_.record.input_bits.at<std::uint8_t>(group_), extent_.rows(), inputs_);
    threads_.run(extent_.steps, [&](Index step, Index) {
      std::vector<float> dense;
      std::vector<std::uint8_t> marks(static_cast<std::size_t>(bits.words() * 64));
      for (Index row = step * extent_.batch; row < (step + 1) * extent_.batch; ++row) {
        const SpikeRow& listed = *inputs.row(row);
        is_binary[row] = listed.values == nullptr;
        if (listed.is_dense) {
          is_binary[row] = kernels().markOnes(inputs.dense(row, 1, dense).data, inputs_, bits.row(row));
        } else {
          kernels().markIds(listed.ids, listed.count, bits.words(), marks.data(), bits.row(row));
        }
      }
    });
    bits.writeTo(results_.record.input_bits.at<std::uint8_t>(group_), extent_.rows(), inputs_);
  }

  void runLayer(std::size_t l) {
    const Layer& layer = layers_.front();
    const lif_network::Results<Result>& to = results_.results;
    const lif_network::LayerState<Result>& last = to.last[l];
    if (layer.delays != nullptr) delay(l, *layer.delays, last);
    const SpikeLists* inputs = layer.has_currents ? nullptr : &inputsOf(layer);
    const lif_network::LayerRecord<Result>& record = results_.record.layers[l];
    const Index rows = extent_.rows(), neurons = layer.neurons();
    auto* bytes = record.spikes.at<std::uint8_t>(group_);
    spikes_.push_back(Bits::over(bytes, rows, neurons));
    sources_.emplace_back(spikes_.back().row(0), neurons);
    spiking_ = &sources_.back();
    if (layer.isRecurrent()) {  // fills its lists while it runs
      lists_.emplace_back(sources_.back(), rows, neurons, extent_.batch, ends_.data(), forwardBlocks(extent_.batch));
    }
    LayerForward pass{
        .layer = layer,
        .inputs = inputs,
        .currents = layer.has_currents ? network_.currents(group_) : Numbers(),
        .extent = extent_,
        .first = numbersOf(network_.first(l), group_),
        .record = record.v.numbers(group_),
        .listed_record = record.listed_v.numbers(group_),
        .record_current = record.current.at<float>(group_),
        .last = numbersOf(last, group_),
        .counts = to.counts[l].length(0) > 0 ? to.counts[l].at<float>(group_) : nullptr,
        .dropped = to.dropped[l].at<std::int32_t>(group_),
        .num_spikes = to.spikes[l].num_spikes.at<std::int32_t>(group_),
        .spikes = spikes_.back(),
        .near = {},
        .lists = layer.isRecurrent() ? &lists_.back() : nullptr,
    };
    std::fill_n(pass.dropped, extent_.batch, 0);
    if (pass.num_spikes != nullptr) std::fill_n(pass.num_spikes, extent_.rows(), 0);
    runForward(pass, threads_);
    if (pass.last.earlier_spikes) {
      writeUnderWay(*pass.lists, recurrentUnderWay(layer, pass.first), extent_, *layer.recurrent_delays,
                    earlierRows(layer), pass.last.earlier_spikes, threads_);
    }
    write(l, layer, pass);
    if (!layer.isRecurrent() && isListedFor(l + 1)) {
      lists_.emplace_back(sources_.back(), rows, neurons, extent_.batch, nullptr, threads_);
    }
    forget();
  }

  // Whether a layer, or the readout, reads lists of the spikes below it.
  bool isListedFor(std::size_t l) const {
    if (l == network_.size() && !network_.hasReadout()) return false;
    const ConnectionShape& connection = network_.fields().connections[l];
    return !connection.pooling || connection.delay_rows > 0;
  }

  // A layer and what has reached it are not read after it: their memory serves the next one.
  void forget() {
    while (lists_.size() > 1) lists_.pop_front();
    pooled_.clear();
    arriving_.clear();
    arrivals_.clear();
    layers_.pop_front();
  }

  // From the lists of what is sent to a layer, those of what arrives; what is under way at the end is written.
  void delay(std::size_t l, const Delays& delays, const lif_network::LayerState<Result>& last) {
    const UnderWay pending = network_.pending(l, group_);
    const SpikeLists& sent = lists_.back();
    arrivals_.emplace_back(sent, pending, extent_, delays, false, threads_);
    if (pendingRows(last) > 0) {
      writeUnderWay(sent, pending, extent_, delays, delays.rows(), last.pending.numbers(group_), threads_);
    }
    spiking_ = &arriving_.emplace_back(arrivals_.back());
    if (network_.fields().connections[l].pooling) return;
    lists_.emplace_back(*spiking_, extent_.rows(), delays.inputs(), extent_.batch, ends_.data(), threads_);
  }

  // The lists of what reaches the weights of the next layer.
  const SpikeLists& inputsOf(const Layer& layer) {
    if (layer.pooling == nullptr) return lists_.back();
    pooled_.emplace_back(*spiking_, *layer.pooling);
    lists_.emplace_back(pooled_.back(), extent_.rows(), layer.weights.inputs, extent_.batch, ends_.data(), threads_);
    return lists_.back();
  }

  void write(std::size_t l, const Layer& layer, const LayerForward& pass) {
    const schema::Spikes<Result>& to = results_.results.spikes[l];
    const lif_network::LayerRecord<Result>& record = results_.record.layers[l];
    const Index rows = extent_.rows(), neurons = layer.neurons();
    if (to.array) writeDense(pass.spikes, rows, neurons, to.array.numbers(group_), threads_);
    if (to.ids) writeLists(pass, neurons, layer.capacity, to);
    if (record.spikes) pass.spikes.writeTo(record.spikes.at<std::uint8_t>(group_), rows, neurons);
    if (!record.listed) return;
    auto* bytes = record.listed.at<std::uint8_t>(group_);
    Bits listed = Bits::over(bytes, rows, neurons);
    const Index numbers = extent_.batch * listed.words();
    threads_.run(extent_.steps, [&](Index step, Index) {
      const std::uint64_t* spikes = pass.spikes.row(step * extent_.batch);
      std::transform(spikes, spikes + numbers, pass.near.row(step * extent_.batch), listed.row(step * extent_.batch),
                     std::bit_or<>());
    });
    listed.writeTo(bytes, rows, neurons);
  }

  void writeLists(const LayerForward& pass, Index neurons, Index capacity, const schema::Spikes<Result>& to) {
    constexpr Index kRowsPerTask = 8;
    const Index rows = extent_.rows();
    threads_.run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](Index task, Index) {
      ListWriter writer(neurons);
      for (Index row = task * kRowsPerTask; row < std::min((task + 1) * kRowsPerTask, rows); ++row) {
        const Index listed = writer.write(pass.spikes.row(row), pass.near.row(row), capacity, row, to.ids.at(group_),
                                          to.values.numbers(group_));
        to.num_listed.at<std::int32_t>(group_)[row] = static_cast<std::int32_t>(listed);
      }
    });
  }

  void runReadout() {
    const Layer layer = network_.readout(group_);
    Bits none(extent_.rows(), layer.neurons());
    LayerForward pass{
        .layer = layer,
        .inputs = &inputsOf(layer),
        .currents = {},
        .extent = extent_,
        .first = {},
        .record = results_.results.output.numbers(group_),
        .listed_record = {},
        .record_current = nullptr,
        .last = {},
        .counts = nullptr,
        .dropped = nullptr,
        .num_spikes = nullptr,
        .spikes = none,
        .near = {},
        .lists = nullptr,
    };
    pass.first.v = network_.firstReadout(group_);
    pass.last.v = results_.results.last_readout.numbers(group_);
    runForward(pass, threads_);
  }

  const Network& network_;
  const ForwardResults& results_;
  const Index group_;
  const Threads& threads_;
  const std::vector<std::int32_t> ends_;
  const Extent extent_;
  const Index inputs_;
  std::deque<Layer> layers_;  // the current one and those behind it
  // The spikes of each layer; deques, because a list keeps a reference to what it was made from.
  std::deque<Bits> spikes_;
  std::deque<BitSource> sources_;
  // What reaches the current layer.
  std::deque<Arrivals> arrivals_;
  std::deque<ArrivingSource> arriving_;
  std::deque<PooledSource> pooled_;
  std::deque<SpikeLists> lists_;
  const RowSource* spiking_ = nullptr;  // what comes to the next layer
};

void lifNetwork(Call<lif_network::Operands<Operand>, ForwardResults, NetworkFields>& call) {
  const Network network(call.numbers, call.from);
  network.check(call.from, call.operands);
  network.check(call.to, call.results);
  network.checkBits(call.to.record);
  needSameGroups(call.operands, call.results);
  for (Index group = 0; group < call.groups(); ++group) ForwardPass(network, call.to, group, call.threads).run();
}

}  // namespace
}  // namespace snnjax

SNNJAX_TARGET(snnjax_lif_network, "lif_network", snnjax::lifNetwork);
