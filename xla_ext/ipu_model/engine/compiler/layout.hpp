// The tile of each element of a variable, and its address in that tile's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/graph_data.hpp"
#include "tensor/spans.hpp"

namespace ipu_model {

class Layout {
 public:
  explicit Layout(const GraphData& graph);

  // Where each variable begins in the engine's memory, in bytes.
  const std::vector<std::size_t>& addresses() const { return addresses_; }
  std::size_t bytes() const { return bytes_; }

  // Calls visit(begin, end, tile, address) for each part of a span, in order: elements begin to end lie on `tile`, from
  // `address` of the tile's own memory on. Throws invalid_tile_mapping if elements are on no tile; `user` names what
  // needs them. Variables of vertices have no tile and are skipped.
  template <typename Visit>
  void forEach(const Span& span, const char* user, Visit&& visit) const {
    const std::vector<Piece>& pieces = pieces_[span.variable];
    if (graph_->variables[span.variable].of_vertex) return;
    std::size_t begin = span.begin;
    for (std::size_t i = firstPiece(pieces, begin); begin < span.end; ++i) {
      if (i >= pieces.size() || pieces[i].begin > begin) refuse(span, begin, user);
      const std::size_t end = pieces[i].end < span.end ? pieces[i].end : span.end;
      const std::size_t element = graph_->variables[span.variable].type.size();
      visit(begin, end, pieces[i].tile, pieces[i].address + (begin - pieces[i].begin) * element);
      begin = end;
    }
  }

  // Bytes of each variable on each tile.
  struct Share {
    unsigned variable;
    std::size_t bytes;
  };
  std::vector<std::vector<Share>> shares() const;

 private:
  struct Piece {
    std::size_t begin, end;
    std::uint32_t tile;
    std::size_t address;
  };
  static std::size_t firstPiece(const std::vector<Piece>& pieces, std::size_t element);
  [[noreturn]] void refuse(const Span& span, std::size_t element, const char* user) const;
  void place(unsigned variable);

  const GraphData* graph_;
  std::vector<std::size_t> addresses_;
  std::size_t bytes_ = 0;
  std::vector<std::vector<Piece>> pieces_;  // by variable
};

}  // namespace ipu_model
