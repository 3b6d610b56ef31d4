// Products of split numbers (split_products.hpp) on the matrix unit of Intel's server processors: AMX, in Sapphire
// Rapids and newer. Its instruction multiplies a tile of 16 rows of 32 bfloat16 numbers with one of 16 columns and adds
// to a tile of 16 x 16 sums in float32. Even the six products that make up one of float32 take less than half the time
// of AVX-512's, and their sums round less. The unit takes subnormal numbers for 0.
#pragma once

#include "split_products.hpp"

#if defined(__AVX512F__)

namespace snnjax::SNNJAX_ISA {

#define SNNJAX_TILES __attribute__((target("amx-tile,amx-bf16")))

inline constexpr Index kRowsOfTile = 16, kPairsOfTile = kPairedDepth / 2;
inline constexpr Index kRowBytes = 64;  // of a tile

// What the instruction that configures the tiles reads ("Intel 64 and IA-32 Architectures Software Developer's
// Manual", volume 2, LDTILECFG). Tiles 0 to 3 are sums, two rows of two; 4 and 5 rows of numbers; 6 and 7 columns.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  TileShapes(Index first_rows, Index second_rows) {
    const Index of_tiles[] = {first_rows, first_rows,  second_rows,  second_rows,
                              first_rows, second_rows, kPairsOfTile, kPairsOfTile};
    for (int tile = 0; tile < 8; ++tile) {
      row_bytes[tile] = of_tiles[tile] == 0 ? 0 : static_cast<std::uint16_t>(kRowBytes);
      rows[tile] = static_cast<std::uint8_t>(of_tiles[tile]);
    }
  }
};

// Up to 32 split rows and a split panel of one or two vectors of columns; lengths in pairs.
struct TileFactors {
  const float* rows;
  Index stride;        // of the rows
  const float* panel;  // of kVectors * kLanes columns
  Index pairs;         // of a part
};

// Two tiles of rows, or one, whose products then go by turns to two tiles of sums: a sum that follows another too soon
// would wait for it.
template <bool kTwoTiles, int kVectors>
SNNJAX_TILES inline void loadRows(const TileFactors& of, Index part, Index pair) {
  const float* const from = of.rows + part * of.pairs + pair;
  _tile_loadd(4, from, of.stride * 4);
  if constexpr (kTwoTiles) _tile_loadd(5, from + kRowsOfTile * of.stride, of.stride * 4);
}

template <bool kTwoTiles, int kVectors>
SNNJAX_TILES inline void loadColumns(const TileFactors& of, Index part, Index pair) {
  const float* const from = of.panel + (part * of.pairs + pair) * kVectors * kLanes;
  _tile_loadd(6, from, kVectors * kRowBytes);
  if constexpr (kVectors == 2) _tile_loadd(7, from + kLanes, kVectors * kRowBytes);
}

template <bool kTwoTiles, int kVectors>
SNNJAX_TILES inline void addTiles(bool to_second) {
  if (kTwoTiles || !to_second) {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kVectors == 2) _tile_dpbf16ps(1, 4, 7);
  }
  if constexpr (kTwoTiles) {
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kVectors == 2) _tile_dpbf16ps(3, 5, 7);
  } else if (to_second) {
    _tile_dpbf16ps(2, 4, 6);
    if constexpr (kVectors == 2) _tile_dpbf16ps(3, 4, 7);
  }
}

// The smallest products first, and no tile is loaded twice in a row.
template <bool kTwoTiles, int kVectors>
SNNJAX_TILES inline void multiplyParts(const TileFactors& of, Index parts) {
  constexpr auto rows = loadRows<kTwoTiles, kVectors>;
  constexpr auto columns = loadColumns<kTwoTiles, kVectors>;
  constexpr auto add = addTiles<kTwoTiles, kVectors>;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (Index pair = 0; pair < of.pairs; pair += kPairsOfTile) {
    rows(of, 0, pair);
    if (parts == 1) {
      columns(of, 0, pair);
      add(pair / kPairsOfTile % 2 != 0);
      continue;
    }
    columns(of, 2, pair);
    add(false);
    columns(of, 1, pair);
    add(true);
    rows(of, 1, pair);
    add(false);
    columns(of, 0, pair);
    add(true);
    rows(of, 2, pair);
    add(false);
    rows(of, 0, pair);
    add(true);
  }
}

// Stores the sums; false if one is not finite.
template <bool kTwoTiles, int kVectors>
SNNJAX_TILES inline bool storeSums(Index rows, Rows<float> out) {
  alignas(64) float second[2][kRowsOfTile * kLanes];
  _tile_stored(0, out.data, out.stride * 4);
  if constexpr (kVectors == 2) _tile_stored(1, out.data + kLanes, out.stride * 4);
  if constexpr (kTwoTiles) {
    _tile_stored(2, out.row(kRowsOfTile), out.stride * 4);
    if constexpr (kVectors == 2) _tile_stored(3, out.row(kRowsOfTile) + kLanes, out.stride * 4);
  } else {
    _tile_stored(2, second[0], kRowBytes);
    if constexpr (kVectors == 2) _tile_stored(3, second[1], kRowBytes);
  }
  Floats probe{};  // as in `multiplyTile`
  for (Index r = 0; r < rows; ++r) {
    SNNJAX_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      Floats sum = load(out.row(r) + i * kLanes);
      if constexpr (!kTwoTiles) {
        sum += load(second[i] + r * kLanes);
        store(out.row(r) + i * kLanes, sum);
      }
      probe += sum * 0.0F;
    }
  }
  return bitsOf(notEqual(probe, Floats{})) == 0;
}

template <bool kTwoTiles, int kVectors>
SNNJAX_TILES inline bool multiplyTiles(const TileFactors& of, Index rows, Index parts, Rows<float> out) {
  multiplyParts<kTwoTiles, kVectors>(of, parts);
  return storeSums<kTwoTiles, kVectors>(rows, out);
}

SNNJAX_TILES inline bool multiplyOnTiles(Rows<const float> split, Index rows, Index depth, Index parts,
                                         const float* panels, Index columns, Rows<float> out) {
  bool finite = true;
  Index configured = 0;
  for (Index r = 0; r < rows; r += 2 * kRowsOfTile) {
    const Index own = rows - r < 2 * kRowsOfTile ? rows - r : 2 * kRowsOfTile;
    const bool two = own > kRowsOfTile;
    if (own != configured) {
      const Index first = two ? kRowsOfTile : own;
      const TileShapes shapes(first, two ? own - kRowsOfTile : first);
      _tile_loadconfig(&shapes);
      configured = own;
    }
    for (Index column = 0; column < columns;) {
      const TileFactors of{split.row(r), split.stride, panels + column * pairedLength(depth, parts), pairsOf(depth)};
      const Rows<float> own_out{out.row(r) + column, out.stride};
      const bool is_wide = columns - column >= 2 * kLanes;
      if (is_wide) {
        finite &=
            two ? multiplyTiles<true, 2>(of, own, parts, own_out) : multiplyTiles<false, 2>(of, own, parts, own_out);
      } else {
        finite &=
            two ? multiplyTiles<true, 1>(of, own, parts, own_out) : multiplyTiles<false, 1>(of, own, parts, own_out);
      }
      column += is_wide ? 2 * kLanes : kLanes;
    }
  }
  _tile_release();
  return finite;
}

}  // namespace snnjax::SNNJAX_ISA

#endif
