// Lists of what is not 0 and marks of neurons, of every instruction set of this machine, compared with plain loops: no
// number is computed, so all of it is exact.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>

#include "kernel_checks.hpp"

namespace {

using namespace kernel_checks;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kUnwritten = -77.0F;

// A list as kernels make it, in buffers of `capacity` elements and with values that tell whether they were written.
struct List {
  std::vector<std::uint32_t> ids;
  Floats values;
  bool all_ones = false;

  explicit List(Index capacity) : ids(sizeOf(capacity)), values(sizeOf(capacity), kUnwritten) {}

  void add(std::uint32_t id, float value) {
    ids.push_back(id);
    values.push_back(value);
  }
};

// What plain loops list: all_ones follows from the values.
void expectList(const Case& of, List got, std::uint32_t count, const List& want) {
  got.ids.resize(count);
  expectSame(of, got.ids, want.ids);
  const bool all_ones = want.values == Floats(want.values.size(), 1.0F);
  expect(of, got.all_ones == all_ones);
  if (all_ones) return;  // the values need not be there
  got.values.resize(count);
  expectSame(of, got.values, want.values);
}

// Numbers that are hard to tell from 0, or from 1.
float oddNumber(Random& random) {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  const float numbers[] = {1.0F, -1.0F, 0.0F, -0.0F, kNaN, kInfinity, -kInfinity, kTiny, 1.0F + 0x1p-23F};
  return numbers[random.below(std::size(numbers))];
}

void rowsAreListed(const Case& of, Random& random) {
  for (const double share : {0.0, 0.05, 0.5, 1.0}) {
    for (const bool odd : {false, true}) {
      Floats row(sizeOf(of.size));
      std::vector<std::uint8_t> bytes(row.size());
      List want(0), want_bytes(0);
      for (Index i = 0; i < of.size; ++i) {
        const auto id = static_cast<std::uint32_t>(i);
        float& x = row[id];
        if (random.happens(share)) x = odd ? oddNumber(random) : 1.0F;
        if (x != 0.0F) want.add(id, x);
        if (random.happens(share)) bytes[id] = odd ? static_cast<std::uint8_t>(random.below(256)) : 1;
        if (bytes[id] != 0) want_bytes.add(id, bytes[id]);
      }
      List got(of.size + kListSlack);
      std::uint32_t count =
          of.kernels.listNonZero(row.data(), of.size, got.ids.data(), got.values.data(), &got.all_ones);
      expectList(of, got, count, want);
      List got_halves(of.size + kListSlack), want_halves(0);
      std::vector<std::uint16_t> halves(row.size());
      for (Index i = 0; i < of.size; ++i) {
        const auto id = static_cast<std::uint32_t>(i);
        halves[id] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(row[id]) >> 16);
        const float half = std::bit_cast<float>(std::uint32_t{halves[id]} << 16);
        if (half != 0.0F) want_halves.add(id, half);
      }
      const std::uint32_t count_halves = of.kernels.listNonZeroBfloat16(halves.data(), of.size, got_halves.ids.data(),
                                                                        got_halves.values.data(), &got_halves.all_ones);
      expectList(of, got_halves, count_halves, want_halves);
      // Values are written only where not all are 1.
      if (!odd) expectSame(of, got.values, Floats(got.values.size(), kUnwritten));
      count = of.kernels.listNonZeroBytes(bytes.data(), of.size, got.ids.data(), got.values.data(), &got.all_ones);
      expectList(of, got, count, want_bytes);
    }
  }
}

void bitsAreListedAndExpanded(const Case& of, Random& random) {
  for (const double share : {0.0, 0.05, 0.5, 1.0}) {
    const std::vector<std::uint32_t> want = random.ids(of.size, share);
    Words bits(sizeOf(wordsOf(of.size)));
    Floats numbers(sizeOf(of.size)), got_numbers(sizeOf(of.size), kUnwritten);
    for (const std::uint32_t id : want) {
      bits[id / 64] |= std::uint64_t{1} << (id % 64);
      numbers[id] = 1.0F;
    }
    std::vector<std::uint32_t> got(sizeOf(of.size + kListSlack));
    got.resize(of.kernels.listBits(bits.data(), of.size, got.data()));
    expectSame(of, got, want);
    of.kernels.expandBits(bits.data(), of.size, got_numbers.data());
    expectSame(of, got_numbers, numbers);
  }
}

// Whatever the order of ids; a list that names a neuron twice says so, and so does a row of other numbers.
void onesAndIdsAreMarked(const Case& of, Random& random) {
  for (const double share : {0.0, 0.05, 0.5, 1.0}) {
    std::vector<std::uint32_t> ids = random.ids(of.size, share);
    Words want(sizeOf(wordsOf(of.size))), got(want.size());
    Floats row(sizeOf(of.size), -0.0F);
    for (const std::uint32_t id : ids) {
      want[id / 64] |= std::uint64_t{1} << (id % 64);
      row[id] = 1.0F;
    }
    expect(of, of.kernels.markOnes(row.data(), of.size, got.data()));
    expectSame(of, got, want);
    std::vector<std::uint8_t> scratch(want.size() * 64, 1);
    const auto areDistinct = [&] {
      got.assign(got.size(), ~std::uint64_t{0});
      return of.kernels.markIds(ids.data(), static_cast<std::uint32_t>(ids.size()), wordsOf(of.size), scratch.data(),
                                got.data());
    };
    std::reverse(ids.begin(), ids.end());
    expect(of, areDistinct());
    expectSame(of, got, want);
    if (ids.empty()) continue;
    ids.push_back(ids[sizeOf(random.below(static_cast<Index>(ids.size())))]);
    expect(of, !areDistinct());
    expectSame(of, got, want);
    for (const float other : {2.0F, kNaN, 1.0F + 0x1p-23F, std::numeric_limits<float>::denorm_min()}) {
      Floats spoilt = row;
      spoilt[sizeOf(random.below(of.size))] = other;
      expect(of, !of.kernels.markOnes(spoilt.data(), of.size, got.data()));
    }
  }
}

// Whatever the share of marks; the numbers to expand may be fewer than those.
void markedNumbersAreCompressedAndExpanded(const Case& of, Random& random) {
  for (const double share : {0.0, 0.05, 0.5, 1.0}) {
    const std::vector<std::uint32_t> ids = random.ids(of.size, share);
    Words marks(sizeOf(wordsOf(of.size)));
    for (const std::uint32_t id : ids) marks[id / 64] |= std::uint64_t{1} << (id % 64);
    expect(of, of.kernels.countMarks(marks.data(), wordsOf(of.size)) == static_cast<Index>(ids.size()));
    const Floats row = random.eighths(of.size);
    Floats want, got(ids.size() + sizeOf(kListSlack), kUnwritten);
    for (const std::uint32_t id : ids) want.push_back(row[id]);
    of.kernels.compressMarked(marks.data(), of.size, row.data(), got.data());
    got.resize(ids.size());
    expectSame(of, got, want);
    for (const std::size_t count : {ids.size(), ids.size() / 2, std::size_t{0}}) {
      // Exactly as many numbers as are told: the address sanitizer sees reads past them.
      const Floats numbers(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(count));
      Floats want_row(row.size()), got_row(row.size() + 1, kUnwritten);
      for (std::size_t k = 0; k < count; ++k) want_row[ids[k]] = numbers[k];
      want_row.push_back(kUnwritten);
      of.kernels.expandMarked({marks.data(), numbers.data(), static_cast<Index>(count)}, of.size, got_row.data());
      expectSame(of, got_row, want_row);
    }
  }
}

// Whatever the shares of spikes and of what is listed; each may have fewer numbers than marks.
void listsAreExpanded(const Case& of, Random& random) {
  for (const auto& [spiking, listed] : {std::pair{0.0, 0.0}, {0.0, 0.3}, {0.3, 0.0}, {0.1, 0.1}, {0.5, 1.0}}) {
    std::vector<std::uint32_t> spikes = random.ids(of.size, spiking), others;
    Words spike_marks(sizeOf(wordsOf(of.size))), marks = spike_marks;
    for (const std::uint32_t id : spikes) spike_marks[id / 64] |= std::uint64_t{1} << (id % 64);
    for (const std::uint32_t id : random.ids(of.size, listed)) {  // spikes among them
      marks[id / 64] |= std::uint64_t{1} << (id % 64);
      if ((spike_marks[id / 64] >> (id % 64) & 1) == 0) others.push_back(id);
    }
    for (const std::size_t part : {1, 2}) {
      Floats want(sizeOf(of.size));
      const auto numbersOf = [&](const std::vector<std::uint32_t>& ids) {
        const Floats numbers = random.eighths(static_cast<Index>(ids.size() / part));
        for (std::size_t k = 0; k < numbers.size(); ++k) want[ids[k]] = numbers[k];
        return numbers;
      };
      // Exactly as many numbers as are told, as above.
      const Floats of_spikes = numbersOf(spikes), of_others = numbersOf(others);
      const auto partOf = [](const Words& all, const Floats& numbers) {
        return MarkedNumbers{all.data(), numbers.data(), static_cast<Index>(numbers.size())};
      };
      Floats got(sizeOf(of.size) + 1, kUnwritten);
      want.push_back(kUnwritten);
      of.kernels.expandList(partOf(spike_marks, of_spikes), partOf(marks, of_others), of.size, got.data());
      expectSame(of, got, want);
      of.kernels.addList(partOf(spike_marks, of_spikes), partOf(marks, of_others), of.size, got.data());
      std::transform(want.begin(), want.end() - 1, want.begin(), [](float x) { return x + x; });
      expectSame(of, got, want);
    }
  }
}

// Lists of `of.size` slots. `unused`: the share of slots whose id names no neuron; the last ones where `at_end`.
template <typename Id, typename Value>
void entriesAreListed(const Case& of, Random& random, double unused, bool at_end, bool odd) {
  constexpr Index kRows = 3, kWidth = 300;
  constexpr bool kShortIds = sizeof(Id) == 2, kShortValues = sizeof(Value) == 2;
  const Index outside[] = {kWidth, kShortIds ? 65535 : -1, kShortIds ? 32768 : INT32_MIN, kWidth + 1};
  std::vector<Id> ids;
  std::vector<Value> values;
  std::vector<List> want(kRows, List(0));
  for (List& list : want) {
    for (Index slot = 0; slot < of.size; ++slot) {
      const bool is_used =
          at_end ? static_cast<double>(slot) >= unused * static_cast<double>(of.size) : !random.happens(unused);
      const Index id = is_used ? random.below(kWidth) : outside[random.below(std::size(outside))];
      const float drawn = odd ? oddNumber(random) : 1.0F;
      // Of a bfloat16 number the upper half of a float32 is there.
      const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, drawn) & (kShortValues ? 0xffff0000U : 0xffffffffU);
      const auto value = __builtin_bit_cast(float, bits);
      ids.push_back(static_cast<Id>(id));
      if constexpr (kShortValues) {
        values.push_back(static_cast<Value>(bits >> 16));
      } else {
        values.push_back(value);
      }
      if (is_used && value != 0.0F) list.add(static_cast<std::uint32_t>(id), value);
    }
  }
  for (Index row = 0; row < kRows; ++row) {
    List got(of.size);
    const EntryLists from{ids.data(), kShortIds, values.data(), kShortValues, of.size, kWidth};
    const std::uint32_t count = of.kernels.listEntries(from, row, got.ids.data(), got.values.data(), &got.all_ones);
    expectList(of, got, count, want[sizeOf(row)]);
  }
}

void entriesOfEveryTypeAreListed(const Case& of, Random& random) {
  for (const double unused : {0.0, 0.3, 1.0}) {
    for (const bool at_end : {false, true}) {
      for (const bool odd : {false, true}) {
        entriesAreListed<std::uint16_t, float>(of, random, unused, at_end, odd);
        entriesAreListed<std::uint16_t, std::uint16_t>(of, random, unused, at_end, odd);
        entriesAreListed<std::int32_t, float>(of, random, unused, at_end, odd);
        entriesAreListed<std::int32_t, std::uint16_t>(of, random, unused, at_end, odd);
      }
    }
  }
}

// Whatever is compared with NaN is not above it.
void neuronsAreMarked(const Case& of, Random& random) {
  const auto number = [&] { return random.happens(0.2) ? oddNumber(random) : random.eighth(); };
  Floats v(sizeOf(of.size)), threshold(v.size()), second(v.size());
  Words want(sizeOf(wordsOf(of.size))), want_near(want.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    v[i] = number();
    threshold[i] = number();
    second[i] = number();
    const bool spikes = v[i] > threshold[i];
    want[i / 64] |= std::uint64_t{spikes} << (i % 64);
    want_near[i / 64] |= std::uint64_t{!spikes && v[i] > second[i]} << (i % 64);
  }
  Words got = random.words(wordsOf(of.size)), near = random.words(wordsOf(of.size));
  of.kernels.mark(v.data(), threshold.data(), second.data(), of.size, got.data(), near.data());
  expectSame(of, got, want);
  expectSame(of, near, want_near);
}

}  // namespace

// A network of no inputs: nothing is where they would be.
void noNeuronsAreMarked(const Case& of, Random&) { expect(of, of.kernels.markIds(nullptr, 0, 0, nullptr, nullptr)); }

int main() {
  forEachSet(rowsAreListed);
  forEachSet(bitsAreListedAndExpanded);
  forEachSet(onesAndIdsAreMarked);
  forEachSet(markedNumbersAreCompressedAndExpanded);
  forEachSet(listsAreExpanded);
  forEachSet(entriesOfEveryTypeAreListed);
  forEachSet(neuronsAreMarked);
  forEachSet(noNeuronsAreMarked, {0});
  return check::failures;
}
