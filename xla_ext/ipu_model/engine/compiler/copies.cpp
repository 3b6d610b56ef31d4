#include "engine/compiler/copies.hpp"

#include <algorithm>
#include <tuple>

namespace ipu_model {
namespace {

struct Part {  // bytes on one tile
  std::uint32_t tile;
  std::size_t address, bytes;
};

std::vector<Part> partsOf(const GraphData& graph, const Layout& layout, const std::vector<Run>& runs) {
  std::vector<Span> spans;
  appendSpans(runs, spans);
  std::vector<Part> result;
  for (const Span& span : spans) {
    const std::size_t element = graph.variables[span.variable].type.size();
    layout.forEach(span, "Copy", [&](std::size_t begin, std::size_t end, std::uint32_t tile, std::size_t address) {
      const std::size_t bytes = (end - begin) * element;
      if (!result.empty() && result.back().tile == tile && result.back().address + result.back().bytes == address) {
        result.back().bytes += bytes;
      } else {
        result.push_back({tile, address, bytes});
      }
    });
  }
  return result;
}

bool meet(const std::vector<Span>& a, const std::vector<Span>& b) {
  const auto& [fewer, more] = a.size() < b.size() ? std::tie(a, b) : std::tie(b, a);
  return std::any_of(fewer.begin(), fewer.end(), [&more](const Span& span) { return intersects(more, span); });
}

}  // namespace

std::vector<Span> spansOf(const std::vector<Run>& runs) {
  std::vector<Span> spans;
  appendSpans(runs, spans);
  mergeSpans(spans);
  return spans;
}

// Walks both sides at once, in parts that are each on one tile.
std::vector<Transfer> transfersOf(const GraphData& graph, const Layout& layout, const CopyRuns& copy) {
  std::vector<Part> sources = partsOf(graph, layout, copy.from);
  std::vector<Part> destinations = partsOf(graph, layout, copy.to);
  std::vector<Transfer> transfers;
  for (std::size_t a = 0, b = 0; a < sources.size() && b < destinations.size();) {
    Part& source = sources[a];
    Part& destination = destinations[b];
    const std::size_t bytes = std::min(source.bytes, destination.bytes);
    transfers.push_back({source.tile, destination.tile, source.address, destination.address, bytes});
    source.address += bytes;
    destination.address += bytes;
    if ((source.bytes -= bytes) == 0) ++a;
    if ((destination.bytes -= bytes) == 0) ++b;
  }
  return transfers;
}

ExchangeCost planRearrangement(const GraphData& graph, const Layout& layout, const std::vector<Run>& runs, bool to_host,
                               std::vector<TileBytes>& memory) {
  constexpr std::size_t kWord = 4;  // bytes
  const std::vector<Part> parts = partsOf(graph, layout, runs);
  const std::size_t per_ipu = graph.target.getTilesPerIPU();
  std::vector<std::size_t> of_ipu(graph.target.getNumIPUs()), pieces(graph.target.getNumTiles());
  for (const Part& part : parts) {
    of_ipu[part.tile / per_ipu] += part.bytes;
    ++pieces[part.tile];
  }
  if (std::all_of(pieces.begin(), pieces.end(), [](std::size_t count) { return count <= 1; })) return {};
  ExchangePhase phase(graph.target);
  std::vector<std::size_t> done(of_ipu.size());
  for (const Part& part : parts) {
    const std::size_t ipu = part.tile / per_ipu, words = (of_ipu[ipu] + kWord - 1) / kWord;
    for (std::size_t moved = 0; moved < part.bytes;) {
      const std::size_t at = done[ipu] + moved, place = at / kWord * per_ipu / words;
      const std::size_t last = ((place + 1) * words + per_ipu - 1) / per_ipu * kWord;  // where the next tile's begin
      const std::size_t bytes = std::min(part.bytes - moved, last - at);
      const auto tile = static_cast<std::uint32_t>(ipu * per_ipu + place);
      const std::size_t buffer = layout.bytes() + at, home = part.address + moved;
      phase.add(to_host ? Transfer{part.tile, tile, home, buffer, bytes}
                        : Transfer{tile, part.tile, buffer, home, bytes});
      moved += bytes;
    }
    done[ipu] += part.bytes;
  }
  for (std::size_t tile = 0; tile < memory.size(); ++tile) {
    const std::size_t words = (of_ipu[tile / per_ipu] + kWord - 1) / kWord;
    memory[tile].buffers = std::max<std::uint64_t>(memory[tile].buffers, (words + per_ipu - 1) / per_ipu * kWord);
  }
  return phase.finish(memory, false);
}

CopyGroup::CopyGroup(const GraphData& graph, const Layout& layout)
    : graph_(&graph), layout_(&layout), phase_(graph.target) {}

bool CopyGroup::takes(const CopyRuns& copy) const {
  const std::vector<Span> from = spansOf(copy.from);
  const std::vector<Span> to = spansOf(copy.to);
  return plan_.then.empty() && !meet(from, to) && !written_.meets(from) && !written_.meets(to) && !read_.meets(to);
}

void CopyGroup::add(const CopyRuns& copy, const std::string& name) {
  const std::vector<Span> from = spansOf(copy.from);
  const std::vector<Span> to = spansOf(copy.to);
  const Addresses addresses{layout_->addresses(), copy.element};
  if (meet(from, to)) {
    // Everything is read before anything is written; such a copy stays alone in its group.
    plan_.moves = reversed(movesFromRow(layout_->bytes(), copy.from, addresses));
    plan_.then = movesFromRow(layout_->bytes(), copy.to, addresses);
    for (const Run& run : copy.from) scratch_ += run.count * copy.element;
  } else {
    const std::vector<Move> moves = movesBetween(copy.from, copy.to, addresses);
    plan_.moves.insert(plan_.moves.end(), moves.begin(), moves.end());
  }
  read_.add(from);
  written_.add(to);
  empty_ = false;
  if (names_.insert(name).second) plan_.name += (plan_.name.empty() ? "" : ", ") + name;
  for (const Transfer& transfer : transfersOf(*graph_, *layout_, copy)) phase_.add(transfer);
}

CopyPlan CopyGroup::finish(std::vector<TileBytes>& memory) {
  plan_.cost = phase_.finish(memory, false);
  CopyPlan plan = std::move(plan_);
  *this = CopyGroup(*graph_, *layout_);
  return plan;
}

}  // namespace ipu_model
