#include "graph/tile_map.hpp"

#include <iterator>

namespace ipu_model {

void TileMap::cutAt(std::size_t at) {
  auto piece = pieces_.upper_bound(at);
  if (piece == pieces_.begin()) return;
  --piece;
  if (piece->first == at || piece->second.end <= at) return;
  pieces_.emplace_hint(std::next(piece), at, piece->second);
  piece->second.end = at;
}

void TileMap::set(std::size_t begin, std::size_t end, std::uint32_t tile) {
  if (begin >= end) return;
  if (pieces_.empty() || std::prev(pieces_.end())->second.end <= begin) {
    // In order, as most mappings are made; goes on with the last piece where it can.
    if (!pieces_.empty() && std::prev(pieces_.end())->second.end == begin &&
        std::prev(pieces_.end())->second.tile == tile) {
      std::prev(pieces_.end())->second.end = end;
    } else {
      pieces_.emplace_hint(pieces_.end(), begin, End{end, tile});
    }
    return;
  }
  cutAt(begin);
  cutAt(end);
  pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(end));
  pieces_.emplace(begin, End{end, tile});
}

std::vector<TilePiece> TileMap::pieces() const {
  std::vector<TilePiece> result;
  for (const auto& [begin, piece] : pieces_) {
    if (!result.empty() && result.back().end == begin && result.back().tile == piece.tile) {
      result.back().end = piece.end;
    } else {
      result.push_back({begin, piece.end, piece.tile});
    }
  }
  return result;
}

}  // namespace ipu_model
