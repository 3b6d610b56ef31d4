#include "executor/ops/tile_tensors.hpp"

#include <algorithm>

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

TileTensors onTiles(const Lowering& lowering, const std::vector<poplar::Tensor>& arrays) {
  const Layouts& layouts = lowering.layouts();
  const std::vector<std::size_t>& cuts = layouts.cuts(arrays[0].shape());
  std::vector<poplar::Tensor> memories;
  for (const poplar::Tensor& array : arrays) memories.push_back(layouts.memoryOrder(array));
  TileTensors parts(layouts.tiles());
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

}  // namespace snnjax::executor::ops
