// The targets of `select_spikes`: from membranes to lists of spikes, and the surrogate gradient back.
#include "operand_rows.hpp"
#include "selection.hpp"
#include "spare_memory.hpp"
#include "spike_lists.hpp"

namespace snnjax {
namespace {

using Floats = std::vector<float>;

// Runs work(first, behind) over ranges of rows of so many numbers each.
template <typename Work>
void eachRange(Index rows, Index numbers, const Threads& threads, Work work) {
  constexpr Index kNumbersPerTask = 1 << 15;  // fewer take less time than waking another thread
  const Index some = std::max<Index>(1, kNumbersPerTask / std::max<Index>(numbers, 1));
  threads.run((rows + some - 1) / some,
              [&](Index task, Index) { work(task * some, std::min(task * some + some, rows)); });
}

class Forward {
 public:
  Forward(Arrays& operands, Arrays& results)
      : rows_(operands.nextLength(0)),
        neurons_(operands.nextLength(1)),
        capacity_(results.nextLength(1)),
        v_(OperandRows::whole(operands, "v", rows_, neurons_, kFloating)),
        threshold_(OperandRows::any(operands, "threshold", rows_, neurons_, {v_.type()})),
        second_threshold_(OperandRows::any(operands, "second_threshold", rows_, neurons_, {v_.type()})),
        ids_(results.take("ids", {rows_, capacity_}, {idType(neurons_)})),
        values_(results.take("values", {rows_, capacity_}, {v_.type()})),
        num_spikes_(results.take("num_spikes", {rows_}, {ffi::S32})),
        num_listed_(results.take("num_listed", {rows_}, {ffi::S32})) {}

  void run(Index group, const Threads& threads) const {
    eachRange(rows_, neurons_, threads, [&](Index first, Index behind) { list(group, first, behind); });
  }

 private:
  void list(Index group, Index first, Index behind) const {
    const Index words = (neurons_ + 63) / 64;
    Selection selection(capacity_, words);
    std::vector<std::uint64_t> spikes(static_cast<std::size_t>(words)), near(spikes.size());
    Floats v_scratch, scratch, second_scratch;
    const float* threshold = nullptr;
    const float* second_threshold = nullptr;
    for (Index row = first; row < behind; ++row) {
      const float* v = v_.read(group, row, 0, neurons_, v_scratch);
      if (row == first || threshold_.isPerRow()) threshold = threshold_.read(group, row, 0, neurons_, scratch);
      if (row == first || second_threshold_.isPerRow()) {
        second_threshold = second_threshold_.read(group, row, 0, neurons_, second_scratch);
      }
      kernels().mark(v, threshold, second_threshold, neurons_, spikes.data(), near.data());
      num_spikes_.at<std::int32_t>(group)[row] = static_cast<std::int32_t>(selection.count(spikes.data()));
      selection.cut(spikes.data(), near.data(), [v](Index id) { return v[id]; });
      const Index listed = writeList(spikes.data(), near.data(), neurons_, capacity_, row, {ids_.at(group), neurons_},
                                     values_.numbers(group));
      num_listed_.at<std::int32_t>(group)[row] = static_cast<std::int32_t>(listed);
    }
  }

  Index rows_, neurons_, capacity_;
  OperandRows v_, threshold_, second_threshold_;
  Array ids_, values_, num_spikes_, num_listed_;
};

class Backward {
 public:
  Backward(Arrays& operands, Arrays& results, SurrogateForm surrogate)
      : rows_(operands.nextLength(0)),
        neurons_(operands.nextLength(1)),
        surrogate_(surrogate),
        v_(OperandRows::whole(operands, "v", rows_, neurons_, kFloating)),
        threshold_(OperandRows::any(operands, "threshold", rows_, neurons_, {v_.type()})),
        capacity_(operands.nextLength(1)),
        ids_(operands.take("ids", {rows_, capacity_}, {idType(neurons_)})),
        g_(operands.take("g", {rows_, capacity_}, {v_.type()})),
        g_v_(v_.cotangent(results, "g_v")),
        g_threshold_(threshold_.cotangent(results, "g_threshold")) {}

  void run(Index group, const Threads& threads) const {
    const Borrowed<float> products(rows_ * capacity_);
    eachRange(rows_, neurons_, threads, [&](Index first, Index behind) {
      Floats scratch;
      for (Index row = first; row < behind; ++row) pullBack(group, row, products.data() + row * capacity_, scratch);
    });
    if (g_threshold_.isPerRow()) return;
    const ListSource lists = source(group);
    std::vector<double> sums(static_cast<std::size_t>(neurons_), 0.0);
    for (Index row = 0; row < rows_; ++row) {
      for (Index slot = 0; slot < capacity_; ++slot) {
        const Index id = lists.idAt(row, slot);
        if (id >= 0) sums[static_cast<std::size_t>(id)] -= double{products[row * capacity_ + slot]};
      }
    }
    g_threshold_.writeSums(group, sums);
  }

 private:
  ListSource source(Index group) const {
    return {ids_.at(group), ids_.type() == ffi::U16, g_.numbers(group), capacity_, neurons_};
  }

  // One row; yields what reaches the neuron in each slot.
  void pullBack(Index group, Index row, float* products, Floats& scratch) const {
    const ListSource lists = source(group);
    Floats v_scratch, threshold_scratch, g(static_cast<std::size_t>(capacity_)), x(g.size(), 0.0F), slopes(g.size());
    const float* v = v_.read(group, row, 0, neurons_, v_scratch);
    const float* threshold = threshold_.read(group, row, 0, neurons_, threshold_scratch);
    g_.numbers(group).read(row * capacity_, capacity_, g.data());
    for (Index slot = 0; slot < capacity_; ++slot) {
      const Index id = lists.idAt(row, slot);
      if (id >= 0) x[static_cast<std::size_t>(slot)] = v[id] - threshold[id];
    }
    kernels().derivative(surrogate_, x.data(), capacity_, slopes.data());
    scratch.assign(static_cast<std::size_t>(neurons_), 0.0F);
    for (Index slot = 0; slot < capacity_; ++slot) {
      const auto i = static_cast<std::size_t>(slot);
      products[slot] = g[i] == 0.0F ? 0.0F : g[i] * slopes[i];  // 0 also where a membrane is NaN
      const Index id = lists.idAt(row, slot);
      if (id >= 0) scratch[static_cast<std::size_t>(id)] += products[slot];
    }
    g_v_.write(group, row, 0, neurons_, scratch.data());
    if (!g_threshold_.isPerRow()) return;
    for (float& product : scratch) product = -product;
    g_threshold_.write(group, row, 0, neurons_, scratch.data());
  }

  Index rows_, neurons_;
  SurrogateForm surrogate_;
  OperandRows v_, threshold_;
  Index capacity_;
  Array ids_, g_;
  OperandRows g_v_, g_threshold_;
};

ffi::Error selectSpikes(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("select_spikes", [&] {
    Arrays from("select_spikes", operands), to("select_spikes", results);
    const Forward forward(from, to);
    Arrays::finish(from, to);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) forward.run(group, threads);
  });
}

ffi::Error selectSpikesBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                                std::int64_t surrogate, float slope) {
  return guarded("select_spikes", [&] {
    Arrays from("select_spikes", operands), to("select_spikes", results);
    const Backward backward(from, to, surrogateOf(surrogate, slope));
    Arrays::finish(from, to);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) backward.run(group, threads);
  });
}

}  // namespace
}  // namespace snnjax

XLA_FFI_DEFINE_HANDLER_SYMBOL(snnjax_select_spikes, snnjax::selectSpikes,
                              xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(snnjax_select_spikes_backward, snnjax::selectSpikesBackward,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<std::int64_t>("surrogate")
                                  .Attr<float>("slope"));
