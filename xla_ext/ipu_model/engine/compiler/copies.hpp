// Plans copies between tensors that are done in one exchange.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/compiler/exchange.hpp"
#include "engine/compiler/layout.hpp"
#include "engine/executable/plan.hpp"
#include "tensor/spans.hpp"

namespace ipu_model {

struct CopyRuns {
  std::vector<Run> from, to;
  std::size_t element;  // bytes
};

// The elements of runs, sorted and merged.
std::vector<Span> spansOf(const std::vector<Run>& runs);

// What a copy moves from tile to tile, in order of the elements.
std::vector<Transfer> transfersOf(const GraphData& graph, const Layout& layout, const CopyRuns& copy);

// A stream is read and written in the order of its elements, spread over all tiles of their IPU, and an exchange moves
// them to or from their own tiles (Poplar's API, createHostWrite and Copy: the rearrangement is on the device unless
// the host is asked for it). Nothing moves where each tile's elements follow each other in the stream.
ExchangeCost planRearrangement(const GraphData& graph, const Layout& layout, const std::vector<Run>& runs, bool to_host,
                               std::vector<TileBytes>& memory);

class CopyGroup {
 public:
  CopyGroup(const GraphData& graph, const Layout& layout);

  bool empty() const { return empty_; }
  // Whether the copy is independent of those in the group.
  bool takes(const CopyRuns& copy) const;
  void add(const CopyRuns& copy, const std::string& name);
  // Bytes of the buffer that the group goes through, from Layout::bytes() on.
  std::size_t scratchBytes() const { return scratch_; }
  // The plan of what was added; the group is empty afterwards.
  CopyPlan finish(std::vector<TileBytes>& memory);

 private:
  const GraphData* graph_;
  const Layout* layout_;
  CopyPlan plan_;
  ExchangePhase phase_;
  std::unordered_set<std::string> names_;
  SpanSet read_, written_;
  bool empty_ = true;
  std::size_t scratch_ = 0;
};

}  // namespace ipu_model
