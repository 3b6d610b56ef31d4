// Marks of neurons, one bit each: which spike, which are listed, and the lists made from them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpu/kernels.hpp"
#include "cpu/memory.hpp"
#include "cpu/numbers.hpp"

namespace snnjax {

inline Index wordsOf(Index neurons) { return (neurons + 63) / 64; }

// Arrays of operands and results have rows of (neurons + 7) / 8 bytes, the lowest bit first. A row of them is the
// beginning of a row of words, on machines that store the lowest byte first.
static_assert(std::endian::native == std::endian::little);

// Whether such an array is one of whole words.
inline bool areWords(const std::uint8_t* bytes, Index neurons) {
  return bytes != nullptr && neurons % 64 == 0 && reinterpret_cast<std::uintptr_t>(bytes) % sizeof(std::uint64_t) == 0;
}

// Marks in rows of whole words that hold whatever was there before.
class Bits {
 public:
  Bits() = default;
  Bits(Index rows, Index neurons) : words_(wordsOf(neurons)), memory_(rows * words_), first_(memory_.data()) {}

  // In place of an array of results; or, where that is not of whole words, in memory of their own.
  static Bits over(std::uint8_t* bytes, Index rows, Index neurons) {
    if (!areWords(bytes, neurons)) return Bits(rows, neurons);
    Bits bits;
    bits.words_ = neurons / 64;
    bits.first_ = reinterpret_cast<std::uint64_t*>(bytes);
    return bits;
  }

  Index words() const { return words_; }
  std::uint64_t* row(Index index) { return first_ + index * words_; }
  const std::uint64_t* row(Index index) const { return first_ + index * words_; }
  explicit operator bool() const { return first_ != nullptr; }

  // To an array of results; a no-op where the bits alias it.
  void writeTo(std::uint8_t* bytes, Index rows, Index neurons) const {
    if (static_cast<const void*>(first_) == bytes || neurons == 0) return;
    const Index stride = (neurons + 7) / 8;
    for (Index r = 0; r < rows; ++r) std::memcpy(bytes + r * stride, row(r), static_cast<std::size_t>(stride));
  }

 private:
  Index words_ = 0;
  Borrowed<std::uint64_t> memory_;
  std::uint64_t* first_ = nullptr;
};

// Marks that are a read-only operand: in place, or in whole words of their own.
class GivenBits {
 public:
  GivenBits() = default;
  GivenBits(const std::uint8_t* bytes, Index rows, Index neurons) : words_(wordsOf(neurons)) {
    if (areWords(bytes, neurons)) {
      first_ = reinterpret_cast<const std::uint64_t*>(bytes);
      return;
    }
    copy_ = Bits(rows, neurons);
    first_ = copy_.row(0);
    if (neurons == 0) return;
    const Index stride = (neurons + 7) / 8, rest = neurons % 64;
    for (Index r = 0; r < rows; ++r) {
      std::uint64_t* row = copy_.row(r);
      if (rest != 0) row[words_ - 1] = 0;
      std::memcpy(row, bytes + r * stride, static_cast<std::size_t>(stride));
      // Bits past the last neuron name none: they are dropped, whoever wrote them.
      if (rest != 0) row[words_ - 1] &= (std::uint64_t{1} << rest) - 1;
    }
  }

  Index words() const { return words_; }
  const std::uint64_t* row(Index index) const { return first_ + index * words_; }
  explicit operator bool() const { return first_ != nullptr; }

 private:
  Index words_ = 0;
  Bits copy_;
  const std::uint64_t* first_ = nullptr;
};

// Selects the neurons for a list that is too short for all: the largest membranes, ties by a fixed hash of the id.
class Selection {
 public:
  Selection(Index capacity, Index words) : capacity_(capacity), words_(words) {}

  // How many of each there are in a row.
  struct Counts {
    Index spikes, near;
  };
  Counts count(const std::uint64_t* spikes, const std::uint64_t* near) const {
    return {kernels().countMarks(spikes, words_), kernels().countMarks(near, words_)};
  }

  // Cuts one row of spikes and of neurons near the threshold to at most `capacity` neurons, spikes before the others;
  // of `v`, the membranes, only those of the marked neurons are read.
  void cut(const Counts& counts, std::uint64_t* spikes, std::uint64_t* near, const float* v) {
    if (counts.spikes > capacity_) shorten(spikes, capacity_, v);
    const Index left = std::max<Index>(capacity_ - counts.spikes, 0);
    if (counts.near > left) shorten(near, left, v);
  }

 private:
  struct Candidate {
    std::uint32_t order, id;

    bool isBefore(const Candidate& other) const {
      return order > other.order || (order == other.order && hashOf(id) < hashOf(other.id));
    }
  };

  // Integers in the order of the membranes; 0 and -0 are equal.
  static std::uint32_t orderOf(float v) {
    constexpr std::uint32_t kSign = std::uint32_t{1} << 31;
    const auto bits = std::bit_cast<std::uint32_t>(v + 0.0F);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }

  // Membranes are sorted into buckets of equal width; only those of one bucket need be compared.
  void shorten(std::uint64_t* bits, Index slots, const float* v) {
    take(bits, v);
    if (slots == 0 || candidates_.empty()) return;
    const auto [least, most] = std::minmax_element(candidates_.begin(), candidates_.end(),
                                                   [](auto& one, auto& other) { return one.order < other.order; });
    const std::uint32_t lowest = least->order;
    const int shift = std::max(0, static_cast<int>(std::bit_width(most->order - lowest)) - kBucketBits);
    std::array<Index, std::size_t{1} << kBucketBits> counts{};
    for (const Candidate& each : candidates_) ++counts[(each.order - lowest) >> shift];
    std::size_t kept = counts.size();  // this bucket and those above are kept
    while (kept > 0 && counts[kept - 1] <= slots) slots -= counts[--kept];
    compared_.clear();
    for (const Candidate& each : candidates_) {
      const std::size_t bucket = (each.order - lowest) >> shift;
      if (bucket >= kept) mark(bits, each.id);
      if (bucket + 1 == kept) compared_.push_back(each);
    }
    std::nth_element(compared_.begin(), compared_.begin() + slots, compared_.end(),
                     [](const Candidate& one, const Candidate& other) { return one.isBefore(other); });
    for (Index i = 0; i < slots; ++i) mark(bits, compared_[static_cast<std::size_t>(i)].id);
  }

  // The marked neurons become candidates, and lose their marks.
  void take(std::uint64_t* bits, const float* v) {
    candidates_.clear();
    for (Index word = 0; word < words_; ++word) {
      for (std::uint64_t rest = std::exchange(bits[word], 0); rest != 0; rest &= rest - 1) {
        const auto id = static_cast<std::uint32_t>(word * 64 + std::countr_zero(rest));
        candidates_.push_back({orderOf(v[id]), id});
      }
    }
  }

  static void mark(std::uint64_t* bits, std::uint32_t id) { bits[id / 64] |= std::uint64_t{1} << (id % 64); }

  static constexpr int kBucketBits = 8;

  Index capacity_, words_;
  std::vector<Candidate> candidates_, compared_;
};

// The ids of lists as results hold them: uint16 where that of an unused slot, `neurons`, fits into it.
struct IdArray {
  void* data;
  Index neurons;

  void write(Index first, const std::uint32_t* ids, Index count) const {
    each(first, [&](auto* to) { std::copy_n(ids, count, to); });
  }
  void writeUnused(Index first, Index count) const {
    each(first, [&](auto* to) { std::fill_n(to, count, static_cast<std::remove_pointer_t<decltype(to)>>(neurons)); });
  }

 private:
  // Calls work(to) with the first of the ids as they are stored.
  template <typename Work>
  void each(Index first, Work work) const {
    neurons <= kMaxShortNeurons ? work(static_cast<std::uint16_t*>(data) + first)
                                : work(static_cast<std::uint32_t*>(data) + first);
  }
};

// Writes one list: the spikes with value 1, then the neurons near the threshold with value 0, then unused slots; at
// most `capacity` are marked. Returns their number.
class ListWriter {
 public:
  explicit ListWriter(Index neurons) : neurons_(neurons), ids_(static_cast<std::size_t>(neurons + kListSlack)) {}

  Index write(const std::uint64_t* spikes, const std::uint64_t* near, Index capacity, Index row, void* all_ids,
              WritableNumbers values) {
    const IdArray ids{all_ids, neurons_};
    const Index first = row * capacity, spiking = put(spikes, first, capacity, ids);
    const Index listed = spiking + put(near, first + spiking, capacity - spiking, ids);
    ids.writeUnused(first + listed, capacity - listed);
    values.fill(first, spiking, 1.0F);
    values.fill(first + spiking, capacity - spiking, 0.0F);
    return listed;
  }

 private:
  Index put(const std::uint64_t* marks, Index first, Index room, IdArray to) {
    const Index count = std::min<Index>(kernels().listBits(marks, neurons_, ids_.data()), room);
    to.write(first, ids_.data(), count);
    return count;
  }

  Index neurons_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace snnjax
