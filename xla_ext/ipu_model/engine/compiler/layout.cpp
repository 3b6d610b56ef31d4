#include "engine/compiler/layout.hpp"

#include <algorithm>
#include <map>
#include <poplar/exceptions.hpp>

namespace ipu_model {
namespace {

constexpr std::size_t kCacheLine = 64;

std::size_t roundedUp(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Layout::Layout(const GraphData& graph) : graph_(&graph), pieces_(graph.variables.size()) {
  for (unsigned variable = 0; variable < graph.variables.size(); ++variable) {
    addresses_.push_back(bytes_);
    place(variable);
    const Variable& of = graph.variables[variable];
    bytes_ += roundedUp(of.elements * of.type.size(), kCacheLine);
  }
}

// Addresses on a tile count from that of the variable here, so that no two variables share any; the exact place of a
// variable on a tile affects no cost.
void Layout::place(unsigned variable) {
  const std::size_t element = graph_->variables[variable].type.size();
  std::map<std::uint32_t, std::size_t> used;
  for (const TilePiece& piece : graph_->variables[variable].tiles.pieces()) {
    std::size_t& bytes = used[piece.tile];
    pieces_[variable].push_back({piece.begin, piece.end, piece.tile, addresses_[variable] + bytes});
    bytes += (piece.end - piece.begin) * element;
  }
}

std::size_t Layout::firstPiece(const std::vector<Piece>& pieces, std::size_t element) {
  const auto after = std::upper_bound(pieces.begin(), pieces.end(), element,
                                      [](std::size_t at, const Piece& piece) { return at < piece.begin; });
  if (after == pieces.begin()) return 0;
  const auto piece = std::prev(after);
  return static_cast<std::size_t>((piece->end > element ? piece : after) - pieces.begin());
}

void Layout::refuse(const Span& span, std::size_t element, const char* user) const {
  const Variable& variable = graph_->variables[span.variable];
  throw poplar::invalid_tile_mapping(std::string(user) + ": `" + variable.name +
                                     "` must lie on tiles, got no mapping for element " + std::to_string(element) +
                                     " of " + std::to_string(variable.elements) + ". Call Graph::setTileMapping.");
}

std::vector<std::vector<Layout::Share>> Layout::shares() const {
  constexpr std::size_t kTileWord = 8;  // every variable of a tile starts at a multiple of 64 bits
  std::vector<std::vector<Share>> result(graph_->target.getNumTiles());
  for (unsigned variable = 0; variable < pieces_.size(); ++variable) {
    std::map<std::uint32_t, std::size_t> used;
    for (const Piece& piece : pieces_[variable]) {
      used[piece.tile] += (piece.end - piece.begin) * graph_->variables[variable].type.size();
    }
    for (const auto& [tile, bytes] : used) result[tile].push_back({variable, roundedUp(bytes, kTileWord)});
  }
  return result;
}

}  // namespace ipu_model
