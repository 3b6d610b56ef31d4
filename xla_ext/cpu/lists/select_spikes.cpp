// The targets of `select_spikes`: from membranes to lists of spikes, and the surrogate gradient back.
#include "cpu/call.hpp"
#include "marks.hpp"
#include "spike_rows.hpp"

namespace snnjax::select_spikes {
namespace {

using Floats = std::vector<float>;
using schema::Axis;

// An operand or result with one number, one per neuron, or one per row and neuron: behind the groups axis [1],
// [neurons] or [rows, neurons].
template <typename Item>
class PerRow {
 public:
  PerRow(const Item& per_row, Index neurons) : is_per_row_(true), neurons_(neurons), array_(per_row) {}
  PerRow(const schema::Threshold<Item>& threshold, Index neurons)
      : is_per_row_(threshold.rows), neurons_(neurons), array_(is_per_row_ ? threshold.rows : threshold.array) {}

  bool isPerRow() const { return is_per_row_; }

  // A row as float32: in place, or in scratch, which grows as needed.
  const float* read(Index group, Index row, std::vector<float>& scratch) const {
    const Numbers numbers = array_.numbers(group);
    const bool is_one = isOne();
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
    if (!isOne()) {
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
  bool isOne() const { return !is_per_row_ && array_.length(0) == 1; }

  bool is_per_row_;
  Index neurons_;
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
  using Arrays = Call<Operands<Operand>, Results<Result>>;

  Forward(const Arrays& call, const schema::Lengths& lengths)
      : rows_(lengths[Axis::kRows]),
        neurons_(lengths[Axis::kNeurons]),
        capacity_(lengths[Axis::kCapacity]),
        v_(call.from.v, neurons_),
        threshold_(call.from.threshold, neurons_),
        second_threshold_(call.from.second_threshold, neurons_),
        to_(call.to) {}

  void run(Index group, const Threads& threads) const {
    eachRange(rows_, neurons_, threads, [&](Index first, Index behind) { list(group, first, behind); });
  }

 private:
  void list(Index group, Index first, Index behind) const {
    const Index words = wordsOf(neurons_);
    Selection selection(capacity_, words);
    ListWriter writer(neurons_);
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
      to_.num_spikes.at<std::int32_t>(group)[row] = static_cast<std::int32_t>(counts.spikes);
      selection.cut(counts, spikes.data(), near.data(), v);
      const Index listed =
          writer.write(spikes.data(), near.data(), capacity_, row, to_.ids.at(group), to_.values.numbers(group));
      to_.num_listed.at<std::int32_t>(group)[row] = static_cast<std::int32_t>(listed);
    }
  }

  Index rows_, neurons_, capacity_;
  PerRow<Operand> v_, threshold_, second_threshold_;
  const Results<Result>& to_;
};

struct GivenSurrogate : NoLayers {
  explicit GivenSurrogate(const Attributes& attributes) {
    const SurrogateNumbers numbers = SurrogateNumbers::read(attributes);
    form = surrogateOf(numbers.surrogate, numbers.slope, numbers.reach);
  }

  SurrogateForm form;
};

class Backward {
 public:
  using Arrays = Call<BackwardOperands<Operand>, BackwardResults<Result>, GivenSurrogate>;

  Backward(const Arrays& call, const schema::Lengths& lengths)
      : rows_(lengths[Axis::kRows]),
        neurons_(lengths[Axis::kNeurons]),
        capacity_(lengths[Axis::kCapacity]),
        surrogate_(call.numbers.form),
        v_(call.from.v, neurons_),
        threshold_(call.from.threshold, neurons_),
        ids_(call.from.ids),
        g_(call.from.g),
        g_v_(call.to.g_v, neurons_),
        g_threshold_(call.to.g_threshold, neurons_) {
    const schema::Threshold<Operand>& own = call.from.threshold;
    const schema::Threshold<Result>& to = call.to.g_threshold;
    if (static_cast<bool>(own.rows) == static_cast<bool>(to.rows) && own.array.length(0) == to.array.length(0)) return;
    throw misfit(call.operands.op(), "g_threshold", "have the form of `threshold`", "another one");
  }

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

  Index rows_, neurons_, capacity_;
  SurrogateForm surrogate_;
  PerRow<Operand> v_, threshold_;
  Operand ids_, g_;
  PerRow<Result> g_v_, g_threshold_;
};

template <typename Pass>
void runPass(typename Pass::Arrays& call) {
  const Pass pass(call, call.check());
  for (Index group = 0; group < call.groups(); ++group) pass.run(group, call.threads);
}

}  // namespace
}  // namespace snnjax::select_spikes

SNNJAX_TARGET(snnjax_select_spikes, "select_spikes", snnjax::select_spikes::runPass<snnjax::select_spikes::Forward>);
SNNJAX_TARGET(snnjax_select_spikes_backward, "select_spikes",
              snnjax::select_spikes::runPass<snnjax::select_spikes::Backward>);
