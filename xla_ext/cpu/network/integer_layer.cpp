// The target of a layer of neurons in the integers of a chip over all steps (snnjax/fixed_point/_run.py).
//
// A task is a sample, whose state stays in the first-level cache over all steps. Spikes add rows of weights in the
// order of their sources, the neurons themselves last.
#include <algorithm>
#include <limits>
#include <optional>

#include "cpu/call.hpp"
#include "cpu/kernels.hpp"
#include "cpu/lists/spike_rows.hpp"

namespace snnjax::integer_layer {
namespace {

using schema::Axis;

constexpr Index kWidestVector = 16;
constexpr std::int32_t kMostShift = 31;
// What a step of a neuron takes, in multiplications as `threadsFor` counts them.
constexpr Index kStepProducts = 8;

Index wholeVectors(Index columns) { return (columns + kWidestVector - 1) / kWidestVector * kWidestVector; }
std::size_t sizeOf(Index count) { return static_cast<std::size_t>(count); }

struct Chip : NoLayers {
  explicit Chip(const Attributes& attributes) {
    const auto n = ChipNumbers::read(attributes);
    const auto bits = [](auto count, std::int32_t most) {
      return static_cast<std::int32_t>(std::clamp<std::int64_t>(count, 0, most));
    };
    const std::int32_t top = 1 << std::max(bits(n.state_bits, 24) - 1, 0);
    arithmetic = {n.shifts,
                  n.to_zero,
                  n.at_least_one,
                  n.saturates,
                  n.wraps,
                  n.each_source,
                  n.input_first,
                  n.change_first,
                  n.bounded_last,
                  n.subtracts,
                  n.inclusive,
                  bits(n.decay_bits, 12),
                  bits(n.input_shift, kMostShift),
                  n.symmetric ? 1 - top : -top,
                  top - 1,
                  bits(n.max_spikes, std::numeric_limits<std::int32_t>::max())};
  }

  IntegerArithmetic arithmetic;
};

// A shift that has no more effect than any larger one.
std::int32_t shiftOf(std::int32_t by) {
  return static_cast<std::int32_t>(std::min<std::uint32_t>(static_cast<std::uint32_t>(by), kMostShift));
}

// Rows of numbers in whole vectors, with `rest` behind each.
template <typename T>
std::vector<T> padded(const T* from, Index rows, Index columns, T rest = 0) {
  const Index stride = wholeVectors(columns);
  std::vector<T> to(sizeOf(rows * stride), rest);
  for (Index r = 0; r < rows; ++r) std::copy_n(from + r * columns, columns, to.data() + r * stride);
  return to;
}

// Matrices of a synapse each, whose rows are whole vectors: in place, or copied.
class Weights {
 public:
  Weights(const Operand& from, Index group, Index synapses, Index rows, Index columns, std::int32_t shift)
      : data_(from.at<std::int8_t>(group)), rows_(rows), stride_(wholeVectors(columns)), shift_(shift) {
    if (stride_ == columns) return;
    copied_ = padded(data_, synapses * rows, columns);
    data_ = copied_.data();
  }

  void add(const SpikeRow& spikes, const IntegerArithmetic& chip, Index synapses, std::int32_t* sums) const {
    // A shift beyond int32 leaves nothing.
    if (spikes.count == 0 || shift_ < 0 || shift_ > kMostShift) return;
    for (Index k = 0; k < synapses; ++k) {
      const Rows<const std::int8_t> rows{data_ + k * rows_ * stride_, stride_};
      kernels().addIntegers(spikes, {stride_, rows, shift_, chip.each_source, chip.low, chip.high}, sums + k * stride_);
    }
  }

 private:
  const std::int8_t* data_;
  Index rows_, stride_;
  std::int32_t shift_;
  std::vector<std::int8_t> copied_;
};

// The entries of a row that are not 0.
class List {
 public:
  explicit List(Index width) : ids_(sizeOf(width + kListSlack)), values_(ids_.size()) {}

  SpikeRow of(const DenseSource& rows, Index row) {
    bool all_ones = true;
    const std::uint32_t count = rows.list(row, ids_.data(), values_.data(), &all_ones);
    return {ids_.data(), all_ones ? nullptr : values_.data(), count, false};
  }

 private:
  std::vector<std::uint32_t> ids_;
  std::vector<float> values_;
};

DenseSource::Type typeOf(const Operand& spikes) {
  if (spikes.type() == ffi::F32) return DenseSource::Type::kFloat32;
  return spikes.type() == ffi::BF16 ? DenseSource::Type::kBfloat16 : DenseSource::Type::kUint8;
}

using Layer = Call<Operands<Operand>, Results<Result>, Chip>;

class Pass {
 public:
  Pass(const Layer& call, const schema::Lengths& lengths, Index group)
      : from_(call.from),
        to_(call.to),
        chip_(call.numbers.arithmetic),
        group_(group),
        steps_(lengths[Axis::kSteps]),
        batch_(lengths[Axis::kBatch]),
        neurons_(lengths[Axis::kNeurons]),
        synapses_(lengths[Axis::kReceptors]),
        width_(from_.spikes ? lengths[Axis::kWidth] : 0),
        stride_(wholeVectors(neurons_)),
        rows_(from_.spikes.at(group), typeOf(from_.spikes), width_),
        before_(from_.before.at(group), DenseSource::Type::kFloat32, width_),
        threshold_(padded(constant(from_.threshold), 1, neurons_, std::numeric_limits<std::int32_t>::max())),
        decay_(decays(from_.decay, 1)),
        synapse_decay_(decays(from_.synapse_decay, synapses_)),
        bias_(padded(constant(from_.bias), 1, neurons_)),
        weights_(from_.weights, group, from_.weights ? synapses_ : 0, width_, neurons_, *constant(from_.shift)),
        recurrent_(from_.recurrent, group, from_.recurrent ? synapses_ : 0, neurons_, neurons_,
                   *constant(from_.recurrent_shift)) {}

  void run(const Threads& threads) const {
    const Index products = steps_ * batch_ * (width_ + kStepProducts * synapses_ * neurons_);
    const Threads some = threadsFor(products, threads);
    std::vector<std::optional<Sample>> of_worker(sizeOf(some.count()));
    some.run(batch_, [&](Index number, Index worker) {
      std::optional<Sample>& own = of_worker[sizeOf(worker)];
      if (!own) own.emplace(*this);
      runSample(number, *own);
    });
  }

 private:
  const std::int32_t* constant(const Operand& from) const { return from.at<std::int32_t>(group_); }

  // As the kernels read them.
  std::vector<std::int32_t> decays(const Operand& from, Index rows) const {
    std::vector<std::int32_t> all = padded(constant(from), rows, neurons_);
    for (std::int32_t& decay : all) {
      const auto kept = (1U << chip_.decay_bits) - static_cast<std::uint32_t>(decay);
      decay = chip_.shifts ? shiftOf(decay) : static_cast<std::int32_t>(kept);
    }
    return all;
  }

  // What belongs to a step of a sample in an array of all of them; nullptr if nobody reads it.
  float* seen(const Result& all, Index step, Index sample, Index parts = 1) const {
    if (all.length(0) == 0) return nullptr;
    return all.at<float>(group_) + (step * parts * batch_ + sample) * neurons_;
  }

  // The state of a sample, in whole vectors: arrays that are read again in each step.
  struct Sample {
    explicit Sample(const Pass& pass)
        : v(sizeOf(pass.stride_)),
          current(sizeOf(pass.synapses_ * pass.stride_)),
          arriving(current.size()),
          counts(v.size()),
          spikes(v.size()),
          arrived(pass.width_),
          fired(pass.from_.recurrent ? pass.neurons_ : 0),
          step{pass.chip_,
               pass.neurons_,
               pass.synapses_,
               pass.stride_,
               pass.threshold_.data(),
               pass.decay_.data(),
               pass.bias_.data(),
               pass.synapse_decay_.data(),
               arriving.data(),
               v.data(),
               current.data(),
               counts.data(),
               spikes.data(),
               nullptr,
               {nullptr, 0}} {}

    std::vector<std::int32_t> v, current, arriving, counts;
    std::vector<float> spikes;  // of the last step, where they are not a result
    List arrived, fired;
    IntegerStep step;
  };

  void runSample(Index number, Sample& own) const {
    std::copy_n(constant(from_.v) + number * neurons_, neurons_, own.v.data());
    for (Index k = 0; k < synapses_; ++k) {
      const std::int32_t* const from = constant(from_.current) + (k * batch_ + number) * neurons_;
      const auto within = [&](std::int32_t x) { return chip_.each_source ? std::clamp(x, chip_.low, chip_.high) : x; };
      std::transform(from, from + neurons_, own.current.data() + k * stride_, within);
    }
    std::fill(own.counts.begin(), own.counts.end(), 0);
    const Index end = from_.lengths ? std::clamp<Index>(constant(from_.lengths)[number], 0, steps_) : steps_;
    const float* last = from_.recurrent ? from_.fired.at<float>(group_) + number * neurons_ : nullptr;
    for (Index step = 0; step < end; ++step) {
      addArriving(own, number, step);
      if (last != nullptr) {
        const DenseSource row(last, DenseSource::Type::kFloat32, neurons_);
        recurrent_.add(own.fired.of(row, 0), chip_, synapses_, sumsOf(own));
      }
      writeTo(own, number, step);
      const bool has_fired = kernels().stepIntegers(own.step);
      last = from_.recurrent && has_fired ? own.step.spikes : nullptr;
    }
    for (Index step = end; step < steps_; ++step) rest(own, number, step);
    finish(own, number);
  }

  // Where sources add up; in the current itself where it saturates after each.
  std::int32_t* sumsOf(Sample& own) const { return chip_.each_source ? own.current.data() : own.arriving.data(); }

  void addArriving(Sample& own, Index number, Index step) const {
    if (from_.drive) {
      for (Index k = 0; k < synapses_; ++k) {
        const Index row = (step * synapses_ + k) * batch_ + number;
        kernels().addWhole(from_.drive.at<float>(group_) + row * neurons_, neurons_, sumsOf(own) + k * stride_);
      }
      return;
    }
    const Index sent = from_.before ? step - 1 : step;
    const SpikeRow spikes = sent < 0 ? own.arrived.of(before_, number) : own.arrived.of(rows_, sent * batch_ + number);
    weights_.add(spikes, chip_, synapses_, sumsOf(own));
  }

  // Where the next step is seen.
  void writeTo(Sample& own, Index number, Index step) const {
    float* const spikes = seen(to_.spikes, step, number);
    own.step.spikes = spikes == nullptr ? own.spikes.data() : spikes;
    own.step.record_v = seen(to_.membranes, step, number);
    own.step.record_current = {seen(to_.currents, step, number, synapses_), batch_ * neurons_};
  }

  // A step behind the end of a sequence.
  void rest(const Sample& own, Index number, Index step) const {
    const auto write = [&](const std::int32_t* from, float* to) {
      if (to != nullptr)
        std::transform(from, from + neurons_, to, [](std::int32_t x) { return static_cast<float>(x); });
    };
    if (float* const spikes = seen(to_.spikes, step, number)) std::fill_n(spikes, neurons_, 0.0F);
    write(own.v.data(), seen(to_.membranes, step, number));
    float* const currents = seen(to_.currents, step, number, synapses_);
    for (Index k = 0; k < synapses_ && currents != nullptr; ++k) {
      write(own.current.data() + k * stride_, currents + k * batch_ * neurons_);
    }
  }

  void finish(const Sample& own, Index number) const {
    const auto write = [&](const std::int32_t* from, const Result& to, Index row) {
      std::copy_n(from, neurons_, to.at<std::int32_t>(group_) + row * neurons_);
    };
    write(own.counts.data(), to_.counts, number);
    write(own.v.data(), to_.v, number);
    for (Index k = 0; k < synapses_; ++k) {
      write(own.current.data() + k * stride_, to_.current, k * batch_ + number);
    }
  }

  const Operands<Operand>& from_;
  const Results<Result>& to_;
  const IntegerArithmetic chip_;
  Index group_, steps_, batch_, neurons_, synapses_, width_, stride_;
  DenseSource rows_, before_;
  std::vector<std::int32_t> threshold_, decay_, synapse_decay_, bias_;
  Weights weights_, recurrent_;
};

void run(Layer& call) {
  const schema::Lengths lengths = call.check();
  for (Index group = 0; group < call.groups(); ++group) Pass(call, lengths, group).run(call.threads);
}

}  // namespace
}  // namespace snnjax::integer_layer

SNNJAX_TARGET(snnjax_integer_layer, "integer_layer", snnjax::integer_layer::run);
