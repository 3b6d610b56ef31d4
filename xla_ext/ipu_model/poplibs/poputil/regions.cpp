// Partitions of regions in whole grains, index arithmetic.
#include <algorithm>
#include <numeric>
#include <poputil/Util.hpp>
#include <poputil/exceptions.hpp>

namespace poputil {
namespace {

std::size_t ceilDivide(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

std::size_t numElements(const Regions& regions) {
  return std::accumulate(regions.begin(), regions.end(), std::size_t{0},
                         [](std::size_t sum, const poplar::Interval& region) { return sum + region.size(); });
}

// How many parts: limited by the smallest useful part, raised where a part would be too large.
std::size_t numParts(std::size_t elements, std::size_t grain, std::size_t max_parts, std::size_t min_elements,
                     std::size_t max_elements) {
  const std::size_t grains = ceilDivide(elements, grain);
  const std::size_t least_grains = std::max<std::size_t>(1, ceilDivide(min_elements, grain));
  const std::size_t parts = std::clamp<std::size_t>(grains / least_grains, 1, std::max<std::size_t>(1, max_parts));
  const std::size_t most_grains = std::max<std::size_t>(1, max_elements / grain);
  return std::max(parts, ceilDivide(grains, most_grains));
}

// Walks through sequences of regions and hands out the next `count` elements.
class Reader {
 public:
  explicit Reader(const RegionSequences& sequences) : sequences_(sequences) {}

  RegionSequences take(std::size_t count, std::size_t longest) {
    RegionSequences taken;
    while (count > 0 && sequence_ < sequences_.size()) {
      Regions part = takeFromSequence(count, longest);
      if (!part.empty()) taken.push_back(std::move(part));
    }
    return taken;
  }

 private:
  Regions takeFromSequence(std::size_t& count, std::size_t longest) {
    Regions part;
    const Regions& regions = sequences_[sequence_];
    while (count > 0 && region_ < regions.size()) {
      const std::size_t begin = regions[region_].begin() + offset_;
      const std::size_t size = std::min({count, regions[region_].end() - begin, longest});
      if (size > 0) part.emplace_back(begin, begin + size);
      count -= size;
      offset_ += size;
      if (offset_ == regions[region_].size()) {
        ++region_;
        offset_ = 0;
      }
    }
    if (region_ == regions.size()) {
      ++sequence_;
      region_ = 0;
    }
    return part;
  }

  const RegionSequences& sequences_;
  std::size_t sequence_ = 0, region_ = 0, offset_ = 0;
};

}  // namespace

void mergeAdjacentRegions(Regions& regions) {
  std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) { return a.begin() < b.begin(); });
  Regions merged;
  for (const auto& region : regions) {
    if (region.size() == 0) continue;
    if (!merged.empty() && merged.back().end() == region.begin()) {
      merged.back() = poplar::Interval(merged.back().begin(), region.end());
    } else {
      merged.push_back(region);
    }
  }
  regions = std::move(merged);
}

void mergeAdjacentRegions(RegionSequences& mapping) {
  for (auto& regions : mapping) mergeAdjacentRegions(regions);
}

std::vector<RegionSequences> splitRegions(const RegionSequences& sequences, unsigned grain_size,
                                          unsigned max_partitions, unsigned min_elements_per_partition,
                                          unsigned max_elements_per_partition, unsigned max_elements_per_region) {
  const std::size_t elements = intervalSequenceNumElements(sequences);
  if (elements == 0) return {};
  const std::size_t grain = std::max(1U, grain_size);
  const std::size_t grains = ceilDivide(elements, grain);
  const std::size_t parts =
      numParts(elements, grain, max_partitions, min_elements_per_partition, max_elements_per_partition);
  const std::size_t longest = std::max<std::size_t>(grain, max_elements_per_region / grain * grain);
  Reader reader(sequences);
  std::vector<RegionSequences> result;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * grains / parts * grain;
    const std::size_t end = std::min(elements, (part + 1) * grains / parts * grain);
    if (end > begin) result.push_back(reader.take(end - begin, longest));
  }
  return result;
}

std::vector<Regions> splitRegions(const Regions& regions, unsigned grain_size, unsigned max_partitions,
                                  unsigned min_elements_per_partition, unsigned max_elements_per_partition,
                                  unsigned max_elements_per_region) {
  const auto parts = splitRegions(RegionSequences{regions}, grain_size, max_partitions, min_elements_per_partition,
                                  max_elements_per_partition, max_elements_per_region);
  std::vector<Regions> result;
  for (const auto& part : parts) result.push_back(part.front());
  return result;
}

std::vector<Regions> splitRegionsBetweenWorkers(const poplar::Target& target, const Regions& regions,
                                                unsigned grain_size, unsigned min_elements_per_partition,
                                                unsigned max_elements_per_partition, unsigned max_elements_per_region) {
  return splitRegions(regions, grain_size, target.getNumWorkerContexts(), min_elements_per_partition,
                      max_elements_per_partition, max_elements_per_region);
}

std::vector<RegionSequences> splitRegionsBetweenWorkers(const poplar::Target& target, const RegionSequences& sequences,
                                                        unsigned grain_size, unsigned min_elements_per_partition,
                                                        unsigned max_elements_per_partition,
                                                        unsigned max_elements_per_region) {
  return splitRegions(sequences, grain_size, target.getNumWorkerContexts(), min_elements_per_partition,
                      max_elements_per_partition, max_elements_per_region);
}

std::vector<std::size_t> unflattenIndex(const std::vector<std::size_t>& shape, std::size_t index) {
  std::vector<std::size_t> indices(shape.size());
  std::size_t rest = index;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 0) break;
    indices[d] = rest % shape[d];
    rest /= shape[d];
  }
  if (rest != 0) {
    throw poplibs_error("unflattenIndex: `index` must lie inside the shape, got " + std::to_string(index) +
                        ". Check the shape that it was flattened with.");
  }
  return indices;
}

std::size_t flattenIndex(const std::vector<std::size_t>& shape, const std::vector<std::size_t>& indices) {
  if (shape.size() != indices.size()) {
    throw poplibs_error("flattenIndex: `indices` must have one entry per dimension (" + std::to_string(shape.size()) +
                        "), got " + std::to_string(indices.size()) + ". Give an index for each dimension.");
  }
  std::size_t index = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + indices[d];
  return index;
}

std::size_t intervalSequenceNumElements(const RegionSequences& sequences) {
  return std::accumulate(sequences.begin(), sequences.end(), std::size_t{0},
                         [](std::size_t sum, const Regions& regions) { return sum + numElements(regions); });
}

}  // namespace poputil
