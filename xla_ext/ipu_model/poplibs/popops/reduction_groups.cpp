#include "poplibs/popops/reduction_groups.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace poplibs {
namespace {

// Blocks by their columns, in the order in which these come first.
class Blocks {
 public:
  void add(const poplar::Interval& rows, const poplar::Interval& columns) {
    const auto [known, is_new] = by_columns_.emplace(std::make_pair(columns.begin(), columns.end()), blocks_.size());
    if (is_new) blocks_.push_back({{}, columns});
    Regions& major = blocks_[known->second].major;
    if (!major.empty() && major.back().end() == rows.begin()) {
      major.back() = {major.back().begin(), rows.end()};
    } else {
      major.push_back(rows);
    }
  }
  std::vector<Block> taken() { return std::move(blocks_); }

 private:
  std::vector<Block> blocks_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> by_columns_;
};

}  // namespace

std::size_t Block::rows() const {
  std::size_t count = 0;
  for (const poplar::Interval& range : major) count += range.size();
  return count;
}

std::vector<Block> blocksOf(const Regions& regions, std::size_t columns) {
  Blocks blocks;
  for (const poplar::Interval& region : regions) {
    std::size_t begin = region.begin();
    while (begin < region.end()) {
      const std::size_t row = begin / columns, column = begin % columns;
      const std::size_t whole_rows = column == 0 ? (region.end() - begin) / columns : 0;
      if (whole_rows > 0) {
        blocks.add({row, row + whole_rows}, {0, columns});
        begin += whole_rows * columns;
      } else {
        const std::size_t end = std::min(region.end(), (row + 1) * columns);
        blocks.add({row, row + 1}, {column, column + (end - begin)});
        begin = end;
      }
    }
  }
  return blocks.taken();
}

std::vector<Segment> segmentsOf(const std::vector<Group>& groups) {
  // At each cut, the groups that begin and those that end there.
  struct Cut {
    std::vector<std::size_t> begin, end;
  };
  std::map<std::size_t, Cut> cuts;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    cuts[groups[g].outputs.begin()].begin.push_back(g);
    cuts[groups[g].outputs.end()].end.push_back(g);
  }
  std::vector<Segment> segments;
  std::vector<std::size_t> active;  // ascending, so that the order of the sum does not depend on the cuts
  for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
    for (const std::size_t g : cut->second.end) active.erase(std::find(active.begin(), active.end(), g));
    for (const std::size_t g : cut->second.begin) active.insert(std::lower_bound(active.begin(), active.end(), g), g);
    if (active.empty()) continue;
    Segment segment{{cut->first, std::next(cut)->first}, {}};
    for (const std::size_t g : active) {
      segment.positions.push_back(groups[g].position + cut->first - groups[g].outputs.begin());
    }
    segments.push_back(std::move(segment));
  }
  return segments;
}

}  // namespace poplibs
