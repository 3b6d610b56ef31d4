// The target `snnjax_lif_network`.
#include <algorithm>
#include <deque>

#include "lif_network.hpp"
#include "spike_lists.hpp"

namespace snnjax {
namespace {

// In the order of the leaves of `Results` and, where `records`, of `Record` in snnjax/ops/_lif_network_reference.py.
struct Results {
  struct LayerArrays {
    Array counts, dropped, last_v, last_w, last_spikes;
    Array dense_spikes, ids, values, num_spikes, num_listed;  // recorded spikes, dense or as lists
    Array record_v, record_w, record_current, record_spikes, record_listed;
  };

  Array output, last_readout, record_inputs, record_is_binary;
  std::vector<LayerArrays> layers;

  Results(const Network& network, bool records, Arrays& arrays) : layers(network.size()) {
    const Arrays::Types types{network.type()};
    const Index steps = network.steps(), batch = network.batch();
    const bool has_readout = network.fields().has_readout;
    const Index outputs = has_readout ? network.outputs() : network.neurons(network.size() - 1);
    output = arrays.take("output", {steps, batch, outputs}, types);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      layers[l].counts = arrays.take("counts", {batch, network.neurons(l)}, {ffi::F32});
    }
    for (LayerArrays& layer : layers) layer.dropped = arrays.take("dropped", {batch}, {ffi::S32});
    for (std::size_t l = 0; l < layers.size(); ++l) {
      if (network.fields().layers[l].records_spikes) takeSpikes(network, l, arrays);
    }
    for (std::size_t l = 0; l < layers.size(); ++l) {
      layers[l].last_v = arrays.take("state.v", {batch, network.neurons(l)}, kWide);
      if (network.fields().layers[l].hasSecondState()) {
        layers[l].last_w = arrays.take("state.w", {batch, network.neurons(l)}, kWide);
      }
      if (!network.fields().layers[l].is_recurrent) continue;
      layers[l].last_spikes = arrays.take("state.spikes", {batch, network.neurons(l)}, types);
    }
    if (has_readout) last_readout = arrays.take("state.readout", {batch, network.outputs()}, kWide);
    if (records && !network.fields().has_lists) {
      record_inputs = arrays.take("record.inputs", {steps, batch, (network.inputs() + 7) / 8}, {ffi::U8});
      record_is_binary = arrays.take("record.is_binary", {steps, batch}, {ffi::PRED});
    }
    for (std::size_t l = 0; records && l < layers.size(); ++l) {
      const Index bytes = (network.neurons(l) + 7) / 8;
      const Arrays::Shape all{steps, batch, network.neurons(l)};
      const bool is_wide = network.fields().layers[l].hasSecondState();
      layers[l].record_v = arrays.take("record.v", all, is_wide ? kWide : types);
      if (network.fields().layers[l].records_w) layers[l].record_w = arrays.take("record.w", all, {ffi::F32});
      if (network.fields().layers[l].records_current) {
        layers[l].record_current = arrays.take("record.current", all, {ffi::F32});
      }
      layers[l].record_spikes = arrays.take("record.spikes", {steps, batch, bytes}, {ffi::U8});
      if (network.fields().layers[l].capacity < 0) continue;
      layers[l].record_listed = arrays.take("record.listed", {steps, batch, bytes}, {ffi::U8});
    }
  }

 private:
  void takeSpikes(const Network& network, std::size_t l, Arrays& arrays) {
    const Arrays::Types types{network.type()};
    const Index steps = network.steps(), batch = network.batch(), capacity = network.fields().layers[l].capacity;
    LayerArrays& layer = layers[l];
    if (capacity < 0) {
      layer.dense_spikes = arrays.take("spikes", {steps, batch, network.neurons(l)}, types);
      return;
    }
    layer.ids = arrays.take("spikes.ids", {steps, batch, capacity}, {idType(network.neurons(l))});
    layer.values = arrays.take("spikes.values", {steps, batch, capacity}, types);
    layer.num_spikes = arrays.take("spikes.num_spikes", {steps, batch}, {ffi::S32});
    layer.num_listed = arrays.take("spikes.num_listed", {steps, batch}, {ffi::S32});
  }
};

// The dense form of rows of spikes.
void writeDense(const Bits& spikes, Index rows, Index neurons, const Numbers& to, const Threads& threads) {
  constexpr Index kRowsPerTask = 64;
  threads.run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](Index task, Index) {
    std::vector<float> dense(static_cast<std::size_t>(to.is_bfloat16 ? neurons : 0));
    for (Index row = task * kRowsPerTask; row < std::min((task + 1) * kRowsPerTask, rows); ++row) {
      float* own = to.is_bfloat16 ? dense.data() : static_cast<float*>(to.data) + row * neurons;
      kernels().expandBits(spikes.row(row), neurons, own);
      if (to.is_bfloat16) to.write(row * neurons, neurons, own);
    }
  });
}

class ForwardPass {
 public:
  ForwardPass(const Network& network, const Results& results, Index group, const Threads& threads)
      : network_(network),
        results_(results),
        group_(group),
        threads_(threads),
        ends_(network.ends(group)),
        extent_{network.steps(), network.batch(), ends_.data()} {}

  void run() {
    const std::unique_ptr<RowSource> source = network_.source(group_);
    lists_.emplace_back(*source, extent_.rows(), network_.inputs(), extent_.batch, ends_.data(), threads_);
    if (results_.record_inputs) recordInputs();
    for (std::size_t l = 0; l < network_.size(); ++l) runLayer(l);
    if (network_.fields().has_readout) runReadout();
  }

 private:
  void recordInputs() {
    const SpikeLists& inputs = lists_.back();
    auto* is_binary = results_.record_is_binary.at<std::uint8_t>(group_);
    Bits bits = Bits::over(results_.record_inputs.at<std::uint8_t>(group_), extent_.rows(), network_.inputs());
    threads_.run(extent_.steps, [&](Index step, Index) {
      std::fill_n(bits.row(step * extent_.batch), extent_.batch * bits.words(), std::uint64_t{0});
      std::vector<float> dense(static_cast<std::size_t>(network_.inputs()));
      for (Index row = step * extent_.batch; row < (step + 1) * extent_.batch; ++row) {
        const SpikeRow& listed = *inputs.row(row);
        is_binary[row] = listed.values == nullptr;
        if (listed.is_dense) is_binary[row] = is_binary[row] && setDense(inputs, row, dense.data(), bits.row(row));
        for (std::uint32_t k = 0; k < listed.count; ++k) {
          bits.row(row)[listed.ids[k] / 64] |= std::uint64_t{1} << (listed.ids[k] % 64);
        }
      }
    });
    writeBits(bits, extent_.rows(), network_.inputs(), results_.record_inputs.at<std::uint8_t>(group_));
  }

  // The bits of a row that is too full for a list; false if not all its entries are 0 or 1.
  bool setDense(const SpikeLists& inputs, Index row, float* dense, std::uint64_t* bits) const {
    inputs.expand(row, 1, dense);
    for (Index i = 0; i < network_.inputs(); ++i) {
      if (dense[i] != 0.0F && dense[i] != 1.0F) return false;
      if (dense[i] != 0.0F) bits[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    return true;
  }

  void runLayer(std::size_t l) {
    const Layer layer = network_.layer(l, group_);
    const Results::LayerArrays& to = results_.layers[l];
    const Index rows = extent_.rows(), neurons = layer.neurons();
    auto* bytes = to.record_spikes ? to.record_spikes.at<std::uint8_t>(group_) : nullptr;
    spikes_.push_back(Bits::over(bytes, rows, neurons));
    sources_.emplace_back(spikes_.back().row(0), neurons);
    const SpikeLists& inputs = lists_.back();
    if (layer.isRecurrent()) {  // fills its lists while it runs
      lists_.emplace_back(sources_.back(), rows, neurons, extent_.batch, ends_.data(), forwardBlocks(extent_.batch));
    }
    LayerForward pass{
        .layer = layer,
        .inputs = inputs,
        .extent = extent_,
        .first_v = network_.firstV(l, group_),
        .first_w = network_.firstW(l, group_),
        .first_spikes = network_.firstSpikes(l, group_),
        .record = to.record_v.numbers(group_),
        .record_w = to.record_w.at<float>(group_),
        .record_current = to.record_current.at<float>(group_),
        .last_v = to.last_v.numbers(group_),
        .last_w = to.last_w.numbers(group_),
        .last_spikes = to.last_spikes.numbers(group_),
        .counts = to.counts.at<float>(group_),
        .dropped = to.dropped.at<std::int32_t>(group_),
        .num_spikes = to.num_spikes.at<std::int32_t>(group_),
        .spikes = spikes_.back(),
        .near = {},
        .lists = layer.isRecurrent() ? &lists_.back() : nullptr,
    };
    std::fill_n(pass.dropped, extent_.batch, 0);
    if (pass.num_spikes != nullptr) std::fill_n(pass.num_spikes, extent_.rows(), 0);
    runForward(pass, threads_);
    write(l, layer, pass);
    const bool is_last = l + 1 == network_.size() && !network_.fields().has_readout;
    if (layer.isRecurrent() || is_last) return;
    lists_.emplace_back(sources_.back(), rows, neurons, extent_.batch, nullptr, threads_);
  }

  void write(std::size_t l, const Layer& layer, const LayerForward& pass) {
    const Results::LayerArrays& to = results_.layers[l];
    const Index rows = extent_.rows(), neurons = layer.neurons();
    const bool is_output = l + 1 == network_.size() && !network_.fields().has_readout;
    if (is_output) writeDense(pass.spikes, rows, neurons, results_.output.numbers(group_), threads_);
    if (to.dense_spikes) writeDense(pass.spikes, rows, neurons, to.dense_spikes.numbers(group_), threads_);
    if (to.ids) writeLists(pass, neurons, layer.capacity, to);
    if (to.record_spikes) writeBits(pass.spikes, rows, neurons, to.record_spikes.at<std::uint8_t>(group_));
    if (!to.record_listed) return;
    Bits listed(rows, neurons);
    for (Index i = 0; i < rows * listed.words(); ++i) listed.row(0)[i] = pass.spikes.row(0)[i] | pass.near.row(0)[i];
    writeBits(listed, rows, neurons, to.record_listed.at<std::uint8_t>(group_));
  }

  void writeLists(const LayerForward& pass, Index neurons, Index capacity, const Results::LayerArrays& to) {
    threads_.run(extent_.rows(), [&](Index row, Index) {
      const Index listed = writeList(pass.spikes.row(row), pass.near.row(row), neurons, capacity, row,
                                     {to.ids.at(group_), neurons}, to.values.numbers(group_));
      to.num_listed.at<std::int32_t>(group_)[row] = static_cast<std::int32_t>(listed);
    });
  }

  void runReadout() {
    const Layer layer = network_.readout(group_);
    Bits none(extent_.rows(), layer.neurons());
    LayerForward pass{
        .layer = layer,
        .inputs = lists_.back(),
        .extent = extent_,
        .first_v = network_.firstReadout(group_),
        .first_w = {},
        .first_spikes = {},
        .record = results_.output.numbers(group_),
        .record_w = nullptr,
        .record_current = nullptr,
        .last_v = results_.last_readout.numbers(group_),
        .last_w = {},
        .last_spikes = {},
        .counts = nullptr,
        .dropped = nullptr,
        .num_spikes = nullptr,
        .spikes = none,
        .near = {},
        .lists = nullptr,
    };
    runForward(pass, threads_);
  }

  const Network& network_;
  const Results& results_;
  const Index group_;
  const Threads& threads_;
  const std::vector<std::int32_t> ends_;
  const Extent extent_;
  // The spikes of each layer and their lists; deques, because a list keeps a reference to what it was made from.
  std::deque<Bits> spikes_;
  std::deque<BitSource> sources_;
  std::deque<SpikeLists> lists_;
};

ffi::Error lifNetwork(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                      ffi::Dictionary attributes) {
  return guarded("lif_network", [&] {
    const NetworkFields fields = NetworkFields::read(attributes);
    Arrays operand_arrays("lif_network", operands), result_arrays("lif_network", results);
    const Network network(fields, operand_arrays);
    const Results to(network, booleanOf(attributes, "records"), result_arrays);
    Arrays::finish(operand_arrays, result_arrays);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < result_arrays.groups(); ++group) ForwardPass(network, to, group, threads).run();
  });
}

}  // namespace
}  // namespace snnjax

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    snnjax_lif_network, snnjax::lifNetwork,
    xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs());
