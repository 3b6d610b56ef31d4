#include "executor/ops/ring.hpp"

#include <algorithm>
#include <numeric>
#include <poputil/VertexTemplates.hpp>

#include "executor/ops/compute_step.hpp"

namespace snnjax::executor::ops {

std::vector<std::size_t> countsOf(const TileTensors& parts, std::size_t rows) {
  std::vector<std::size_t> counts(parts.size(), 0);
  for (std::size_t tile = 0; tile < parts.size(); ++tile) {
    if (parts[tile].valid()) counts[tile] = parts[tile].numElements() / rows;
  }
  return counts;
}

poplar::Tensor all(const TileTensors& parts) {
  std::vector<poplar::Tensor> valid;
  for (const poplar::Tensor& part : parts) {
    if (part.valid()) valid.push_back(part);
  }
  return poplar::concat(valid);
}

TileTensors makeOnTiles(Lowering& lowering, const poplar::Type& type, const std::vector<std::size_t>& counts) {
  const poplar::Tensor memory = lowering.makeScratch(type, counts);
  TileTensors parts(counts.size());
  std::size_t begin = 0;
  for (std::size_t tile = 0; tile < counts.size(); ++tile) {
    if (counts[tile] > 0) parts[tile] = memory.slice(begin, begin + counts[tile]);
    begin += counts[tile];
  }
  return parts;
}

TileTensors onTiles(const Layout& layout, const std::vector<poplar::Tensor>& arrays) {
  const std::vector<std::size_t>& cuts = layout.cuts();
  std::vector<poplar::Tensor> memories;
  for (const poplar::Tensor& array : arrays) memories.push_back(layout.memoryOrder(array));
  TileTensors parts(cuts.size() - 1);
  for (std::size_t tile = 0; tile < parts.size(); ++tile) {
    if (cuts[tile] == cuts[tile + 1]) continue;
    std::vector<poplar::Tensor> rows;
    for (const poplar::Tensor& memory : memories) rows.push_back(memory.slice(cuts[tile], cuts[tile + 1]));
    parts[tile] = poplar::concat(rows);
  }
  return parts;
}

TileTensors asRows(const TileTensors& parts, std::size_t rows) {
  TileTensors filled(parts.size());
  for (std::size_t tile = 0; tile < parts.size(); ++tile) {
    if (!parts[tile].valid()) continue;
    const std::size_t size = parts[tile].numElements(), more = ceilDivide(size, rows) * rows - size;
    std::vector<poplar::Tensor> pieces{parts[tile]};
    for (std::size_t left = more; left > 0; left -= std::min(left, size)) {
      pieces.push_back(parts[tile].slice(0, std::min(left, size)));
    }
    filled[tile] = poplar::concat(pieces);
  }
  return filled;
}

TileTensors intoRows(Lowering& lowering, const TileTensors& parts, const TileTensors& rows) {
  std::vector<std::size_t> more(parts.size(), 0);
  for (std::size_t tile = 0; tile < parts.size(); ++tile) {
    if (parts[tile].valid()) more[tile] = rows[tile].numElements() - parts[tile].numElements();
  }
  const TileTensors rest = makeOnTiles(lowering, all(parts).elementType(), more);
  TileTensors filled(parts.size());
  for (std::size_t tile = 0; tile < parts.size(); ++tile) {
    if (parts[tile].valid()) filled[tile] = rest[tile].valid() ? poplar::concat(parts[tile], rest[tile]) : parts[tile];
  }
  return filled;
}
namespace {

// Pairs of IPUs form a ladder: up one side and down the other, every step is to a neighbour.
std::vector<std::size_t> aroundTheLadder(const std::vector<std::int64_t>& group) {
  constexpr std::int64_t kBehindAll = std::int64_t{1} << 32;
  std::vector<std::size_t> places(group.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto along = [&group](std::size_t place) {
    const std::int64_t ipu = group[place];
    return ipu % 2 == 0 ? ipu : kBehindAll - ipu;
  };
  std::ranges::stable_sort(places, {}, along);
  return places;
}

// Where a tile's elements are split between the two directions.
std::size_t middleOf(std::size_t size) { return (size + 1) / 2; }

}  // namespace

Ring::Ring(Lowering& lowering, const std::vector<std::int64_t>& members, const std::vector<std::int64_t>& sizes)
    : lowering_(lowering), size_(static_cast<std::size_t>(sizes[1])) {
  places_ = aroundTheLadder({members.begin(), members.begin() + sizes[1]});
  for (std::size_t group = 0; group < static_cast<std::size_t>(sizes[0]); ++group) {
    std::vector<unsigned> ring;
    for (const std::size_t place : places_) ring.push_back(static_cast<unsigned>(members[group * size_ + place]));
    rings_.push_back(std::move(ring));
  }
  replica_ = lowering.graph().addReplicationIndexConstant(lowering.debug("partition"));
  lowering.graph().setTileMapping(replica_, 0);
}

// This partition's entry in a table of all partitions.
poplar::Tensor Ring::lookUp(const std::vector<unsigned>& of_partition) {
  poplar::Graph& graph = lowering_.graph();
  const poplar::Tensor table = graph.addConstant(poplar::UNSIGNED_INT, {of_partition.size()},
                                                 poplar::ArrayRef<unsigned>(of_partition), lowering_.debug("places"));
  graph.setTileMapping(table, 0);
  std::vector<std::size_t> counts(lowering_.layouts().tiles(), 0);
  counts[0] = 1;
  const poplar::Tensor number = lowering_.makeScratch(poplar::UNSIGNED_INT, counts);
  ComputeStep step(lowering_, "place");
  step.add(poputil::templateVertex("snnjax::SliceWindow", poplar::UNSIGNED_INT), 0,
           {{"table", table},
            {"start", replica_},
            {"out", number},
            {"rows", asUnsigned(of_partition.size())},
            {"width", 1U},
            {"count", 1U},
            {"is_signed", false}});
  step.execute();
  return number.reshape({});
}

// out[t][i] = rows[t][(i + offset) mod size]
void Ring::rotate(const TileTensors& rows, const TileTensors& out, const poplar::Tensor& offset) {
  ComputeStep step(lowering_, "rotate");
  for (std::size_t tile = 0; tile < rows.size(); ++tile) {
    if (!rows[tile].valid()) continue;
    const poplar::Tensor from = asBits(rows[tile]);
    step.add(poputil::templateVertex("snnjax::DynamicSlice", from.elementType()), tile,
             {{"table", from},
              {"offset", offset},
              {"out", asBits(out[tile])},
              {"rows", asUnsigned(size_)},
              {"width", asUnsigned(from.numElements() / size_)},
              {"count", asUnsigned(size_)}});
  }
  step.execute();
}

TileTensors Ring::toOwn(const TileTensors& rows) {
  std::vector<unsigned> places(lowering_.plan().num_partitions, 0);
  for (const auto& ring : rings_) {
    for (std::size_t place = 0; place < size_; ++place) places[ring[place]] = asUnsigned(place);
  }
  const poplar::Type type = all(rows).elementType();
  TileTensors own = makeOnTiles(lowering_, type, countsOf(rows));
  rotate(rows, own, lookUp(places));
  return own;
}

void Ring::fromOwn(const TileTensors& rows, const TileTensors& out) {
  std::vector<unsigned> back(lowering_.plan().num_partitions, 0);
  for (const auto& ring : rings_) {
    for (std::size_t place = 0; place < size_; ++place) back[ring[place]] = asUnsigned((size_ - place) % size_);
  }
  rotate(rows, out, lookUp(back));
}

void Ring::send(const poplar::Tensor& from, const poplar::Tensor& to, std::size_t steps) {
  std::map<unsigned, unsigned> receivers;
  for (const auto& ring : rings_) {
    for (std::size_t place = 0; place < size_; ++place) receivers[ring[place]] = ring[(place + steps) % size_];
  }
  lowering_.program().add(poplar::program::CrossReplicaCopy(from, to, receivers, lowering_.debug("links")));
}

void Ring::swap(const poplar::Tensor& from, const poplar::Tensor& to, std::size_t bit) {
  std::map<unsigned, unsigned> receivers;
  for (const auto& ring : rings_) {
    for (std::size_t place = 0; place < size_; ++place) receivers[ring[place]] = ring[place ^ bit];
  }
  lowering_.program().add(poplar::program::CrossReplicaCopy(from, to, receivers, lowering_.debug("links")));
}

void Ring::sendBothWays(const TileTensors& from, const TileTensors& to) {
  const auto half = [](const TileTensors& parts, bool first) {
    TileTensors halves(parts.size());
    for (std::size_t tile = 0; tile < parts.size(); ++tile) {
      if (!parts[tile].valid()) continue;
      const std::size_t size = parts[tile].numElements(), middle = middleOf(size);
      if (first || middle < size) halves[tile] = first ? parts[tile].slice(0, middle) : parts[tile].slice(middle, size);
    }
    return halves;
  };
  send(all(half(from, true)), all(half(to, true)), 1);
  const TileTensors rest = half(from, false);
  const auto has_elements = [](const poplar::Tensor& part) { return part.valid(); };
  if (std::ranges::any_of(rest, has_elements)) send(all(rest), all(half(to, false)), size_ - 1);
}

TileTensors Ring::bothWays(const TileTensors& rows, std::size_t row) const {
  TileTensors parts(rows.size());
  const std::size_t across = (size_ - row) % size_;
  for (std::size_t tile = 0; tile < rows.size(); ++tile) {
    if (!rows[tile].valid()) continue;
    const std::size_t width = rows[tile].numElements() / size_, middle = middleOf(width);
    parts[tile] = poplar::concat(rows[tile].slice(row * width, row * width + middle),
                                 rows[tile].slice(across * width + middle, (across + 1) * width));
  }
  return parts;
}

TileTensors Ring::rowsOf(const TileTensors& rows, std::size_t row) const {
  TileTensors parts(rows.size());
  for (std::size_t tile = 0; tile < rows.size(); ++tile) {
    if (!rows[tile].valid()) continue;
    const std::size_t width = rows[tile].numElements() / size_;
    parts[tile] = rows[tile].slice(row * width, (row + 1) * width);
  }
  return parts;
}

poplar::Tensor Ring::rowOf(const TileTensors& rows, std::size_t row) const { return all(rowsOf(rows, row)); }

void Ring::combine(const std::string& kind, const TileTensors& a, const TileTensors& b, const TileTensors& out) {
  ComputeStep step(lowering_, "combine");
  for (std::size_t tile = 0; tile < a.size(); ++tile) {
    if (!a[tile].valid()) continue;
    const poplar::Type type = a[tile].elementType();
    step.add(poputil::templateVertex("snnjax::Reduce", kind, type, type), tile,
             {{"in", poplar::concat(a[tile], b[tile])},
              {"out", out[tile]},
              {"outer", 1U},
              {"rows", 2U},
              {"inner", asUnsigned(a[tile].numElements())}});
  }
  step.execute();
}

}  // namespace snnjax::executor::ops
