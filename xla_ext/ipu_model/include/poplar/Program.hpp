// Programs: what the device does, in which order. They are values: a copy does not see later additions to the original.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <poplar/ArrayRef.hpp>
#include <poplar/DataStream.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/PrintTensor.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/SyncType.hpp>
#include <poplar/Tensor.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace ipu_model {
struct ProgramNode;
}

namespace poplar {
namespace program {

class Program {
 public:
  Program();  // does nothing
  bool isEmpty() const;
  const std::shared_ptr<const ipu_model::ProgramNode>& node() const { return node_; }  // the model's own

 protected:
  explicit Program(std::shared_ptr<const ipu_model::ProgramNode> node) : node_(std::move(node)) {}
  std::shared_ptr<const ipu_model::ProgramNode> node_;
};

// One program after the other.
class Sequence : public Program {
 public:
  explicit Sequence(const DebugContext& debugContext = {});
  Sequence(std::initializer_list<Program> programs, const DebugContext& debugContext = {});
  template <typename Second, typename... Programs,
            typename = typename std::enable_if<std::is_base_of<Program, Second>::value>::type>
  explicit Sequence(const Program& first, const Second& second, const Programs&... rest)
      : Sequence({first, Program(second), Program(rest)...}) {}
  // Of one program of another kind: Sequence steps = Repeat(...).
  template <typename Only, typename = typename std::enable_if<std::is_base_of<Program, Only>::value &&
                                                              !std::is_base_of<Sequence, Only>::value>::type>
  Sequence(const Only& only) : Sequence({Program(only)}) {}

  void add(const Program& program);
};

// The vertices of a compute set, all at once.
class Execute : public Program {
 public:
  explicit Execute(ComputeSet cs, const DebugContext& debugContext = {});
  // `outPredicate` becomes the logical and of what the vertices returned.
  Execute(ComputeSet cs, Tensor outPredicate, const DebugContext& debugContext = {});
};

// Elements of one tensor into another, from and to the host. Those of a stream are put in order by an exchange of the
// device, or by the host where `optimiseMemory` asks for it.
class Copy : public Program {
 public:
  Copy(Tensor src, Tensor dst, bool dontOutline = false, const DebugContext& debugContext = {});
  Copy(Tensor src, Tensor dst, const DebugContext& debugContext) : Copy(src, dst, false, debugContext) {}
  Copy(const DataStream& stream, Tensor dst, bool optimiseMemory = false, const DebugContext& debugContext = {});
  Copy(Tensor src, const DataStream& stream, bool optimiseMemory = false, const DebugContext& debugContext = {});
  Copy(Tensor src, const RemoteBuffer& buffer, const DebugContext& debugContext = {});
  Copy(const RemoteBuffer& buffer, Tensor dst, const DebugContext& debugContext = {});
  // Row i of `src` goes to repeat offset[i] of the buffer, and back.
  Copy(Tensor src, const RemoteBuffer& buffer, Tensor offset, const DebugContext& debugContext = {});
  Copy(const RemoteBuffer& buffer, Tensor dst, Tensor offset, const DebugContext& debugContext = {});
};

// Elements of one tensor into another one of another replica; no replica receives twice.
class CrossReplicaCopy : public Program {
 public:
  CrossReplicaCopy(Tensor src, Tensor dst, std::map<unsigned, unsigned> replicaMap,
                   const DebugContext& debugContext = {});
};

class Repeat : public Program {
 public:
  Repeat(unsigned count, const Program& body, const DebugContext& debugContext = {});
};

// cond; while predicate is ...: body; cond.
class RepeatWhileFalse : public Program {
 public:
  RepeatWhileFalse(const Program& cond, Tensor predicate, const Program& body, const DebugContext& debugContext = {});
};
class RepeatWhileTrue : public Program {
 public:
  RepeatWhileTrue(const Program& cond, Tensor predicate, const Program& body, const DebugContext& debugContext = {});
};

class If : public Program {
 public:
  If(Tensor predicate, const Program& trueBody, const Program& falseBody, const DebugContext& debugContext = {});
};

class Switch : public Program {
 public:
  using Case = std::pair<std::int32_t, Program>;

  explicit Switch(Tensor control, const DebugContext& debugContext = {});
  Switch(Tensor control, const std::vector<Case>& cases, const DebugContext& debugContext = {});
  Switch(Tensor control, const std::vector<Case>& cases, const Program& defaultCaseBody,
         const DebugContext& debugContext = {});
  // Another value than those of the cases is an error.
  static Switch switchWithBoundsChecking(Tensor control, const std::vector<Case>& cases,
                                         const DebugContext& debugContext = {});
  static Switch switchWithUnreachableDefault(Tensor control, const DebugContext& debugContext = {});

  Switch& add(std::int32_t value, const Program& body);
};

class Call : public Program {
 public:
  explicit Call(Function function, const DebugContext& debugContext = {});
  Call(HostFunction function, ArrayRef<Tensor> inputs, ArrayRef<Tensor> outputs, const DebugContext& debugContext = {});
};

class Sync : public Program {
 public:
  explicit Sync(SyncType type, const DebugContext& debugContext = {});
};

// Prints to the engine's print stream, standard error unless setPrintStream says otherwise.
class PrintTensor : public Program {
 public:
  explicit PrintTensor(Tensor tensor, const DebugContext& debugContext = {});
  PrintTensor(StringRef title, Tensor tensor, const DebugContext& debugContext = {});
  PrintTensor(Tensor tensor, const PrintTensorFmt& fmt, const DebugContext& debugContext = {});
  PrintTensor(StringRef title, Tensor tensor, const PrintTensorFmt& fmt, const DebugContext& debugContext = {});
};

// From here on the elements' values are considered dead; the model leaves them unchanged.
class WriteUndef : public Program {
 public:
  explicit WriteUndef(Tensor tensor, const DebugContext& debugContext = {});
};

// Ends the run with an application_runtime_error.
class ErrorProgram : public Program {
 public:
  ErrorProgram(StringRef message, Tensor debugTensor, const DebugContext& debugContext = {});
};
class Abort : public Program {
 public:
  explicit Abort(StringRef message = "Abort", const DebugContext& debugContext = {});
};
class AbortOnCondition : public Program {
 public:
  explicit AbortOnCondition(Tensor predicate, StringRef message = "AbortOnCondition",
                            const DebugContext& debugContext = {});
};

}  // namespace program
}  // namespace poplar
