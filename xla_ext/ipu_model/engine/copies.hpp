// Plans copies between tensors that are done in one exchange.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/exchange.hpp"
#include "engine/layout.hpp"
#include "engine/plan.hpp"
#include "tensor/spans.hpp"

namespace ipu_model {

struct CopyRuns {
  std::vector<Run> from, to;
  std::size_t element;  // bytes
};

// The elements of runs, sorted and merged; whether two such lists meet; one list with another.
std::vector<Span> spansOf(const std::vector<Run>& runs);
bool intersect(const std::vector<Span>& a, const std::vector<Span>& b);
void addSpans(std::vector<Span>& all, const std::vector<Span>& spans);

// What a copy moves from tile to tile, in order of the elements.
std::vector<Transfer> transfersOf(const GraphData& graph, const Layout& layout, const CopyRuns& copy);

class CopyGroup {
 public:
  CopyGroup(const GraphData& graph, const Layout& layout);

  bool empty() const { return names_.empty(); }
  // Whether the order of the copy and of those in the group does not matter.
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
  std::vector<std::string> names_;
  std::vector<Span> read_, written_;  // sorted and merged
  std::size_t scratch_ = 0;
};

}  // namespace ipu_model
