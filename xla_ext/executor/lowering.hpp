// The interface for the lowering of each operation: values as tensors, and the growing program.
//
// A value is one tensor of its shape. Several partitions are replicas of one graph: each runs the same program on its
// own tiles, and only collectives tell them apart.
#pragma once

#include <functional>
#include <memory>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "builders/error.hpp"

#include "executor/layouts/layouts.hpp"
#include "executor/plan/plan.hpp"

namespace snnjax::executor {

// Refuses an operation: "`op` of f32[3], s32[2]: <what>. <hint>. (model.py:12)"
[[noreturn]] void refuse(const Plan& plan, const Instruction& instruction, const std::string& what,
                         const std::string& hint);

// Data that one op leaves for another.
struct Record {
  virtual ~Record() = default;
};

class Lowering {
 public:
  virtual ~Lowering() = default;

  virtual poplar::Graph& graph() = 0;
  virtual const Plan& plan() const = 0;
  // The sequence for the steps of the block that is being lowered.
  virtual poplar::program::Sequence& program() = 0;
  // The operation's name and the user's line, "dot (model.py:12)" or "dot/part (model.py:12)", for compute sets.
  virtual poplar::DebugContext debug(std::string_view part = {}) const = 0;

  const ArrayType& type(ValueId value) const { return plan().types[value]; }

  // The layouts of each shape.
  virtual const Layouts& layouts() const = 0;

  // ---- Values ----

  // The tensor of an input, in its shape, wherever and in whatever order its elements are stored.
  virtual poplar::Tensor get(ValueId value) = 0;
  // The same, flat and in the memory order of its shape's layout: one interval a tile, if it lies in that layout.
  virtual poplar::Tensor memory(ValueId value) = 0;
  // The constant whose single element the value repeats, possibly through views; or null.
  virtual const Constant* splatOf(ValueId value) const = 0;
  // A tensor for an output, in the layout of its shape. Its memory may be reused and uninitialised: write all of it.
  virtual poplar::Tensor make(ValueId value) = 0;
  // A scratch tensor for this operation, in the layout of its shape; uninitialised.
  virtual poplar::Tensor makeTemporary(const poplar::Type& type, const std::vector<std::size_t>& shape) = 0;
  // Scratch elements for this operation, wherever it wants them: counts[t] on tile t, one tile after the other.
  virtual poplar::Tensor makeScratch(const poplar::Type& type, const std::vector<std::size_t>& counts) = 0;
  // An output that is a view of inputs, or a tensor that the operation made (a variable, a constant).
  virtual void bind(ValueId output, const poplar::Tensor& tensor, const std::vector<ValueId>& views_of = {}) = 0;
  // An output that is its one input with other dimensions of size 1, or as another type: it shares the input's memory.
  virtual void rename(ValueId output, ValueId input, const poplar::Tensor& tensor) = 0;
  // Whether the output may be written over the input: nothing needs the input later, the instruction reads it as one
  // operand and not in its blocks, and no other value shares its memory. If so the output has its tensor from then on,
  // and the input none.
  virtual bool takeOver(ValueId output, ValueId input) = 0;
  // Whether the output is best placed where the input is, because a loop carries both there.
  virtual bool wants(ValueId output, ValueId input) const = 0;
  // Whether anything reads an output of the present instruction. What nobody reads needs no tensor.
  virtual bool isRead(ValueId output) const = 0;
  // Adds the copy of a value into a tensor of its type and shape.
  virtual void copy(ValueId from, const poplar::Tensor& to) = 0;

  // ---- What own ops agree on ----

  // The memory of a value in the blocks that an op proposed, with the spare elements after each tile's part: flat; not
  // valid if the layout differs.
  virtual poplar::Tensor memoryIn(const Blocks& blocks, ValueId value) = 0;
  // Data that an op leaves on the tiles for its backward pass is attached to an output and its views. It does not pass
  // through loops or to other programs.
  virtual void attach(ValueId output, std::shared_ptr<const Record> record) = 0;
  virtual const Record* recordOf(ValueId value) const = 0;

  // Adds a codelet to the graph from its source, compiled with these flags; once, if it is asked for again.
  virtual void addCodelet(const std::string& name, const std::string& source, const std::string& flags) = 0;

  // ---- Blocks ----

  // Lowers a block, whose parameters are bound, into a sequence of its own. At its end `then` may add steps, while the
  // results are still available.
  virtual poplar::program::Sequence lower(const Block& block, const std::function<void()>& then = {}) = 0;
  // Binds a block's parameters, if any, to the memory of an instruction's outputs, until endCarry(). A block that may
  // write there leaves its results there where it can.
  virtual void carry(const std::vector<ValueId>& outputs, const Block& block, bool may_write) = 0;
  virtual void endCarry(const std::vector<ValueId>& outputs) = 0;
  // Copies values into the memory of others, all at once: none is overwritten before it is read.
  virtual void moveAll(const std::vector<ValueId>& from, const std::vector<ValueId>& to) = 0;

  // A function of the host that a program may call, for callbacks of this number with these arrays and
  // results.
  virtual poplar::HostFunction hostFunction(std::int64_t number, const std::vector<ValueId>& arrays,
                                            const std::vector<ValueId>& results) = 0;

  [[noreturn]] void refuse(const Instruction& instruction, const std::string& what, const std::string& hint) const {
    executor::refuse(plan(), instruction, what, hint);
  }
};

// Poplar's type for elements; bfloat16 has none and is stored as unsigned shorts. Throws for 64 bits.
poplar::Type poplarType(Dtype dtype);

// The value of an attribute of a custom_call, whose texts are "name:type=value"; throws where there is none.
std::string attribute(const Instruction& instruction, std::string_view name);

}  // namespace snnjax::executor
