// Poplar's programs: each an immutable node.
#include <poplar/CSRFunctions.hpp>
#include <poplar/CycleCount.hpp>
#include <poplar/Program.hpp>
#include <poplar/exceptions.hpp>

#include "program/nodes.hpp"
#include "tensor/view.hpp"

namespace ipu_model {
namespace {

template <typename Kind>
Node makeNode(const poplar::DebugContext& context, const char* otherwise, Kind kind) {
  auto node = std::make_shared<ProgramNode>();
  node->name = context.getPathName().empty() ? otherwise : context.getPathName();
  node->what = std::move(kind);
  return node;
}

void checkPredicate(const poplar::Tensor& predicate, const char* program) {
  if (predicate.numElements() == 1) return;
  throw poplar::control_program_error(std::string(program) + ": `predicate` must be one element, got " +
                                      predicate.getDebugStr() + ". Index or reduce the tensor.");
}

void checkCopy(const poplar::Tensor& from, const poplar::Tensor& to) {
  if (from.elementType().size() != to.elementType().size() || from.numElements() != to.numElements()) {
    throw poplar::control_program_error("Copy: `dst` must have as many elements of the same size as src, " +
                                        from.getDebugStr() + ", got " + to.getDebugStr() +
                                        ". Slice or broadcast one of them.");
  }
  if (!to.isParallelWriteable()) {
    throw poplar::control_program_error("Copy: `dst` must hold each element once and no constants, got " +
                                        to.getDebugStr() + ". Copy to the variable before it is broadcast.");
  }
}

void checkStream(const poplar::DataStream& stream, const poplar::Tensor& tensor, bool to_host) {
  const bool direction = (stream.type() == poplar::DataStreamType::DeviceToHostFIFO) == to_host;
  const bool elements = stream.elementType().size() == tensor.elementType().size() && stream.numElements() > 0 &&
                        tensor.numElements() % stream.numElements() == 0;
  if (direction && (elements || tensor.numElements() == 0)) return;
  throw poplar::control_program_error(
      "Copy: `stream` must go " + std::string(to_host ? "to" : "from") + " the host and fit " + tensor.getDebugStr() +
      ", got \"" + stream.handle().cloneAsString() + "\" of " + std::to_string(stream.numElements()) + " x " +
      stream.elementType().toString() + ". Add the stream with the tensor's type and number of elements.");
}

}  // namespace
}  // namespace ipu_model

namespace poplar::program {

using namespace ipu_model;

Program::Program() : node_(makeNode({}, "nothing", nodes::Sequence{})) {}

bool Program::isEmpty() const {
  const auto* sequence = std::get_if<nodes::Sequence>(&node_->what);
  return sequence != nullptr && sequence->programs.empty();
}

Sequence::Sequence(const DebugContext& debugContext) : Program(makeNode(debugContext, "", nodes::Sequence{})) {}

Sequence::Sequence(std::initializer_list<Program> programs, const DebugContext& debugContext) : Sequence(debugContext) {
  for (const Program& program : programs) add(program);
}

void Sequence::add(const Program& program) {
  if (program.isEmpty()) return;
  // Copy on write: a shared node is copied, an unshared one is extended in place.
  std::shared_ptr<ProgramNode> longer;
  Node added = program.node();
  if (node_.use_count() == 1) {
    longer = std::const_pointer_cast<ProgramNode>(node_);
  } else {
    longer = std::make_shared<ProgramNode>(*node_);
    node_ = longer;
  }
  std::get<nodes::Sequence>(longer->what).programs.push_back(std::move(added));
}

Execute::Execute(ComputeSet cs, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "", nodes::Execute{cs.getId()})) {}

Copy::Copy(Tensor src, Tensor dst, bool, const DebugContext& debugContext)
    : Program((checkCopy(src, dst), makeNode(debugContext, "copy", nodes::Copy{src, dst}))) {}

Copy::Copy(const DataStream& stream, Tensor dst, bool optimiseMemory, const DebugContext& debugContext)
    : Program((checkStream(stream, dst, false),
               makeNode(debugContext, "stream copy", nodes::StreamCopy{stream, dst, false, optimiseMemory}))) {}

Copy::Copy(Tensor src, const DataStream& stream, bool optimiseMemory, const DebugContext& debugContext)
    : Program((checkStream(stream, src, true),
               makeNode(debugContext, "stream copy", nodes::StreamCopy{stream, src, true, optimiseMemory}))) {}

Copy::Copy(Tensor src, const RemoteBuffer& buffer, const DebugContext& debugContext)
    : Copy(std::move(src), buffer, Tensor(), debugContext) {}

Copy::Copy(const RemoteBuffer& buffer, Tensor dst, const DebugContext& debugContext)
    : Copy(buffer, std::move(dst), Tensor(), debugContext) {}

Copy::Copy(Tensor src, const RemoteBuffer& buffer, Tensor offset, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "remote copy", nodes::RemoteCopy{buffer, src, offset, true})) {}

Copy::Copy(const RemoteBuffer& buffer, Tensor dst, Tensor offset, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "remote copy", nodes::RemoteCopy{buffer, dst, offset, false})) {}

CrossReplicaCopy::CrossReplicaCopy(Tensor src, Tensor dst, std::map<unsigned, unsigned> replicaMap,
                                   const DebugContext& debugContext)
    : Program((checkCopy(src, dst), makeNode(debugContext, "cross-replica copy",
                                             nodes::CrossReplicaCopy{src, dst, std::move(replicaMap)}))) {}

Repeat::Repeat(unsigned count, const Program& body, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "repeat", nodes::Repeat{count, body.node()})) {}

RepeatWhileFalse::RepeatWhileFalse(const Program& cond, Tensor predicate, const Program& body,
                                   const DebugContext& debugContext)
    : Program((checkPredicate(predicate, "RepeatWhileFalse"),
               makeNode(debugContext, "repeat", nodes::RepeatWhile{cond.node(), predicate, body.node(), false}))) {}

RepeatWhileTrue::RepeatWhileTrue(const Program& cond, Tensor predicate, const Program& body,
                                 const DebugContext& debugContext)
    : Program((checkPredicate(predicate, "RepeatWhileTrue"),
               makeNode(debugContext, "repeat", nodes::RepeatWhile{cond.node(), predicate, body.node(), true}))) {}

If::If(Tensor predicate, const Program& trueBody, const Program& falseBody, const DebugContext& debugContext)
    : Program((checkPredicate(predicate, "If"),
               makeNode(debugContext, "if", nodes::Switch{predicate, {{0, falseBody.node()}}, trueBody.node()}))) {}

Switch::Switch(Tensor control, const DebugContext& debugContext) : Switch(control, {}, Program(), debugContext) {}

Switch::Switch(Tensor control, const std::vector<Case>& cases, const DebugContext& debugContext)
    : Switch(control, cases, Program(), debugContext) {}

Switch::Switch(Tensor control, const std::vector<Case>& cases, const Program& defaultCaseBody,
               const DebugContext& debugContext)
    : Program((checkPredicate(control, "Switch"),
               makeNode(debugContext, "switch", nodes::Switch{control, {}, defaultCaseBody.node()}))) {
  for (const Case& one : cases) add(one.first, one.second);
}

Switch Switch::switchWithBoundsChecking(Tensor control, const std::vector<Case>& cases,
                                        const DebugContext& debugContext) {
  return Switch(control, cases,
                ErrorProgram("Switch: `control` must be the value of a case, got another. Add a case.", Tensor()),
                debugContext);
}

Switch Switch::switchWithUnreachableDefault(Tensor control, const DebugContext& debugContext) {
  return switchWithBoundsChecking(control, {}, debugContext);
}

Switch& Switch::add(std::int32_t value, const Program& body) {
  auto longer = std::make_shared<ProgramNode>(*node_);
  std::get<nodes::Switch>(longer->what).cases.emplace_back(value, body.node());
  node_ = longer;
  return *this;
}

Call::Call(Function function, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "call", nodes::Call{function.getId()})) {}

Call::Call(HostFunction function, ArrayRef<Tensor> inputs, ArrayRef<Tensor> outputs, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "host call", nodes::HostCall{function.getId(), inputs, outputs})) {}

Sync::Sync(SyncType type, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "sync", nodes::Sync{type})) {}

PrintTensor::PrintTensor(Tensor tensor, const DebugContext& debugContext)
    : PrintTensor(std::move(tensor), PrintTensorFmt(), debugContext) {}

PrintTensor::PrintTensor(StringRef title, Tensor tensor, const DebugContext& debugContext)
    : PrintTensor(title, std::move(tensor), PrintTensorFmt(), debugContext) {}

PrintTensor::PrintTensor(Tensor tensor, const PrintTensorFmt& fmt, const DebugContext& debugContext)
    : PrintTensor(debugContext.getPathName().empty() ? tensor.getVarStr() : debugContext.getPathName(), tensor, fmt,
                  debugContext) {}

PrintTensor::PrintTensor(StringRef title, Tensor tensor, const PrintTensorFmt& fmt, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "print", nodes::Print{title, std::move(tensor), fmt})) {}

WriteUndef::WriteUndef(Tensor tensor, const DebugContext&) { (void)viewOf(tensor); }

ErrorProgram::ErrorProgram(StringRef message, Tensor debugTensor, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "error", nodes::Error{message, {}, debugTensor})) {}

Abort::Abort(StringRef message, const DebugContext& debugContext)
    : Program(makeNode(debugContext, "abort", nodes::Error{message, {}, {}})) {}

AbortOnCondition::AbortOnCondition(Tensor predicate, StringRef message, const DebugContext& debugContext)
    : Program((checkPredicate(predicate, "AbortOnCondition"),
               makeNode(debugContext, "abort", nodes::Error{message, predicate, {}}))) {}

}  // namespace poplar::program

namespace poplar {
namespace {

class Stamp : public program::Program {
 public:
  Stamp(const Tensor& tensor, bool difference)
      : Program(ipu_model::makeNode({}, "cycle stamp", ipu_model::nodes::CycleStamp{tensor, difference})) {}
};

Tensor clockTensor(Graph& graph, unsigned tile, const DebugContext& context) {
  const Tensor tensor = graph.addVariable(UNSIGNED_INT, {2}, context);
  graph.setTileMapping(tensor, tile);
  return tensor;
}

}  // namespace

Tensor cycleStamp(Graph& graph, program::Sequence& prog, unsigned tile, SyncType, const DebugContext& debugContext) {
  const Tensor tensor = clockTensor(graph, tile, debugContext);
  prog.add(Stamp(tensor, false));
  return tensor;
}

Tensor cycleCount(Graph& graph, program::Sequence& prog, unsigned tile, SyncType, const DebugContext& debugContext) {
  const Tensor tensor = clockTensor(graph, tile, debugContext);
  prog = program::Sequence({Stamp(tensor, false), prog, Stamp(tensor, true)});
  return tensor;
}

void setFloatingPointBehaviour(Graph&, program::Sequence&, const FloatingPointBehaviour&, const DebugContext&) {}
void setStochasticRounding(Graph&, program::Sequence&, bool, const DebugContext&) {}

}  // namespace poplar
