// Reductions in stages: every tile reduces its own part of the input; then partial results meet on fewer and fewer
// tiles, each stage taking about the square root of the number that is left, until the tiles of the output do the last.
#include <algorithm>
#include <cmath>
#include <map>
#include <poputil/VertexTemplates.hpp>
#include <tuple>

#include "poplibs/popops/per_tile.hpp"
#include "poplibs/popops/reduction_groups.hpp"
#include "poplibs/popops/reduction_stages.hpp"

namespace poplibs {
namespace {

bool isReal(const poplar::Type& type) { return type == poplar::FLOAT || type == poplar::HALF; }
bool isInteger(const poplar::Type& type) { return type == poplar::INT || type == poplar::UNSIGNED_INT; }

using popops::Operation;

// More partial results than this for one output are first brought together on other tiles.
constexpr std::size_t kMostPartials = 32;
// Fewer outputs than workers on a tile: long rows are cut, so that every worker has some, but never below this: each
// part is a partial result more that goes to another tile.
constexpr std::size_t kLeastRowsPerWorker = 16;

// A vertex to be: elements [outer, rows, inner] of a tensor, reduced into a row of outer * inner elements.
struct Work {
  unsigned tile;
  poplar::Tensor in;
  std::size_t outer, rows, inner;
  Regions outputs;  // that its results are of, as often as it has results of each
};

struct Reduction {
  poplar::Graph& graph;
  std::vector<poplar::ComputeSet>& stages;  // one each, shared with other reductions
  poplar::DebugContext debug;
  Operation op;  // of the stage
  poplar::Type partial_type;
  std::size_t stage = 0;

  // A stage: works[i] goes to the elements outs[i]; all in one compute set.
  void execute(const std::vector<Work>& works, const std::vector<poplar::Tensor>& outs) {
    if (stage == stages.size()) stages.push_back(graph.addComputeSet({debug, "reduce"}));
    const poplar::ComputeSet cs = stages[stage++];
    for (std::size_t i = 0; i < works.size(); ++i) {
      const std::string codelet = reduceCodelet(op, works[i].in.elementType(), outs[i].elementType());
      const poplar::VertexRef vertex = graph.addVertex(cs, codelet);
      graph.connect(vertex["in"], works[i].in.flatten());
      graph.connect(vertex["out"], outs[i].flatten());
      graph.setInitialValue(vertex["outer"], static_cast<unsigned>(works[i].outer));
      graph.setInitialValue(vertex["rows"], static_cast<unsigned>(works[i].rows));
      graph.setInitialValue(vertex["inner"], static_cast<unsigned>(works[i].inner));
      graph.setTileMapping(vertex, works[i].tile);
    }
    if (op == Operation::SQUARE_ADD) op = Operation::ADD;
  }
};

// Partial results and what they are of.
struct Plan {
  std::vector<Work> works;
  std::vector<Group> groups;
  std::size_t size = 0;  // of the partial results

  void add(const Work& work, std::size_t copies) {
    works.push_back(work);
    for (std::size_t copy = 0; copy < copies; ++copy) {
      for (const poplar::Interval& outputs : work.outputs) {
        groups.push_back({outputs, size});
        size += outputs.size();
      }
    }
  }
};

std::size_t numChunks(std::size_t outputs, std::size_t rows, unsigned workers) {
  if (outputs >= workers) return 1;
  return std::clamp<std::size_t>(rows / kLeastRowsPerWorker, 1, workers / outputs);
}

// A block of a matrix [reduced, outputs], or, transposed, [outputs, reduced].
void addBlock(Plan& plan, unsigned tile, const poplar::Tensor& matrix, const Block& block, bool transposed,
              unsigned workers) {
  const poplar::Tensor all = poplar::concat(matrix.slices(block.major)).slice(block.minor, 1);
  const Regions outputs = transposed ? block.major : Regions{block.minor};
  const std::size_t count = transposed ? block.rows() : block.minor.size();
  const std::size_t reduced = transposed ? block.minor.size() : block.rows();
  // Rows of a transposed block that are cut would not lie one after the other: one output at a time then.
  const std::size_t chunks = transposed && count > 1 ? 1 : numChunks(count, reduced, workers);
  const std::size_t rows = reduced / chunks;
  const auto part = [&](std::size_t begin, std::size_t end) { return all.slice(begin, end, transposed ? 1 : 0); };
  if (transposed && chunks == 1) {
    plan.add({tile, all, count, rows, 1, outputs}, 1);
    return;
  }
  plan.add({tile, part(0, rows * chunks), chunks, rows, count, outputs}, chunks);
  if (rows * chunks < reduced) {
    plan.add({tile, part(rows * chunks, reduced), 1, reduced - rows * chunks, count, outputs}, 1);
  }
}

std::size_t numRegions(const Mapping& mapping) {
  std::size_t regions = 0;
  for (const Regions& tile : mapping) regions += tile.size();
  return regions;
}

// What lies on each tile, by rows or by columns, whichever has fewer pieces.
Plan planTiles(const poplar::Graph& graph, const poplar::Tensor& matrix) {
  const poplar::Tensor columns_first = matrix.transpose();
  const Mapping direct = graph.getTileMapping(matrix), transposed = graph.getTileMapping(columns_first);
  const bool swap = numRegions(transposed) < numRegions(direct);
  const poplar::Tensor& taken = swap ? columns_first : matrix;
  Plan plan;
  for (const TilePart& part : partsByTile(swap ? transposed : direct)) {
    for (const Block& block : blocksOf(part.regions, taken.dim(1))) {
      addBlock(plan, part.tile, taken, block, swap, graph.getTarget().getNumWorkerContexts());
    }
  }
  return plan;
}

poplar::Tensor rowsAt(const poplar::Tensor& partials, const Segment& segment, std::size_t first, std::size_t last,
                      const poplar::Interval& outputs) {
  std::vector<poplar::Interval> rows;
  const std::size_t skipped = outputs.begin() - segment.outputs.begin();
  for (std::size_t i = first; i < last; ++i) {
    const std::size_t begin = segment.positions[i] + skipped;
    rows.emplace_back(begin, begin + outputs.size());
  }
  return poplar::concat(partials.slices(rows));
}

// Brings `chunk` partial results of each output together, on one tile after another.
Plan planMeeting(const poplar::Graph& graph, const poplar::Tensor& partials, const std::vector<Segment>& segments,
                 std::size_t chunk) {
  const unsigned tiles = graph.getTarget().getNumTiles();
  Plan plan;
  unsigned tile = 0;
  for (const Segment& segment : segments) {
    for (std::size_t first = 0; first < segment.positions.size(); first += chunk) {
      const std::size_t last = std::min(first + chunk, segment.positions.size());
      const std::size_t columns = segment.outputs.size();
      const poplar::Tensor rows = rowsAt(partials, segment, first, last, segment.outputs);
      plan.add({tile++ % tiles, rows, 1, last - first, columns, {segment.outputs}}, 1);
    }
  }
  return plan;
}

// Where no tile holds two numbers of one output, the input itself is the partial results.
std::vector<Group> inputAsPartials(const Plan& plan, const poplar::Tensor& matrix, const Mapping& mapping) {
  std::vector<Group> groups;
  if (!std::all_of(plan.works.begin(), plan.works.end(), [](const Work& work) { return work.rows == 1; }))
    return groups;
  for (const TilePart& part : partsByTile(mapping)) {
    for (const Block& block : blocksOf(part.regions, matrix.dim(1))) {
      for (const poplar::Interval& range : block.major) {
        for (std::size_t row = range.begin(); row < range.end(); ++row) {
          groups.push_back({block.minor, row * matrix.dim(1) + block.minor.begin()});
        }
      }
    }
  }
  return groups;
}

// One tensor for the results of all works, each on the tile of its work.
std::vector<poplar::Tensor> addPartials(const Reduction& reduction, const Plan& plan, poplar::Tensor& partials) {
  partials = reduction.graph.addVariable(reduction.partial_type, {plan.size}, {reduction.debug, "partials"});
  std::vector<poplar::Tensor> outs;
  std::size_t begin = 0;
  for (const Work& work : plan.works) {
    outs.push_back(partials.slice(begin, begin + work.outer * work.inner));
    reduction.graph.setTileMapping(outs.back(), work.tile);
    begin += work.outer * work.inner;
  }
  return outs;
}

// Works of one tile and shape become one, whose outputs the workers share.
class Joined {
 public:
  void add(const Work& work, const poplar::Tensor& out) {
    const auto [known, is_new] = by_shape_.emplace(std::tuple(work.tile, work.rows, work.inner), works_.size());
    if (is_new) {
      works_.push_back(work);
      works_.back().outer = 0;
      ins_.emplace_back();
      outs_.emplace_back();
    }
    ++works_[known->second].outer;
    ins_[known->second].push_back(work.in.flatten());
    outs_[known->second].push_back(out.flatten());
  }

  void execute(Reduction& reduction) {
    std::vector<poplar::Tensor> outs;
    for (std::size_t i = 0; i < works_.size(); ++i) {
      works_[i].in = poplar::concat(ins_[i]);
      outs.push_back(poplar::concat(outs_[i]));
    }
    reduction.execute(works_, outs);
  }

 private:
  std::vector<Work> works_;
  std::vector<std::vector<poplar::Tensor>> ins_, outs_;
  std::map<std::tuple<unsigned, std::size_t, std::size_t>, std::size_t> by_shape_;
};

// The last stage, on the tiles of the output.
void finish(Reduction& reduction, const poplar::Tensor& partials, const std::vector<Segment>& segments,
            const poplar::Tensor& out) {
  Joined works;
  for (const TilePart& part : partsByTile(reduction.graph.getTileMapping(out))) {
    for (const poplar::Interval& region : part.regions) {
      auto segment = std::upper_bound(segments.begin(), segments.end(), region.begin(),
                                      [](std::size_t place, const Segment& s) { return place < s.outputs.end(); });
      for (; segment != segments.end() && segment->outputs.begin() < region.end(); ++segment) {
        const poplar::Interval outputs(std::max(segment->outputs.begin(), region.begin()),
                                       std::min(segment->outputs.end(), region.end()));
        const std::size_t rows = segment->positions.size();
        works.add({part.tile, rowsAt(partials, *segment, 0, rows, outputs), 1, rows, outputs.size(), {outputs}},
                  out.slice(outputs));
      }
    }
  }
  works.execute(reduction);
}

bool isComplete(const std::vector<Segment>& segments) {
  return std::all_of(segments.begin(), segments.end(), [](const Segment& s) { return s.positions.size() == 1; });
}

}  // namespace

std::string reduceCodelet(popops::Operation op, const poplar::Type& in, const poplar::Type& out) {
  const auto name = [](popops::Operation operation) -> const char* {
    using enum popops::Operation;
    switch (operation) {
      case ADD: return "Sum";
      case SQUARE_ADD: return "SquareSum";
      case MUL: return "Product";
      case MIN: return "Smallest";
      case MAX: return "Largest";
      case LOGICAL_AND: return "AllOf";
      case LOGICAL_OR: return "AnyOf";
      case LOG_ADD: break;
    }
    return nullptr;
  }(op);
  const bool logical = op == popops::Operation::LOGICAL_AND || op == popops::Operation::LOGICAL_OR;
  const bool fits =
      logical ? in == poplar::BOOL && out == poplar::BOOL : (isReal(in) && isReal(out)) || (isInteger(in) && in == out);
  if (name == nullptr || !fits) return {};
  return poputil::templateVertex("snnjax::Reduce", name, in, out);
}

void addReductionStages(poplar::Graph& graph, const poplar::Tensor& matrix, const poplar::Tensor& out, Operation op,
                        std::vector<poplar::ComputeSet>& stages, const poplar::DebugContext& debug) {
  const bool wide = out.elementType() == poplar::HALF || matrix.elementType() == poplar::HALF;
  Reduction reduction{graph, stages, debug, op, wide ? poplar::FLOAT : out.elementType()};
  Plan plan = planTiles(reduction.graph, matrix);
  std::vector<Segment> segments = segmentsOf(plan.groups);
  if (isComplete(segments)) {  // each output lies on one tile: no partial results
    std::vector<poplar::Tensor> outs;
    for (const Work& work : plan.works) outs.push_back(poplar::concat(out.slices(work.outputs)));
    reduction.execute(plan.works, outs);
    return;
  }
  poplar::Tensor partials = matrix.flatten();
  const std::vector<Group> inputs = inputAsPartials(plan, matrix, reduction.graph.getTileMapping(matrix));
  if (inputs.empty()) {
    reduction.execute(plan.works, addPartials(reduction, plan, partials));
  } else {
    segments = segmentsOf(inputs);
  }
  while (true) {
    std::size_t most = 0;
    for (const Segment& segment : segments) most = std::max(most, segment.positions.size());
    if (most <= kMostPartials) return finish(reduction, partials, segments, out);
    const auto chunk = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(most))));
    plan = planMeeting(reduction.graph, partials, segments, chunk);
    reduction.execute(plan.works, addPartials(reduction, plan, partials));
    segments = segmentsOf(plan.groups);
  }
}

}  // namespace poplibs
