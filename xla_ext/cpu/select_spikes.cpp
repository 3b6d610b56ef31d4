// The targets of `select_spikes`: from membranes to lists of spikes, and the surrogate gradient back.
#include "ffi.hpp"
#include "marks.hpp"
#include "spike_rows.hpp"

namespace snnjax {
namespace {

using Floats = std::vector<float>;

// An operand or result with one number, one per neuron, or one per row and neuron: behind the groups axis [1],
// [neurons] or [rows, neurons].
template <typename Item>
class PerRow {
 public:
  enum class Form { kOne, kPerNeuron, kPerRow };

  // Takes the next array, whatever its form.
  static PerRow any(Arrays<Item>& arrays, const char* name, Index rows, Index neurons, const Types& types) {
    const Form of_constant = arrays.nextLength(0) == 1 ? Form::kOne : Form::kPerNeuron;
    return {arrays, name, arrays.nextLength(1) >= 0 ? Form::kPerRow : of_constant, rows, neurons, types};
  }

  PerRow(Arrays<Item>& arrays, const char* name, Form form, Index rows, Index neurons, const Types& types)
      : form_(form), rows_(rows), neurons_(neurons) {
    const Shape one{1}, each{neurons}, all{rows, neurons};
    array_ = arrays.take(name, isPerRow() ? all : form == Form::kOne ? one : each, types);
  }

  // The cotangent of this operand, in its form.
  PerRow<Result> cotangent(Results& results, const char* name) const {
    return {results, name, static_cast<PerRow<Result>::Form>(form_), rows_, neurons_, {type()}};
  }

  bool isPerRow() const { return form_ == Form::kPerRow; }
  ffi::DataType type() const { return array_.type(); }

  // A row as float32: in place, or in scratch, which grows as needed.
  const float* read(Index group, Index row, std::vector<float>& scratch) const {
    const Numbers numbers = array_.numbers(group);
    const bool is_one = form_ == Form::kOne;
    const Index place = isPerRow() ? row * neurons_ : 0;
    if (!numbers.is_bfloat16 && !is_one) return numbers.float32() + place;
    scratch.resize(static_cast<std::size_t>(neurons_));
    if (neurons_ == 0) return scratch.data();
    numbers.read(place, is_one ? 1 : neurons_, scratch.data());
    if (is_one) std::fill(scratch.begin(), scratch.end(), scratch[0]);
    return scratch.data();
  }

  // The other way.
  void write(Index group, Index row, const float* from) const {
    array_.numbers(group).write(isPerRow() ? row * neurons_ : 0, neurons_, from);
  }

  // Writes sums over the rows, one a neuron, or their sum: into an array that has no rows.
  void writeSums(Index group, const std::vector<double>& sums) const {
    if (form_ == Form::kPerNeuron) {
      const std::vector<float> rounded(sums.begin(), sums.end());
      write(group, 0, rounded.data());
      return;
    }
    double total = 0.0;
    for (const double sum : sums) total += sum;
    const auto rounded = static_cast<float>(total);
    array_.numbers(group).write(0, 1, &rounded);
  }

 private:
  Form form_;
  Index rows_, neurons_;
  Item array_;
};

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
  Forward(Operands& operands, Results& results)
      : rows_(operands.nextLength(0)),
        neurons_(operands.nextLength(1)),
        capacity_(results.nextLength(1)),
        v_(operands, "v", PerRow<Operand>::Form::kPerRow, rows_, neurons_, kFloating),
        threshold_(PerRow<Operand>::any(operands, "threshold", rows_, neurons_, {v_.type()})),
        second_threshold_(PerRow<Operand>::any(operands, "second_threshold", rows_, neurons_, {v_.type()})),
        ids_(results.take("ids", {rows_, capacity_}, {idType(neurons_)})),
        values_(results.take("values", {rows_, capacity_}, {v_.type()})),
        num_spikes_(results.take("num_spikes", {rows_}, {ffi::S32})),
        num_listed_(results.take("num_listed", {rows_}, {ffi::S32})) {}

  void run(Index group, const Threads& threads) const {
    eachRange(rows_, neurons_, threads, [&](Index first, Index behind) { list(group, first, behind); });
  }

 private:
  void list(Index group, Index first, Index behind) const {
    const Index words = wordsOf(neurons_);
    Selection selection(capacity_, words);
    std::vector<std::uint64_t> spikes(static_cast<std::size_t>(words)), near(spikes.size());
    Floats v_scratch, scratch, second_scratch;
    const float* threshold = nullptr;
    const float* second_threshold = nullptr;
    for (Index row = first; row < behind; ++row) {
      const float* v = v_.read(group, row, v_scratch);
      if (row == first || threshold_.isPerRow()) threshold = threshold_.read(group, row, scratch);
      if (row == first || second_threshold_.isPerRow()) {
        second_threshold = second_threshold_.read(group, row, second_scratch);
      }
      kernels().mark(v, threshold, second_threshold, neurons_, spikes.data(), near.data());
      const Selection::Counts counts = selection.count(spikes.data(), near.data());
      num_spikes_.at<std::int32_t>(group)[row] = static_cast<std::int32_t>(counts.spikes);
      selection.cut(counts, spikes.data(), near.data(), v);
      const Index listed = writeList(spikes.data(), near.data(), neurons_, capacity_, row, {ids_.at(group), neurons_},
                                     values_.numbers(group));
      num_listed_.at<std::int32_t>(group)[row] = static_cast<std::int32_t>(listed);
    }
  }

  Index rows_, neurons_, capacity_;
  PerRow<Operand> v_, threshold_, second_threshold_;
  Result ids_, values_, num_spikes_, num_listed_;
};

class Backward {
 public:
  Backward(Operands& operands, Results& results, SurrogateForm surrogate)
      : rows_(operands.nextLength(0)),
        neurons_(operands.nextLength(1)),
        surrogate_(surrogate),
        v_(operands, "v", PerRow<Operand>::Form::kPerRow, rows_, neurons_, kFloating),
        threshold_(PerRow<Operand>::any(operands, "threshold", rows_, neurons_, {v_.type()})),
        capacity_(operands.nextLength(1)),
        ids_(operands.take("ids", {rows_, capacity_}, {idType(neurons_)})),
        g_(operands.take("g", {rows_, capacity_}, {v_.type()})),
        g_v_(v_.cotangent(results, "g_v")),
        g_threshold_(threshold_.cotangent(results, "g_threshold")) {}

  void run(Index group, const Threads& threads) const {
    Borrowed<float> products(rows_ * capacity_);
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

  // One row; returns the cotangent of the neuron in each slot.
  void pullBack(Index group, Index row, float* products, Floats& scratch) const {
    const ListSource lists = source(group);
    Floats v_scratch, threshold_scratch, g(static_cast<std::size_t>(capacity_)), x(g.size(), 0.0F), slopes(g.size());
    const float* v = v_.read(group, row, v_scratch);
    const float* threshold = threshold_.read(group, row, threshold_scratch);
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
    g_v_.write(group, row, scratch.data());
    if (!g_threshold_.isPerRow()) return;
    for (float& product : scratch) product = -product;
    g_threshold_.write(group, row, scratch.data());
  }

  Index rows_, neurons_;
  SurrogateForm surrogate_;
  PerRow<Operand> v_, threshold_;
  Index capacity_;
  Operand ids_, g_;
  PerRow<Result> g_v_, g_threshold_;
};

ffi::Error selectSpikes(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return guarded("select_spikes", [&] {
    Operands from("select_spikes", operands);
    Results to("select_spikes", results);
    const Forward forward(from, to);
    finish(from, to);
    const Threads threads = threadsOf(pool);
    for (Index group = 0; group < to.groups(); ++group) forward.run(group, threads);
  });
}

ffi::Error selectSpikesBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                                std::int64_t surrogate, float slope, float reach) {
  return guarded("select_spikes", [&] {
    Operands from("select_spikes", operands);
    Results to("select_spikes", results);
    const Backward backward(from, to, surrogateOf(surrogate, slope, reach));
    finish(from, to);
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
                                  .Attr<float>("slope")
                                  .Attr<float>("reach"));
