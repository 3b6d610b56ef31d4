// The lowering of one plan: the tensor of each value, its memory and its lifetime.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "executor/lowering.hpp"
#include "executor/storages.hpp"

namespace snnjax::executor {

// Throws unless the codelets of a graph were built with the tables of own ops that this library was built with. The
// graph is for nothing else: it gets a vertex.
void checkCodelets(poplar::Graph& scratch);

class PlanLowering final : public Lowering {
 public:
  // Both outlive it.
  PlanLowering(poplar::Graph& graph, const Plan& plan);

  // The whole program. Parameters and results keep their tensors from then on; a parameter that is not donated keeps
  // its contents as well.
  poplar::program::Sequence lowerMain();
  const poplar::Tensor& parameter(std::size_t number) const { return parameters_[number].tensor; }
  const poplar::Tensor& result(std::size_t number) const { return results_[number]; }

  struct Callback {
    std::string handle;
    std::int64_t number;
    std::vector<ArrayType> types;
    std::vector<ArrayType> results;
  };
  const std::vector<Callback>& callbacks() const { return callbacks_; }

  // Memory of values at each instruction, in the order of the program; blocks of loops once.
  struct LiveMemory {
    std::string name;
    Storages::Live live;
  };
  const std::vector<LiveMemory>& liveMemory() const { return live_memory_; }

  // ---- Lowering ----
  poplar::Graph& graph() override { return graph_; }
  const Plan& plan() const override { return plan_; }
  poplar::program::Sequence& program() override { return frames_.back().program; }
  poplar::DebugContext debug(std::string_view part) const override;
  const Layouts& layouts() const override { return layouts_; }
  poplar::Tensor get(ValueId value) override;
  poplar::Tensor memory(ValueId value) override;
  const Constant* splatOf(ValueId value) const override;
  poplar::Tensor make(ValueId value) override;
  poplar::Tensor makeTemporary(const poplar::Type& type, const std::vector<std::size_t>& shape) override;
  poplar::Tensor makeScratch(const poplar::Type& type, const std::vector<std::size_t>& counts) override;
  void bind(ValueId output, const poplar::Tensor& tensor, const std::vector<ValueId>& views_of) override;
  bool takeOver(ValueId output, ValueId input) override;
  bool wants(ValueId output, ValueId input) const override;
  bool isRead(ValueId output) const override { return !diesNow(output); }
  void copy(ValueId from, const poplar::Tensor& to) override;
  void rename(ValueId output, ValueId input, const poplar::Tensor& tensor) override;
  poplar::Tensor memoryIn(const Blocks& blocks, ValueId value) override;
  void attach(ValueId output, std::shared_ptr<const Record> record) override;
  const Record* recordOf(ValueId value) const override { return values_[value].record.get(); }
  void addCodelet(const std::string& name, const std::string& source, const std::string& flags) override;
  poplar::program::Sequence lower(const Block& block, const std::function<void()>& then) override;
  void carry(const std::vector<ValueId>& outputs, const Block& block, bool may_write) override;
  void endCarry(const std::vector<ValueId>& outputs) override;
  void moveAll(const std::vector<ValueId>& from, const std::vector<ValueId>& to) override;
  poplar::HostFunction hostFunction(std::int64_t number, const std::vector<ValueId>& arrays,
                                    const std::vector<ValueId>& results) override;

 private:
  struct Value {
    poplar::Tensor tensor;
    poplar::Tensor memory;               // in memory order, once requested
    std::vector<StorageId> storages;     // whose memory it is, in part or as a whole
    const Constant* splat = nullptr;     // see splatOf
    const Constant* constant = nullptr;  // not made yet
    std::shared_ptr<const Record> record;
    bool whole = false;  // its storage's memory is its memory order
    bool read_only = false;
    bool live = false;
  };
  struct Place {
    poplar::Tensor tensor;
    StorageId storage = 0;
  };
  // A block that is being lowered.
  struct Frame {
    const Block& block;
    std::unordered_map<ValueId, std::size_t> last_uses;
    std::size_t position = 0;
    std::unordered_set<ValueId> read_inside;  // by the blocks of the present instruction
    poplar::program::Sequence program;
  };

  void lower(const Instruction& instruction);
  void moveAll(const std::vector<ValueId>& from, const std::vector<Place>& to);
  void place(ValueId value, StorageId storage);
  void share(ValueId value, const std::vector<StorageId>& storages);
  void release(ValueId value);
  void releaseUsed();
  void makeConstant(ValueId value);
  void bindParameters();
  void reserveScratch();
  void keepResults();
  bool diesNow(ValueId value) const;
  bool isOnlyOperand(ValueId value) const;
  std::size_t bytesOf(ValueId value) const { return numBytes(type(value).dtype); }

  const Plan& plan_;
  poplar::Graph& graph_;
  Layouts layouts_;
  Storages storages_;
  std::vector<Value> values_;
  std::unordered_map<ValueId, StorageId> wanted_;  // the preferred memory of a block's result
  std::vector<StorageId> temporaries_;             // of the instruction that is being lowered
  std::vector<Frame> frames_;
  const Instruction* instruction_ = nullptr;
  std::vector<Place> parameters_;
  std::vector<poplar::Tensor> results_;
  std::vector<Callback> callbacks_;
  std::vector<LiveMemory> live_memory_;
  std::set<std::string> codelets_;  // that addCodelet() added
};

}  // namespace snnjax::executor
