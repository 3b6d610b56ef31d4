// Which tile holds which elements of a variable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ipu_model {

inline constexpr std::uint32_t kNoTile = 0xffffffffU;

// Elements begin to end lie on `tile`.
struct TilePiece {
  std::size_t begin;
  std::size_t end;
  std::uint32_t tile;
};

class TileMap {
 public:
  // Later calls win.
  void set(std::size_t begin, std::size_t end, std::uint32_t tile);

  // In order, neighbours on one tile as one piece; unmapped parts are left out.
  std::vector<TilePiece> pieces() const;

  // Calls visit(begin, end, tile) for the parts of [begin, end), in order; tile is kNoTile where nothing is mapped.
  template <typename Visit>
  void forEach(std::size_t begin, std::size_t end, Visit&& visit) const {
    auto piece = pieces_.upper_bound(begin);
    if (piece != pieces_.begin()) --piece;
    while (begin < end) {
      while (piece != pieces_.end() && piece->second.end <= begin) ++piece;
      const bool mapped = piece != pieces_.end() && piece->first <= begin;
      const std::size_t next = mapped ? piece->second.end : piece == pieces_.end() ? end : piece->first;
      const std::size_t stop = next < end ? next : end;
      visit(begin, stop, mapped ? piece->second.tile : kNoTile);
      begin = stop;
    }
  }

 private:
  struct End {
    std::size_t end;
    std::uint32_t tile;
  };
  void cutAt(std::size_t at);

  std::map<std::size_t, End> pieces_;  // by where they begin; they do not overlap
};

}  // namespace ipu_model
