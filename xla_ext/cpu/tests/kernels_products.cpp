// Products of every instruction set of this machine compared with plain loops. The numbers are eighths, so that all
// sums are exact, in any order and with any instructions.
#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "cpu/numbers.hpp"
#include "kernel_checks.hpp"

namespace {

using namespace kernel_checks;

constexpr Index kNeurons = 40;

// Rows of spikes, with values or without.
struct Spikes {
  std::vector<std::vector<std::uint32_t>> ids;
  std::vector<Floats> values;
  std::vector<SpikeRow> rows;

  Spikes(Random& random, Index count, Index neurons, bool weighted) : ids(sizeOf(count)), values(sizeOf(count)) {
    for (std::size_t r = 0; r < ids.size(); ++r) {
      ids[r] = random.ids(neurons, r == 0 ? 0.0 : 0.4);  // one row is empty
      values[r] = random.eighths(static_cast<Index>(ids[r].size()));
      rows.push_back(
          {ids[r].data(), weighted ? values[r].data() : nullptr, static_cast<std::uint32_t>(ids[r].size()), false});
    }
  }

  float value(Index r, std::size_t k) const { return rows[sizeOf(r)].values == nullptr ? 1.0F : values[sizeOf(r)][k]; }
};

// Where sums begin: at 0, at a row that all share, at rows of their own, or at what is in the results.
enum class Start { None, Shared, Own, Results };
constexpr std::initializer_list<Start> kStarts{Start::None, Start::Shared, Start::Own, Start::Results};

Rows<const float> startOf(Start kind, const Matrix& own, const Matrix& results) {
  switch (kind) {
    case Start::None: return {nullptr, 0};
    case Start::Shared: return {own.numbers.data(), 0};
    case Start::Own: return own.rows();
    case Start::Results: return results.rows();
  }
  return {};
}

float startAt(Start kind, const Matrix& own, const Matrix& results, Index r, Index c) {
  if (kind == Start::None) return 0.0F;
  return kind == Start::Results ? results.at(r, c) : own.at(kind == Start::Shared ? 0 : r, c);
}

void rowsAreSummed(const Case& of, Random& random) {
  constexpr Index kRows = 4;
  const Index columns = of.size;
  const Matrix weights(random, kNeurons, columns), own(random, kRows, columns);
  std::vector<std::uint16_t> bfloat16;  // eighths below 2 have five bits, and so fit
  for (const float x : weights.numbers) {
    bfloat16.push_back(static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, x) >> 16));
  }
  for (const bool weighted : {false, true}) {
    const Spikes spikes(random, kRows, kNeurons, weighted);
    for (const Start start : kStarts) {
      Matrix want(random, kRows, columns), got = want, got_bfloat16 = want;
      for (Index r = 0; r < kRows; ++r) {
        for (Index c = 0; c < columns; ++c) {
          float sum = startAt(start, own, want, r, c);
          for (std::size_t k = 0; k < spikes.ids[sizeOf(r)].size(); ++k) {
            sum += spikes.value(r, k) * weights.at(spikes.ids[sizeOf(r)][k], c);
          }
          want.at(r, c) = sum;
        }
      }
      of.kernels.sumRows(spikes.rows.data(), kRows, weights.rows(), columns, startOf(start, own, got), got.toWrite());
      expectSame(of, got.numbers, want.numbers);
      of.kernels.sumRowsBfloat16(spikes.rows.data(), kRows, {bfloat16.data(), weights.stride}, columns,
                                 startOf(start, own, got_bfloat16), got_bfloat16.toWrite());
      expectSame(of, got_bfloat16.numbers, want.numbers);
    }
  }
}

// Whole numbers, scaled by eighths once they are summed: more rows than 16 bits can sum, of the largest numbers too.
void rowsOfInt8AreSummed(const Case& of, Random& random) {
  constexpr Index kRows = 3, kMany = 600;
  const Index columns = of.size, stride = columns + 3;
  std::vector<std::int8_t> weights;
  for (Index i = 0; i < kMany * stride; ++i) {
    weights.push_back(static_cast<std::int8_t>(i % stride == 0 ? -128 : random.below(256) - 128));
  }
  const Matrix own(random, kRows, columns);
  const Floats scale = random.eighths(columns);
  for (const bool weighted : {false, true}) {
    const Spikes spikes(random, kRows, kMany, weighted);
    for (const Start start : kStarts) {
      Matrix want(random, kRows, columns), got = want;
      for (Index r = 0; r < kRows; ++r) {
        for (Index c = 0; c < columns; ++c) {
          float sum = 0.0F;
          for (std::size_t k = 0; k < spikes.ids[sizeOf(r)].size(); ++k) {
            const std::int8_t weight = weights[sizeOf(static_cast<Index>(spikes.ids[sizeOf(r)][k]) * stride + c)];
            sum += spikes.value(r, k) * static_cast<float>(weight);
          }
          want.at(r, c) = startAt(start, own, want, r, c) + scale[sizeOf(c)] * sum;
        }
      }
      of.kernels.sumRowsInt8(spikes.rows.data(), kRows, {weights.data(), stride}, columns, scale.data(),
                             startOf(start, own, got), got.toWrite());
      expectSame(of, got.numbers, want.numbers);
    }
  }
}

void dotsAreTaken(const Case& of, Random& random) {
  const Matrix weights(random, kNeurons, of.size);
  const Floats g = random.eighths(of.size);
  for (Index count = 0; count < 9; ++count) {  // four rows at once, two, and one
    std::vector<std::uint32_t> ids;
    Floats want, got(sizeOf(count));
    for (Index k = 0; k < count; ++k) {
      ids.push_back(static_cast<std::uint32_t>(random.below(kNeurons)));
      float sum = 0.0F;
      for (Index c = 0; c < of.size; ++c) sum += weights.at(ids.back(), c) * g[sizeOf(c)];
      want.push_back(sum);
    }
    of.kernels.dotRows(ids.data(), count, weights.rows(), of.size, g.data(), got.data());
    expectSame(of, got, want);
  }
}

// The other products take whole vectors of columns: `of.size` is their number.
void rowsAreAddedTo(const Case& of, Random& random) {
  constexpr Index kRows = 4;
  const Index columns = of.size * of.kernels.lanes;
  const Matrix g(random, kRows, columns);
  for (const bool weighted : {false, true}) {
    const Spikes spikes(random, kRows, kNeurons, weighted);
    Matrix want(random, kNeurons, columns), got = want;
    for (Index r = 0; r < kRows; ++r) {
      for (std::size_t k = 0; k < spikes.ids[sizeOf(r)].size(); ++k) {
        for (Index c = 0; c < columns; ++c) want.at(spikes.ids[sizeOf(r)][k], c) += spikes.value(r, k) * g.at(r, c);
      }
    }
    of.kernels.addRows(spikes.rows.data(), kRows, got.toWrite(), columns, g.rows());
    expectSame(of, got.numbers, want.numbers);
  }
}

// `dense` @ `weights`, as all of them define it.
Matrix product(const Matrix& dense, Index rows, Index depth, const Matrix& weights, Index columns, Start start,
               const Matrix& own, Matrix results) {
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) {
      float sum = startAt(start, own, results, r, c);
      for (Index k = 0; k < depth; ++k) sum += dense.at(r, k) * weights.at(k, c);
      results.at(r, c) = sum;
    }
  }
  return results;
}

// Weights in panels of two vectors of columns, or one at last.
Floats panelsOf(const Case& of, const Matrix& weights, Index depth, Index columns) {
  Floats panels;
  for (Index first = 0; first < columns; first += 2 * of.kernels.lanes) {
    const Index behind = std::min(columns, first + 2 * of.kernels.lanes);
    for (Index k = 0; k < depth; ++k) {
      for (Index c = first; c < behind; ++c) panels.push_back(weights.at(k, c));
    }
  }
  return panels;
}

void multiply(const Case& of, Random& random, Index rows, Index depth) {
  const Index columns = of.size * of.kernels.lanes;
  const Matrix dense(random, rows, depth), weights(random, depth, columns),
      own(random, std::max(rows, Index{1}), columns);
  const Floats panels = panelsOf(of, weights, depth, columns);
  for (const Start start : kStarts) {
    Matrix got(random, rows, columns), got_panels = got;
    const Matrix want = product(dense, rows, depth, weights, columns, start, own, got);
    expect(of, of.kernels.multiplyRows(dense.rows(), rows, depth, weights.rows(), columns, startOf(start, own, got),
                                       got.toWrite()));
    expectSame(of, got.numbers, want.numbers);
    // The same rows as two blocks, where they are an even number.
    const RowBlocks whole{dense.rows(), rows}, halves{dense.rows(), rows / 2, 2, rows / 2 * dense.stride};
    of.kernels.multiplyPanels(rows % 2 == 0 && rows > 0 ? halves : whole, depth, panels.data(), columns,
                              startOf(start, own, got_panels), got_panels.toWrite());
    expectSame(of, got_panels.numbers, want.numbers);
  }
}

void densesAreMultiplied(const Case& of, Random& random) {
  for (Index rows = 0; rows <= of.kernels.tile_rows + 3; ++rows) {
    for (const Index depth : {0, 1, 7}) multiply(of, random, rows, depth);
  }
  multiply(of, random, 2 * of.kernels.tile_rows, 600);  // more than stays in the first-level cache
}

// Numbers in [1, 2) with `bits` bits behind the eight that a bfloat16 holds.
Matrix longNumbers(Random& random, Index rows, Index columns, int bits) {
  Matrix made(random, rows, columns);
  const Index one = Index{128} << bits;
  for (float& x : made.numbers) x = static_cast<float>(one + random.below(one)) / static_cast<float>(one);
  return made;
}

// The product of numbers split into so many parts; false where the kernel says that it may not be that of float32.
bool multiplySplit(const Case& of, Random& random, const Matrix& dense, Index rows, Index depth, Index parts,
                   const Matrix& weights, Matrix& out) {
  const Index columns = of.size * of.kernels.lanes, length = of.kernels.splitLength(depth, parts);
  const Floats panels = panelsOf(of, weights, depth, columns);
  Floats split_panels(sizeOf(length * columns));
  Matrix split(random, rows, length);
  of.kernels.splitRows({dense.rows(), rows}, depth, parts, split.toWrite());
  of.kernels.splitPanels(panels.data(), depth, columns, parts, split_panels.data());
  return of.kernels.multiplySplit(std::as_const(split).rows(), rows, depth, parts, split_panels.data(), columns,
                                  out.toWrite());
}

void multiplyRounded(const Case& of, Random& random, Index rows, Index depth, int bits) {
  const Index columns = of.size * of.kernels.lanes;
  const Matrix dense = longNumbers(random, rows, depth, bits);
  const Matrix weights = longNumbers(random, depth, columns, bits);
  Matrix got(random, rows, columns), want = got;
  const auto nearest = [](float x) { return fromBfloat16(toBfloat16(x)); };
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) {
      want.at(r, c) = 0.0F;
      for (Index k = 0; k < depth; ++k) want.at(r, c) += nearest(dense.at(r, k)) * nearest(weights.at(k, c));
    }
  }
  multiplySplit(of, random, dense, rows, depth, 1, weights, got);
  expectSame(of, got.numbers, want.numbers);
}

// Products of two numbers in steps of 2^-7 are below 4: their sums are exact as long as they are below 1024.
void roundedAreMultiplied(const Case& of, Random& random) {
  for (Index rows = 0; rows <= of.kernels.tile_rows + 3; ++rows) {
    for (const Index depth : {0, 1, 7, 16, 33}) multiplyRounded(of, random, rows, depth, static_cast<int>(rows % 4));
  }
  for (const Index rows : {15, 16, 17, 31, 32, 33, 70}) multiplyRounded(of, random, rows, 40, 0);
  multiplyRounded(of, random, 2 * of.kernels.tile_rows, 255, 0);
}

// Numbers of all 24 bits and of either sign. What is left out is at most 2^-24 of a product, and each of some roundings
// of a sum as much of it; those of many terms add up like random steps.
void multiplyParts(const Case& of, Random& random, Index rows, Index depth) {
  constexpr int kBits = 16;  // behind those of a bfloat16
  const Index columns = of.size * of.kernels.lanes;
  Matrix dense = longNumbers(random, rows, depth, kBits), weights = longNumbers(random, depth, columns, kBits);
  for (float& x : dense.numbers) x = random.happens(0.5) ? x : -x;
  for (float& x : weights.numbers) x = random.happens(0.5) ? x : -x;
  Matrix got(random, rows, columns);
  expect(of, multiplySplit(of, random, dense, rows, depth, 3, weights, got));
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) {
      double want = 0.0, size = 0.0;
      for (Index k = 0; k < depth; ++k) {
        want += double{dense.at(r, k)} * double{weights.at(k, c)};
        size += std::abs(double{dense.at(r, k)} * double{weights.at(k, c)});
      }
      const double half_a_bit = std::ldexp(1.0, -24), roundings = 2.0 * std::sqrt(static_cast<double>(depth));
      expect(of, std::abs(double{got.at(r, c)} - want) <= (1.0 + roundings) * half_a_bit * size);
    }
  }
}

void partsMakeUpFloats(const Case& of, Random& random) {
  if (of.kernels.parts_of_float == 0) return;
  for (const Index rows : {1, 5, 16, 17, 32, 45}) {
    for (const Index depth : {1, 16, 33, 100}) multiplyParts(of, random, rows, depth);
  }
}

// Whatever is not finite, or no longer when it is rounded, is told of wherever it stands.
void partsThatAreNotFiniteAreTold(const Case& of, Random& random) {
  const Index columns = of.size * of.kernels.lanes;
  if (of.kernels.parts_of_float == 0 || columns == 0) return;
  constexpr float kLimit = std::numeric_limits<float>::max(), kInfinity = std::numeric_limits<float>::infinity();
  const float nan_of_all_bits = std::bit_cast<float>(0xffffffffU), nan_of_one_bit = std::bit_cast<float>(0x7f800001U);
  for (const float odd : {std::nanf(""), nan_of_all_bits, nan_of_one_bit, kInfinity, -kInfinity, kLimit}) {
    constexpr Index kRows = 19, kDepth = 40;
    Matrix dense(random, kRows, kDepth), weights(random, kDepth, columns), out(random, kRows, columns);
    for (float& x : dense.numbers) x = 1.0F;
    for (float& x : weights.numbers) x = 1.0F;
    dense.at(random.below(kRows), random.below(kDepth)) = odd;
    expect(of, !multiplySplit(of, random, dense, kRows, kDepth, 3, weights, out));
    for (float& x : dense.numbers) x = 1.0F;
    weights.at(random.below(kDepth), random.below(columns)) = odd;
    expect(of, !multiplySplit(of, random, dense, kRows, kDepth, 3, weights, out));
  }
}

void productsAreAdded(const Case& of, Random& random) {
  const Index columns = of.size * of.kernels.lanes;
  for (const Index rows : {0, 1, 5}) {
    for (Index depth = 0; depth <= 2 * of.kernels.tile_rows + 1; ++depth) {
      const Matrix dense(random, rows, depth), g(random, rows, columns);
      Matrix want(random, depth, columns), got = want;
      for (Index k = 0; k < depth; ++k) {
        for (Index c = 0; c < columns; ++c) {
          for (Index r = 0; r < rows; ++r) want.at(k, c) += dense.at(r, k) * g.at(r, c);
        }
      }
      of.kernels.addProducts(dense.rows(), rows, depth, got.toWrite(), columns, g.rows());
      expectSame(of, got.numbers, want.numbers);
    }
  }
}

// One weight that is not finite makes one column so, and a single one is told of.
void resultsThatAreNotFiniteAreTold(const Case& of, Random& random) {
  constexpr Index kDepth = 3;
  const Index rows = of.kernels.tile_rows + 1, columns = of.size * of.kernels.lanes;
  if (columns == 0) return;
  const Matrix dense(random, rows, kDepth);
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Matrix start(random, rows, columns), weights(random, kDepth, columns), out = start;
    start.at(rows - 1, random.below(columns)) = odd;
    expect(of,
           !of.kernels.multiplyRows(dense.rows(), rows, kDepth, weights.rows(), columns, start.rows(), out.toWrite()));
    // What is not listed is not read: it may be anything.
    for (Index c = 0; c < columns; ++c) weights.at(1, c) = odd;
    const std::uint32_t ids[] = {0, 2};
    const SpikeRow spikes{ids, nullptr, 2, false};
    Floats sums(sizeOf(columns)), want(sums.size());
    for (Index c = 0; c < columns; ++c) want[sizeOf(c)] = weights.at(0, c) + weights.at(2, c);
    of.kernels.sumRows(&spikes, 1, weights.rows(), columns, {nullptr, 0}, {sums.data(), 0});
    expectSame(of, sums, want);
  }
}

// Patches over an image of `kPixels` pixels of outputs a row, from its border inwards; some are empty.
struct Image {
  static constexpr Index kPixels = 6, kChannels = 4;
  Index groups, outputs_of_group, outputs = groups * outputs_of_group, row = kPixels * outputs;
  std::vector<PixelPatch> of_pixel;
  std::vector<std::uint32_t> ids;
  Floats values, weights, g;

  Image(Random& random, Index of_groups, Index of_outputs) : groups(of_groups), outputs_of_group(of_outputs) {
    constexpr Index kRows = 4, kKernel = 3;  // rows of outputs, and the largest patch
    const Index row_of_weights = kKernel * outputs_of_group, channel = kKernel * row_of_weights;
    for (Index pixel = 0; pixel < 12; ++pixel) {
      const Index rows = random.below(kKernel + 1), pixels = random.below(kKernel + 1);
      const Index first = random.below(kRows - rows + 1) * row + random.below(kPixels - pixels + 1) * outputs;
      const auto narrow = [](Index x) { return static_cast<std::uint32_t>(x); };
      of_pixel.push_back({narrow(random.below(kKernel - pixels + 1) * outputs_of_group), narrow(channel),
                          narrow(row_of_weights), narrow(first), narrow(rows), narrow(pixels)});
    }
    ids = random.ids(static_cast<Index>(of_pixel.size()) * kChannels, 0.6);
    values = random.eighths(static_cast<Index>(ids.size()));
    weights = random.eighths(kChannels * channel);
    g = random.eighths(kRows * row);
  }

  PixelPatches patches(Index first, Index columns) const {
    const auto channels = static_cast<std::uint32_t>(kChannels);
    return {of_pixel.data(), channels, channels / static_cast<std::uint32_t>(groups), outputs_of_group, outputs, row,
            first,           columns};
  }

  // Calls visit(k, weight, output) for each weight that spike k meets, and the output that it is added to.
  template <typename Visit>
  void forEachPair(Visit visit) const {
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const PixelPatch& patch = of_pixel[ids[k] / kChannels];
      const Index channel = ids[k] % kChannels, group = channel / (kChannels / groups);
      for (Index r = 0; r < patch.rows; ++r) {
        for (Index i = 0; i < patch.pixels; ++i) {
          for (Index o = 0; o < outputs_of_group; ++o) {
            visit(k, patch.weights + channel * patch.channel + r * patch.row + i * outputs_of_group + o,
                  patch.out + r * row + i * outputs + group * outputs_of_group + o);
          }
        }
      }
    }
  }
};

// `of.size`: outputs of a pixel and a group.
void patchesAreAddedAndDotted(const Case& of, Random& random) {
  for (const Index groups : {1, 2}) {
    const Image image(random, groups, of.size + 1);
    const auto all = static_cast<Index>(image.g.size());
    for (const auto& [first, columns] :
         {std::pair{Index{0}, all}, std::pair{all / 3, all / 2}, std::pair{Index{0}, Index{0}}}) {
      for (const bool weighted : {false, true}) {
        const float* values = weighted ? image.values.data() : nullptr;
        const SpikeRow spikes{image.ids.data(), values, static_cast<std::uint32_t>(image.ids.size()), false};
        Floats want_out = random.eighths(columns), out = want_out;
        Floats want_weights = random.eighths(static_cast<Index>(image.weights.size())), weights = want_weights;
        Floats want_dots(image.ids.size()), dots = random.eighths(static_cast<Index>(image.ids.size()));
        image.forEachPair([&, first = first, columns = columns](std::size_t k, Index weight, Index output) {
          if (output < first || output >= first + columns) return;
          const float value = weighted ? image.values[k] : 1.0F, own = image.weights[sizeOf(weight)];
          want_out[sizeOf(output - first)] += value * own;
          want_weights[sizeOf(weight)] += value * image.g[sizeOf(output)];
          want_dots[k] += own * image.g[sizeOf(output)];
        });
        const PixelPatches patches = image.patches(first, columns);
        const float* g = image.g.data() + first;
        of.kernels.addPatches(spikes, patches, image.weights.data(), out.data());
        expectSame(of, out, want_out);
        of.kernels.addPatchGradients(spikes, patches, weights.data(), g);
        expectSame(of, weights, want_weights);
        of.kernels.dotPatches(image.ids.data(), static_cast<Index>(image.ids.size()), patches, image.weights.data(), g,
                              dots.data());
        expectSame(of, dots, want_dots);
      }
    }
  }
}

// Patches of every size over padded outputs; `of.size`: spikes of a channel at most.
void paddedPatchesAreAdded(const Case& of, Random& random) {
  constexpr Index kChannels = 3;
  const Index lanes = of.kernels.lanes;
  for (Index rows = 1; rows <= 5; ++rows) {
    for (Index columns = 1; columns <= 5; ++columns) {
      const PaddedPatch patch{rows, columns, (columns + random.below(4)) * lanes};
      const Floats g = random.eighths((rows + 6) * patch.row);
      std::vector<std::uint32_t> starts{0}, places;
      for (Index c = 0; c < kChannels; ++c) {
        for (Index k = c == 0 ? of.size : random.below(of.size + 1); k > 0; --k) {
          const Index x = random.below(patch.row / lanes - columns + 1);
          places.push_back(static_cast<std::uint32_t>(random.below(6) * patch.row + x * lanes));
        }
        starts.push_back(static_cast<std::uint32_t>(places.size()));
      }
      const Floats values = random.eighths(static_cast<Index>(places.size()));
      const Index of_channel = rows * columns * lanes;
      for (const bool weighted : {false, true}) {
        const PatchPlaces spikes{kChannels, starts.data(), places.data(), weighted ? values.data() : nullptr};
        Floats weights = random.eighths(kChannels * of_channel), want_weights = weights;
        for (Index c = 0; c < kChannels; ++c) {
          for (std::size_t k = starts[sizeOf(c)]; k < starts[sizeOf(c + 1)]; ++k) {
            for (Index i = 0; i < of_channel; ++i) {
              const Index pixel = i / lanes, at = pixel / columns * patch.row + pixel % columns * lanes + i % lanes;
              const float seen = g[places[k] + sizeOf(at)];
              want_weights[sizeOf(c * of_channel + i)] += (weighted ? values[k] : 1.0F) * seen;
            }
          }
        }
        of.kernels.addPaddedGradients(patch, spikes, g.data(), weights.data());
        expectSame(of, weights, want_weights);
      }
    }
  }
}

// `of.size`: outputs of a pixel, of which a vector is read.
void rowsArePadded(const Case& of, Random& random) {
  constexpr Index kPixels = 5;
  const Matrix from(random, kPixels, of.size, 3);
  const Index lanes = of.kernels.lanes, columns = std::min(of.size, lanes);
  Floats want(sizeOf(kPixels * lanes)), got = random.eighths(kPixels * lanes);
  for (Index i = 0; i < kPixels; ++i) {
    for (Index c = 0; c < columns; ++c) want[sizeOf(i * lanes + c)] = from.at(i, c);
  }
  of.kernels.padRow(from.rows(), kPixels, columns, got.data());
  expectSame(of, got, want);
}

}  // namespace

int main() {
  forEachSet(rowsAreSummed);
  forEachSet(rowsOfInt8AreSummed);
  forEachSet(dotsAreTaken);
  const std::vector<Index> vectors{0, 1, 2, 3, 5, 8, 13};
  forEachSet(rowsAreAddedTo, vectors);
  forEachSet(densesAreMultiplied, vectors);
  forEachSet(roundedAreMultiplied, vectors);
  forEachSet(partsMakeUpFloats, vectors);
  forEachSet(partsThatAreNotFiniteAreTold, vectors);
  forEachSet(productsAreAdded, vectors);
  forEachSet(resultsThatAreNotFiniteAreTold, vectors);
  forEachSet(patchesAreAddedAndDotted, {0, 1, 3, 4, 6, 7, 15, 16, 32, 40, 64});
  forEachSet(paddedPatchesAreAdded, {0, 1, 3, 4, 5, 11});
  forEachSet(rowsArePadded, vectors);
  return check::failures;
}
