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
    std::vector<float> spikes, others;  // widened
  };

  // to = those of the neurons of a row from `column`, the first one of a word, on.
  void expand(Index row, Index column, Index columns, Scratch& scratch, float* to) const {
    const List list = listOf(row, column, columns, scratch);
    kernels().expandList(list.spikes, list.listed, columns, to);
  }

  // to += the same.
  void addTo(Index row, Index column, Index columns, Scratch& scratch, float* to) const {
    const List list = listOf(row, column, columns, scratch);
    kernels().addList(list.spikes, list.listed, columns, to);
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

  // Part of a list.
  struct List {
    MarkedNumbers spikes, listed;
  };

  List listOf(Index row, Index column, Index columns, Scratch& scratch) const {
    const Index word = column / 64;
    const Slots *first = slots_.data() + row * (listed_.words() + 1) + word, *behind = first + wordsOf(columns);
    const auto numbers = [&](std::int32_t slot, std::int32_t end, std::vector<float>& widened) {
      return read(row * capacity_ + slot, end - slot, widened);
    };
    return {
        {spikes_.row(row) + word, numbers(first->spike, behind->spike, scratch.spikes), behind->spike - first->spike},
        {listed_.row(row) + word, numbers(first->other, behind->other, scratch.others), behind->other - first->other}};
  }

  const float* read(Index place, Index count, std::vector<float>& widened) const {
    if (!g_.is_bfloat16) return g_.float32() + place;
    widened.resize(static_cast<std::size_t>(count));
    g_.read(place, count, widened.data());
    return widened.data();
  }

  const Numbers g_;
  const Index capacity_;
  const GivenBits &spikes_, &listed_;
  Borrowed<Slots> slots_;  // [rows, words + 1]
};

}  // namespace snnjax
