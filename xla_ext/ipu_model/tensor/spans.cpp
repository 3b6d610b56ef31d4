#include "tensor/spans.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ipu_model {

void appendSpans(std::span<const Run> runs, std::vector<Span>& spans) {
  for (const Run& run : runs) {
    const std::size_t length = run.contiguous() ? run.count : 1;
    for (std::size_t done = 0; done < run.count; done += length) {
      spans.push_back({run.variable, run.at(done), run.at(done) + length});
    }
  }
}

bool mergeSpans(std::vector<Span>& spans) {
  if (!std::is_sorted(spans.begin(), spans.end())) std::sort(spans.begin(), spans.end());
  bool overlap = false;
  std::size_t last = 0;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].variable == spans[last].variable && spans[i].begin <= spans[last].end) {
      overlap = overlap || spans[i].begin < spans[last].end;
      spans[last].end = std::max(spans[last].end, spans[i].end);
    } else {
      spans[++last] = spans[i];
    }
  }
  if (!spans.empty()) spans.resize(last + 1);
  return overlap;
}

const Span* spanWith(std::span<const Span> spans, unsigned variable, std::size_t element) {
  const auto after = std::upper_bound(spans.begin(), spans.end(), Span{variable, element, SIZE_MAX});
  if (after == spans.begin()) return nullptr;
  const Span& span = *std::prev(after);
  return span.variable == variable && span.end > element ? &span : nullptr;
}

bool intersects(std::span<const Span> spans, const Span& part) {
  if (part.begin == part.end) return false;
  const auto after = std::upper_bound(spans.begin(), spans.end(), Span{part.variable, part.end - 1, SIZE_MAX});
  if (after == spans.begin()) return false;
  return std::prev(after)->variable == part.variable && std::prev(after)->end > part.begin;
}

void SpanSet::add(std::vector<Span> spans) {
  if (spans.empty()) return;
  while (!lists_.empty() && lists_.back().size() < 2 * spans.size()) {
    const std::vector<Span>& last = lists_.back();
    const auto added = static_cast<std::ptrdiff_t>(spans.size());
    spans.insert(spans.end(), last.begin(), last.end());
    std::inplace_merge(spans.begin(), spans.begin() + added, spans.end());
    mergeSpans(spans);
    lists_.pop_back();
  }
  lists_.push_back(std::move(spans));
}

bool SpanSet::meets(std::span<const Span> spans) const {
  return std::any_of(lists_.begin(), lists_.end(), [spans](const std::vector<Span>& list) {
    const bool fewer = list.size() < spans.size();
    const std::span<const Span> some = fewer ? std::span<const Span>(list) : spans;
    const std::span<const Span> others = fewer ? spans : std::span<const Span>(list);
    return std::any_of(some.begin(), some.end(), [others](const Span& span) { return intersects(others, span); });
  });
}

}  // namespace ipu_model
