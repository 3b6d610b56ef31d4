// What the lists that a layer has recorded send back to its neurons.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/kernels.hpp"
#include "cpu/lists/marks.hpp"
#include "cpu/memory.hpp"
#include "cpu/numbers.hpp"
#include "cpu/parallel.hpp"

namespace snnjax {

// The cotangents of recorded lists by their neurons. A list has the spikes first and then the other neurons, each by
// ascending id.
class ListedCotangents {
 public:
  // `g` [rows, capacity]; `listed` are the spikes and the others.
  ListedCotangents(const Numbers& g, Index capacity, const GivenBits& spikes, const GivenBits& listed, Index rows,
                   const Threads& threads)
      : g_(g), capacity_(capacity), spikes_(spikes), listed_(listed), slots_(rows * (listed.words() + 1)) {
    constexpr Index kRowsPerTask = 32;
    threads.run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](Index task, Index) {
      for (Index row = task * kRowsPerTask; row < std::min((task + 1) * kRowsPerTask, rows); ++row) count(row);
    });
  }

  // Memory of one thread.
  struct Scratch {
    std::vector<float> g;  // widened
    std::vector<std::uint64_t> others;
  };

  // to = those of the neurons of a row from `column`, the first one of a word, on.
  void expand(Index row, Index column, Index columns, Scratch& scratch, float* to) const {
    addTo<false>(row, column, columns, scratch, to);
  }

  // to += the same.
  void addTo(Index row, Index column, Index columns, Scratch& scratch, float* to) const {
    addTo<true>(row, column, columns, scratch, to);
  }

 private:
  // Where the entries of a word's neurons begin.
  struct Slots {
    std::int32_t spike, other;
  };

  // Whatever is marked, no more than there are.
  void count(Index row) {
    const Index words = listed_.words();
    const auto slot = [&](Index entries) { return static_cast<std::int32_t>(std::min(entries, capacity_)); };
    Slots* const slots = slots_.data() + row * (words + 1);
    slots[0] = {0, slot(kernels().countMarks(spikes_.row(row), words))};
    for (Index word = 0; word < words; ++word) {
      const std::uint64_t spikes = spikes_.row(row)[word], others = listed_.row(row)[word] & ~spikes;
      slots[word + 1] = {slot(slots[word].spike + countBits(spikes)), slot(slots[word].other + countBits(others))};
    }
  }

  // to (+)= the spikes' and += the others'.
  template <bool kAdds>
  void addTo(Index row, Index column, Index columns, Scratch& scratch, float* to) const {
    const Index word = column / 64, words = wordsOf(columns);
    const Slots *first = slots_.data() + row * (listed_.words() + 1) + word, *behind = first + words;
    const std::uint64_t *spikes = spikes_.row(row) + word, *listed = listed_.row(row) + word;
    scratch.others.resize(static_cast<std::size_t>(words));
    for (Index i = 0; i < words; ++i) scratch.others[static_cast<std::size_t>(i)] = listed[i] & ~spikes[i];
    spread<kAdds>(spikes, row, first->spike, behind->spike, columns, scratch, to);
    spread<true>(scratch.others.data(), row, first->other, behind->other, columns, scratch, to);
  }

  template <bool kAdds>
  void spread(const std::uint64_t* marks, Index row, Index slot, Index behind, Index columns, Scratch& scratch,
              float* to) const {
    if (kAdds && slot == behind) return;
    const Index place = row * capacity_ + slot, count = behind - slot;
    if (g_.is_bfloat16) {
      scratch.g.resize(static_cast<std::size_t>(count));
      g_.read(place, count, scratch.g.data());
    }
    const float* from = g_.is_bfloat16 ? scratch.g.data() : g_.float32() + place;
    kAdds ? kernels().addMarked(marks, columns, from, count, to)
          : kernels().expandMarked(marks, columns, from, count, to);
  }

  const Numbers g_;
  const Index capacity_;
  const GivenBits &spikes_, &listed_;
  Borrowed<Slots> slots_;  // [rows, words + 1]
};

}  // namespace snnjax
