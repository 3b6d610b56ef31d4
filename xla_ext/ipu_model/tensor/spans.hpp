// Elements as sorted parts of variables, whatever their order in a tensor.
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <vector>

#include "tensor/view.hpp"

namespace ipu_model {

struct Span {
  unsigned variable = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  auto operator<=>(const Span&) const = default;
};

// Appends one span for each contiguous part of the runs, in their order.
void appendSpans(std::span<const Run> runs, std::vector<Span>& spans);

// Sorts them, and makes one of those that touch or overlap. True if some overlapped.
bool mergeSpans(std::vector<Span>& spans);

// The span of sorted, merged ones that holds the element, or null.
const Span* spanWith(std::span<const Span> spans, unsigned variable, std::size_t element);
// Whether one of them has an element of [part.begin, part.end).
bool intersects(std::span<const Span> spans, const Span& part);

// Spans that grow by many additions: lists that are sorted and merged, each of less than half as many spans as the one
// before, so that a span is merged a logarithmic number of times.
class SpanSet {
 public:
  // Of sorted, merged spans both.
  void add(std::vector<Span> spans);
  bool meets(std::span<const Span> spans) const;

 private:
  std::vector<std::vector<Span>> lists_;
};

}  // namespace ipu_model
