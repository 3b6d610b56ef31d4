// Patches of convolutions over outputs with pixels around them, one vector of each pixel: no patch is cut off, and all
// begin on a vector. A patch is taken in pieces of up to 3 x 3 pixels, whose sums stay in registers.
#pragma once

#include "../kernels.hpp"
#include "simd.hpp"

namespace snnjax::SNNJAX_ISA {

constexpr Index kPieceEdge = 3;

// Calls work.operator()<rows, columns>(first weight, first number of outputs) for every piece of a patch.
template <typename Work>
[[gnu::always_inline]] inline void eachPiece(const PaddedPatch& patch, Work work) {
  const auto inRows = [&]<int kRows>(Index y) {
    for (Index x = 0; x < patch.columns; x += kPieceEdge) {
      const Index weight = (y * patch.columns + x) * kLanes, output = y * patch.row + x * kLanes;
      switch (patch.columns - x) {
        case 1: work.template operator()<kRows, 1>(weight, output); break;
        case 2: work.template operator()<kRows, 2>(weight, output); break;
        default: work.template operator()<kRows, 3>(weight, output);
      }
    }
  };
  for (Index y = 0; y < patch.rows; y += kPieceEdge) {
    switch (patch.rows - y) {
      case 1: inRows.template operator()<1>(y); break;
      case 2: inRows.template operator()<2>(y); break;
      default: inRows.template operator()<3>(y);
    }
  }
}

// Calls work(row, column) for the vectors of a piece.
template <int kRows, int kColumns, typename Work>
[[gnu::always_inline]] inline void eachVector(Work work) {
  SNNJAX_UNROLL
  for (int y = 0; y < kRows; ++y) {
    SNNJAX_UNROLL
    for (int x = 0; x < kColumns; ++x) work(y, x);
  }
}

// Adds spikes to a piece of the weights. A piece of few vectors has several sums, so that as many additions are in
// flight as one takes cycles.
template <int kRows, int kColumns, bool kHasValues>
[[gnu::always_inline]] inline void addToPiece(const PaddedPatch& patch, const PatchPlaces& spikes, Index channel,
                                              const float* g, float* weights) {
  constexpr int kVectors = kRows * kColumns, kSums = kVectors >= 4 ? 1 : 4 / kVectors;
  const Index row = patch.row, of_row = patch.columns * kLanes;
  Floats sums[kSums][kRows][kColumns] = {};
  eachVector<kRows, kColumns>([&](int y, int x) { sums[0][y][x] = load(weights + y * of_row + x * kLanes); });
  const auto add = [&](int sum, Index k) {
    const float* from = g + spikes.places[k];
    eachVector<kRows, kColumns>([&](int y, int x) {
      const Floats own = load(from + y * row + x * kLanes);
      sums[sum][y][x] += kHasValues ? spikes.values[k] * own : own;
    });
  };
  Index k = spikes.starts[channel];
  const Index end = spikes.starts[channel + 1];
  for (; k + kSums <= end; k += kSums) {
    SNNJAX_UNROLL
    for (int sum = 0; sum < kSums; ++sum) add(sum, k + sum);
  }
  for (; k < end; ++k) add(0, k);
  SNNJAX_UNROLL
  for (int sum = 1; sum < kSums; ++sum) {
    eachVector<kRows, kColumns>([&](int y, int x) { sums[0][y][x] += sums[sum][y][x]; });
  }
  eachVector<kRows, kColumns>([&](int y, int x) { store(weights + y * of_row + x * kLanes, sums[0][y][x]); });
}

inline void addPaddedGradients(const PaddedPatch& patch, const PatchPlaces& spikes, const float* g, float* weights) {
  const Index of_channel = patch.rows * patch.columns * kLanes;
  eachPiece(patch, [&]<int kRows, int kColumns>(Index weight, Index output) {
    for (Index c = 0; c < spikes.channels; ++c) {
      if (spikes.starts[c] == spikes.starts[c + 1]) continue;
      if (spikes.values == nullptr) {
        addToPiece<kRows, kColumns, false>(patch, spikes, c, g + output, weights + c * of_channel + weight);
      } else {
        addToPiece<kRows, kColumns, true>(patch, spikes, c, g + output, weights + c * of_channel + weight);
      }
    }
  });
}

// Meanwhile the next row is fetched: hardware does not follow such strides from memory fast enough.
inline void padRow(Rows<const float> from, Index pixels, Index columns, float* to) {
  for (Index i = 0; i < pixels; ++i) {
    __builtin_prefetch(from.row(i + pixels));
    store(to + i * kLanes, columns < kLanes ? loadPart(from.row(i), columns) : load(from.row(i)));
  }
}

}  // namespace snnjax::SNNJAX_ISA
