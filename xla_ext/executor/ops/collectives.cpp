// Exchanges between IPUs. A reduction goes around a ring: each member adds its own part to what the previous one sends,
// so every link carries each word once, and once more for the results. One half goes around in one direction and the
// other half in the other, at the same time.
#include <bit>

#include "executor/operations.hpp"
#include "executor/ops/compute_step.hpp"
#include "executor/ops/kinds.hpp"
#include "executor/ops/ring.hpp"

namespace snnjax::executor::ops {
namespace {

// Returns the size of a group. Groups of partitions are flat in list 0; list 1 has their number and size.
std::size_t checkGroups(const OperationCheck& op, std::size_t lists) {
  op.needCounts(1, 1, lists);
  op.needSameDtype(op.input(0), op.output());
  op.need(op.ints(1).size() == 2, "say how many groups there are");
  const Shape form = op.sizes(1, 2);
  op.need(form[0] > 0 && op.ints(0).size() % form[0] == 0 && op.ints(0).size() / form[0] == form[1],
          "have as many partitions as its groups");
  const Shape members = op.dimensions(0, op.numPartitions());
  op.need(members.size() == op.numPartitions(), "have each partition in a group");
  return form[1];
}

void checkAllReduce(const OperationCheck& op) {
  checkGroups(op, 2);
  op.needKind(0);
  op.needOutput(op.input(0).shape);
}

void checkAllGather(const OperationCheck& op) {
  const std::size_t size = checkGroups(op, 3);
  Shape shape = op.input(0).shape;
  shape[op.number(2, shape.size())] *= size;
  op.needOutput(shape);
}

void checkReduceScatter(const OperationCheck& op) {
  const std::size_t size = checkGroups(op, 3);
  op.needKind(0);
  Shape shape = op.output().shape;
  op.need(shape.size() == op.input(0).shape.size(), "keep the rank");
  shape[op.number(2, shape.size())] *= size;
  op.need(op.input(0).shape == shape, "give each partition of a group a part");
}

void checkAllToAll(const OperationCheck& op) {
  const std::size_t size = checkGroups(op, 3);
  op.need(op.ints(2).size() == 2, "name two dimensions");
  Shape shape = op.input(0).shape;
  const Shape named = op.sizes(2, 2);
  op.need(named[0] < shape.size() && named[1] < shape.size(), "name dimensions that there are");
  op.need(shape[named[0]] % size == 0, "split into as many parts as a group has partitions");
  shape[named[0]] /= size;
  shape[named[1]] *= size;
  op.needOutput(shape);
}

void checkPermute(const OperationCheck& op) {
  op.needCounts(1, 1, 1);
  op.need(op.input(0) == op.output(), "keep the type");
  op.need(op.ints(0).size() % 2 == 0, "have pairs of partitions");
  std::vector<bool> sources(op.numPartitions()), targets(op.numPartitions());
  for (std::size_t i = 0; i < op.ints(0).size(); ++i) {
    std::vector<bool>& seen = i % 2 == 0 ? sources : targets;
    const auto partition = static_cast<std::size_t>(op.ints(0)[i]);
    op.need(op.ints(0)[i] >= 0 && partition < seen.size() && !seen[partition], "name each partition once");
    seen[partition] = true;
  }
}

void checkPartitionId(const OperationCheck& op) {
  op.needCounts(0, 1, 0);
  op.need(op.output().dtype == Dtype::kUint32 && op.output().numElements() == 1, "give a uint32");
}

// Equal parts of an array along a dimension, in the order of the ring's places.
std::vector<poplar::Tensor> partsOf(const Ring& ring, const poplar::Tensor& array, std::int64_t dimension) {
  const auto d = static_cast<unsigned>(dimension);
  const std::size_t size = array.dim(d) / ring.size();
  std::vector<poplar::Tensor> parts;
  for (std::size_t place = 0; place < ring.size(); ++place) {
    const std::size_t member = ring.memberAt(place);
    parts.push_back(array.slice(member * size, (member + 1) * size, d));
  }
  return parts;
}

// rows[0] becomes the combination of all members' parts that belong to this one.
TileTensors reduceToOwn(Lowering& lowering, Ring& ring, const std::string& kind, const TileTensors& rows,
                        const TileTensors& out) {
  const std::vector<std::size_t> counts = countsOf(rows, ring.size());
  const poplar::Type type = all(rows).elementType();
  const TileTensors received = makeOnTiles(lowering, type, counts);
  TileTensors sent = ring.bothWays(rows, ring.size() - 1);
  for (std::size_t row = ring.size() - 1; row-- > 0;) {
    ring.sendBothWays(sent, received);
    sent = row == 0 ? out : makeOnTiles(lowering, type, counts);
    ring.combine(kind, ring.bothWays(rows, row), received, sent);
  }
  return sent;
}

// Rows of all members from row 0, the own one.
void gatherFromOwn(Ring& ring, const TileTensors& rows) {
  for (std::size_t row = ring.size(); row-- > 1;) {
    ring.sendBothWays(ring.bothWays(rows, (row + 1) % ring.size()), ring.bothWays(rows, row));
  }
}

// Few elements, or two members: everything goes to a partner, in log2(members) rounds.
void reduceInRounds(Lowering& lowering, Ring& ring, const std::string& kind, const TileTensors& in,
                    const TileTensors& out) {
  const poplar::Type type = all(in).elementType();
  const TileTensors received = makeOnTiles(lowering, type, countsOf(in));
  TileTensors mine = in;
  for (std::size_t bit = 1; bit < ring.size(); bit *= 2) {
    ring.swap(all(mine), all(received), bit);
    const TileTensors next = bit * 2 == ring.size() ? out : makeOnTiles(lowering, type, countsOf(in));
    ring.combine(kind, mine, received, next);
    mine = next;
  }
}

Kind kindFor(Lowering& lowering, const Instruction& instruction) {
  const std::string& name = instruction.texts[0];
  const Kind kind = kindOf(name, lowering.type(instruction.inputs[0]).dtype);
  if (kind.name.empty())
    lowering.refuse(instruction, "cannot `" + name + "` these elements", "Convert them to 32 bits");
  return kind;
}

void allReduce(Lowering& lowering, const Instruction& instruction) {
  constexpr std::size_t kFew = 16384;
  const Kind kind = kindFor(lowering, instruction);
  Ring ring(lowering, instruction.ints[0], instruction.ints[1]);
  const Layout& layout = lowering.layouts().ofValue(instruction.inputs[0]);
  const TileTensors in = onTiles(layout, {lowering.get(instruction.inputs[0]).reinterpret(kind.type)});
  const poplar::Tensor result = lowering.make(instruction.outputs[0]);
  const TileTensors out = onTiles(layout, {result.reinterpret(kind.type)});
  if (ring.size() == 1) return copy(lowering, all(in), all(out), "own");
  if (std::has_single_bit(ring.size()) && (ring.size() == 2 || result.numElements() <= kFew)) {
    return reduceInRounds(lowering, ring, kind.name, in, out);
  }
  const TileTensors rows = ring.toOwn(asRows(in, ring.size()));
  const TileTensors results = makeOnTiles(lowering, kind.type, countsOf(rows));
  reduceToOwn(lowering, ring, kind.name, rows, ring.rowsOf(results, 0));
  gatherFromOwn(ring, results);
  ring.fromOwn(results, intoRows(lowering, out, results));
}

void reduceScatter(Lowering& lowering, const Instruction& instruction) {
  const Kind kind = kindFor(lowering, instruction);
  Ring ring(lowering, instruction.ints[0], instruction.ints[1]);
  const poplar::Tensor in = lowering.get(instruction.inputs[0]).reinterpret(kind.type);
  const TileTensors rows = ring.toOwn(onTiles(lowering, partsOf(ring, in, instruction.ints[2][0])));
  const poplar::Tensor out = lowering.make(instruction.outputs[0]).reinterpret(kind.type);
  const TileTensors to = onTiles(lowering, {out});
  if (ring.size() == 1) return copy(lowering, all(rows), all(to), "own");
  reduceToOwn(lowering, ring, kind.name, rows, to);
}

void allGather(Lowering& lowering, const Instruction& instruction) {
  Ring ring(lowering, instruction.ints[0], instruction.ints[1]);
  const poplar::Tensor in = asBits(lowering.get(instruction.inputs[0]));
  const poplar::Tensor out = asBits(lowering.make(instruction.outputs[0]));
  const TileTensors own = onTiles(lowering, {in}), to = onTiles(lowering, partsOf(ring, out, instruction.ints[2][0]));
  const TileTensors rows = makeOnTiles(lowering, in.elementType(), countsOf(to));
  copy(lowering, all(own), ring.rowOf(rows, 0), "own");
  gatherFromOwn(ring, rows);
  ring.fromOwn(rows, to);
}

void allToAll(Lowering& lowering, const Instruction& instruction) {
  Ring ring(lowering, instruction.ints[0], instruction.ints[1]);
  const poplar::Tensor in = asBits(lowering.get(instruction.inputs[0]));
  const poplar::Tensor out = asBits(lowering.make(instruction.outputs[0]));
  const TileTensors rows = ring.toOwn(onTiles(lowering, partsOf(ring, in, instruction.ints[2][0])));
  const TileTensors received = makeOnTiles(lowering, in.elementType(), countsOf(rows));
  copy(lowering, ring.rowOf(rows, 0), ring.rowOf(received, 0), "own");
  for (std::size_t steps = 1; steps < ring.size(); ++steps) {
    ring.send(ring.rowOf(rows, steps), ring.rowOf(received, ring.size() - steps), steps);
  }
  ring.fromOwn(received, onTiles(lowering, partsOf(ring, out, instruction.ints[2][1])));
}

void collectivePermute(Lowering& lowering, const Instruction& instruction) {
  const poplar::Tensor in = asBits(lowering.get(instruction.inputs[0]));
  const poplar::Tensor out = asBits(lowering.make(instruction.outputs[0]));
  poplar::Graph& graph = lowering.graph();
  const poplar::Tensor zero = graph.addConstant(out.elementType(), {1}, 0U, lowering.debug("zero"));
  graph.setTileMapping(zero, 0);
  std::map<unsigned, unsigned> receivers;
  const std::vector<std::int64_t>& pairs = instruction.ints[0];
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    receivers[static_cast<unsigned>(pairs[i])] = static_cast<unsigned>(pairs[i + 1]);
  }
  if (receivers.size() < lowering.plan().num_partitions) {
    copy(lowering, zero.broadcast(asUnsigned(out.numElements()), 0), out.flatten(), "zeros");
  }
  if (receivers.empty()) return;
  lowering.program().add(poplar::program::CrossReplicaCopy(in, out, receivers, lowering.debug("links")));
}

void partitionId(Lowering& lowering, const Instruction& instruction) {
  const poplar::Tensor number = lowering.graph().addReplicationIndexConstant(lowering.debug());
  lowering.graph().setTileMapping(number, 0);
  lowering.bind(instruction.outputs[0], number.reshape(lowering.type(instruction.outputs[0]).shape));
}

}  // namespace

extern const Operation kAllReduce = {checkAllReduce, allReduce};
extern const Operation kAllGather = {checkAllGather, allGather};
extern const Operation kReduceScatter = {checkReduceScatter, reduceScatter};
extern const Operation kAllToAll = {checkAllToAll, allToAll};
extern const Operation kCollectivePermute = {checkPermute, collectivePermute};
extern const Operation kPartitionId = {checkPartitionId, partitionId};

}  // namespace snnjax::executor::ops
