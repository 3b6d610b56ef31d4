// Reductions in stages: every tile reduces its own part of the input; then partial results meet on fewer and fewer
// tiles, each stage taking about the square root of the number that is left, until the tiles of the output do the last.
#include <algorithm>
#include <cmath>
#include <ostream>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs/popops/codelet_names.hpp"
#include "poplibs/popops/per_tile.hpp"
#include "poplibs/popops/reduction_groups.hpp"

namespace poplibs {
namespace {

using popops::Operation;

// More partial results than this for one output are first brought together on other tiles.
constexpr std::size_t kMostPartials = 64;
// Fewer outputs than workers on a tile: long rows are cut, so that every worker has some, but never below this.
constexpr std::size_t kLeastRowsPerWorker = 8;

// A vertex to be: elements [outer, rows, inner] of a tensor, reduced into a row of outer * inner elements.
struct Work {
  unsigned tile;
  poplar::Tensor in;
  std::size_t outer, rows, inner;
};

struct Reduction {
  poplar::Graph& graph;
  poplar::program::Sequence& prog;
  poplar::DebugContext debug;
  Operation op;           // of the stage
  poplar::Type out_type;  // of the result
  poplar::Type partial_type;

  // A stage: works[i] goes to the elements outs[i]; all in one compute set.
  void execute(const std::vector<Work>& works, const std::vector<poplar::Tensor>& outs) {
    const poplar::ComputeSet cs = graph.addComputeSet({debug, "reduce"});
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
    prog.add(poplar::program::Execute(cs, debug));
    if (op == Operation::SQUARE_ADD) op = Operation::ADD;
  }
};

// Partial results and what they are of. Groups and works have the same order.
struct Plan {
  std::vector<Work> works;
  std::vector<Group> groups;
  std::size_t size = 0;  // of the partial results

  void add(const Work& work, const poplar::Interval& outputs, std::size_t copies) {
    works.push_back(work);
    for (std::size_t copy = 0; copy < copies; ++copy) {
      groups.push_back({outputs, size});
      size += outputs.size();
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
  const poplar::Interval& outputs = transposed ? block.major : block.minor;
  const poplar::Interval& reduced = transposed ? block.minor : block.major;
  // Rows of a transposed block that are cut would not lie one after the other: one output at a time then.
  const std::size_t chunks = transposed && outputs.size() > 1 ? 1 : numChunks(outputs.size(), reduced.size(), workers);
  const std::size_t rows = reduced.size() / chunks;
  const auto part = [&](std::size_t begin, std::size_t end) {
    const poplar::Interval rest(reduced.begin() + begin, reduced.begin() + end);
    return transposed ? matrix.slice(outputs, 0).slice(rest, 1) : matrix.slice(rest, 0).slice(outputs, 1);
  };
  if (transposed && chunks == 1) {
    plan.add({tile, part(0, rows), outputs.size(), rows, 1}, outputs, 1);
    return;
  }
  plan.add({tile, part(0, rows * chunks), chunks, rows, outputs.size()}, outputs, chunks);
  if (rows * chunks < reduced.size()) {
    plan.add({tile, part(rows * chunks, reduced.size()), 1, reduced.size() - rows * chunks, outputs.size()}, outputs,
             1);
  }
}

std::size_t numRegions(const Mapping& mapping) {
  std::size_t regions = 0;
  for (const Regions& tile : mapping) regions += tile.size();
  return regions;
}

// What lies on each tile, whichever way round it lies in fewer pieces.
Plan planTiles(const poplar::Graph& graph, const poplar::Tensor& matrix) {
  const poplar::Tensor turned = matrix.transpose();
  const Mapping direct = graph.getTileMapping(matrix), transposed = graph.getTileMapping(turned);
  const bool turn = numRegions(transposed) < numRegions(direct);
  const poplar::Tensor& taken = turn ? turned : matrix;
  Plan plan;
  for (const TilePart& part : partsByTile(turn ? transposed : direct)) {
    for (const Block& block : blocksOf(part.regions, taken.dim(1))) {
      addBlock(plan, part.tile, taken, block, turn, graph.getTarget().getNumWorkerContexts());
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

// Brings `chunk` partial results of each output together, on tiles in turn.
Plan planMeeting(const poplar::Graph& graph, const poplar::Tensor& partials, const std::vector<Segment>& segments,
                 std::size_t chunk) {
  const unsigned tiles = graph.getTarget().getNumTiles();
  Plan plan;
  unsigned tile = 0;
  for (const Segment& segment : segments) {
    for (std::size_t first = 0; first < segment.positions.size(); first += chunk) {
      const std::size_t last = std::min(first + chunk, segment.positions.size());
      const std::size_t columns = segment.outputs.size();
      plan.add({tile++ % tiles, rowsAt(partials, segment, first, last, segment.outputs), 1, last - first, columns},
               segment.outputs, 1);
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
      for (std::size_t row = block.major.begin(); row < block.major.end(); ++row) {
        groups.push_back({block.minor, row * matrix.dim(1) + block.minor.begin()});
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

// The last stage, on the tiles of the output.
void finish(Reduction& reduction, const poplar::Tensor& partials, const std::vector<Segment>& segments,
            const poplar::Tensor& out) {
  std::vector<Work> works;
  std::vector<poplar::Tensor> outs;
  for (const TilePart& part : partsByTile(reduction.graph.getTileMapping(out))) {
    for (const poplar::Interval& region : part.regions) {
      auto segment = std::upper_bound(segments.begin(), segments.end(), region.begin(),
                                      [](std::size_t place, const Segment& s) { return place < s.outputs.end(); });
      for (; segment != segments.end() && segment->outputs.begin() < region.end(); ++segment) {
        const poplar::Interval outputs(std::max(segment->outputs.begin(), region.begin()),
                                       std::min(segment->outputs.end(), region.end()));
        const std::size_t rows = segment->positions.size();
        works.push_back({part.tile, rowsAt(partials, *segment, 0, rows, outputs), 1, rows, outputs.size()});
        outs.push_back(out.slice(outputs));
      }
    }
  }
  reduction.execute(works, outs);
}

bool isComplete(const std::vector<Segment>& segments) {
  return std::all_of(segments.begin(), segments.end(), [](const Segment& s) { return s.positions.size() == 1; });
}

// matrix: [reduced, outputs] with at least one row, out: [outputs].
void reduceMatrix(Reduction reduction, const poplar::Tensor& matrix, const poplar::Tensor& out) {
  Plan plan = planTiles(reduction.graph, matrix);
  std::vector<Segment> segments = segmentsOf(plan.groups);
  if (isComplete(segments)) {  // each output lies on one tile: no partial results
    std::vector<poplar::Tensor> outs;
    for (const Group& group : plan.groups) outs.push_back(out.slice(group.outputs));
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

double neutral(Operation op, const poplar::Type& type) {
  const bool real = type == poplar::FLOAT || type == poplar::HALF, is_signed = type == poplar::INT;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case Operation::MUL:
    case Operation::LOGICAL_AND: return 1;
    case Operation::MIN: return real ? kInfinity : is_signed ? 2147483647.0 : 4294967295.0;
    case Operation::MAX: return real ? -kInfinity : is_signed ? -2147483648.0 : 0.0;
    default: return 0;
  }
}

// [reduced, outputs]
poplar::Tensor asMatrix(const poplar::Tensor& in, const std::vector<std::size_t>& dims) {
  std::vector<unsigned> order;
  std::size_t reduced = 1;
  for (unsigned d = 0; d < in.rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) continue;
    order.push_back(d);
    reduced *= in.dim(d);
  }
  for (unsigned d = 0; d < in.rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  }
  const std::size_t outputs = reduced == 0 ? 0 : in.numElements() / reduced;
  return in.dimShuffle(order).reshape({reduced, outputs});
}

std::vector<std::size_t> keptShape(const poplar::Tensor& in, const std::vector<std::size_t>& dims) {
  for (const std::size_t d : dims) {
    if (d >= in.rank()) {
      throw poputil::poplibs_error("popops::reduce: `dims` must be below the rank (" + std::to_string(in.rank()) +
                                   "), got " + std::to_string(d) + ". Count dimensions from 0.");
    }
  }
  std::vector<std::size_t> shape;
  for (unsigned d = 0; d < in.rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) shape.push_back(in.dim(d));
  }
  return shape;
}

}  // namespace
}  // namespace poplibs

namespace popops {

std::ostream& operator<<(std::ostream& stream, Operation operation) {
  switch (operation) {
    case Operation::ADD: return stream << "ADD";
    case Operation::MUL: return stream << "MUL";
    case Operation::MIN: return stream << "MIN";
    case Operation::MAX: return stream << "MAX";
    case Operation::LOGICAL_AND: return stream << "LOGICAL_AND";
    case Operation::LOGICAL_OR: return stream << "LOGICAL_OR";
    case Operation::SQUARE_ADD: return stream << "SQUARE_ADD";
    case Operation::LOG_ADD: return stream << "LOG_ADD";
  }
  return stream;
}

namespace {

void checkReduce(const poplar::Tensor& in, const poplar::Tensor& out, const std::vector<std::size_t>& dims,
                 const ReduceParams& params) {
  const std::vector<std::size_t> shape = poplibs::keptShape(in, dims);
  if (out.shape() != shape) {
    throw poputil::poplibs_error("popops::reduceWithOutput: `out` must have the shape " + poplibs::toString(shape) +
                                 ", got " + poplibs::toString(out.shape()) + ". Leave the reduced dimensions out.");
  }
  const bool adds = params.op == Operation::ADD || params.op == Operation::SQUARE_ADD;
  if ((params.update || params.useScale) && !adds) {
    throw poputil::poplibs_error(
        "popops::reduce: `op` must be ADD or SQUARE_ADD with update or scale, got another. Apply them afterwards.");
  }
  if (poplibs::reduceCodelet(params.op, in.elementType(), out.elementType()).empty()) {
    throw poputil::poplibs_error("popops::reduce: `op` must exist for the types, got " + in.elementType().toString() +
                                 " to " + out.elementType().toString() + ". Cast the input, or the result.");
  }
}

}  // namespace

void reduceWithOutput(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                      const std::vector<std::size_t>& dims, ReduceParams params, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  checkReduce(in, out, dims, params);
  if (!poplibs::isMapped(graph, out)) poputil::mapTensorLinearly(graph, out);
  if (out.numElements() == 0) return;
  const bool then_change = params.update || params.useScale;
  const poplar::Tensor result =
      then_change ? poplibs::cloneOnTiles(graph, out.elementType(), out, {debug, "sum"}) : out;
  if (in.numElements() == 0) {
    fill(graph, result, prog, poplibs::neutral(params.op, out.elementType()), debug);
  } else {
    const bool wide = out.elementType() == poplar::HALF || in.elementType() == poplar::HALF;
    poplibs::reduceMatrix({graph, prog, debug, params.op, out.elementType(), wide ? poplar::FLOAT : out.elementType()},
                          poplibs::asMatrix(in, dims), result.flatten());
  }
  if (params.useScale) {
    const poplar::Type type = out.elementType();
    mapInPlace(graph, expr::_1 * expr::Cast(expr::_2, type), {result, params.scale.reshape({})}, prog, debug);
  }
  if (params.update) addInPlace(graph, out, result, prog, debug);
  if (then_change && !params.update) prog.add(poplar::program::Copy(result, out, false, debug));
}

poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Type& out_type,
                      const std::vector<std::size_t>& dims, ReduceParams params, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debug, const poplar::OptionFlags& options) {
  if (params.update) {
    throw poputil::poplibs_error(
        "popops::reduce: `update` must be false, got true. Call reduceWithOutput with the tensor to update.");
  }
  const poplar::Tensor out = graph.addVariable(out_type, poplibs::keptShape(in, dims), {debug, "out"});
  poputil::mapTensorLinearly(graph, out);
  reduceWithOutput(graph, in, out, dims, params, prog, debug, options);
  return out;
}

poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const std::vector<std::size_t>& dims,
                      ReduceParams params, poplar::program::Sequence& prog, const poplar::DebugContext& debug,
                      const poplar::OptionFlags& options) {
  return reduce(graph, in, in.elementType(), dims, params, prog, debug, options);
}

void reduceMany(poplar::Graph& graph, const std::vector<SingleReduceOp>& reductions,
                std::vector<poplar::Tensor>& outputs, poplar::program::Sequence& prog,
                const poplar::DebugContext& debug, const poplar::OptionFlags& options) {
  const bool create = outputs.empty();
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const SingleReduceOp& one = reductions[i];
    const poplar::Type type = one.useOutType ? one.outType : one.in.elementType();
    if (create) {
      outputs.push_back(graph.addVariable(type, poplibs::keptShape(one.in, one.dims), {debug, one.debugName}));
      poputil::mapTensorLinearly(graph, outputs.back());
    }
    reduceWithOutput(graph, one.in, outputs[i], one.dims, one.params, prog, {debug, one.debugName}, options);
  }
}

}  // namespace popops
