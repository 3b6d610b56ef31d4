// The order in which programs reach their steps, so that a profile can list them in run order.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/executable/plan.hpp"

namespace ipu_model {

// Numbers from 0 on, by when the programs, one after the other, first come to each; a loop's body counts once. What
// only the host reaches has the number after the last.
class ProgramOrder {
 public:
  explicit ProgramOrder(const Plan& plan);

  std::vector<std::uint64_t> compute_sets, copies, host;

 private:
  void walk(BlockId block);
  void visit(const StepCompute& step) { number(compute_sets[step.compute_set]); }
  void visit(const StepCopy& step) { number(copies[step.copy]); }
  void visit(const StepCrossReplica& step) { number(copies[step.copy]); }
  void visit(const StepStream& step) { number(host[step.host]); }
  void visit(const StepRemote& step) { number(host[step.host]); }
  void visit(const StepRepeat& step) { walk(step.body); }
  void visit(const StepWhile& step);
  void visit(const StepSwitch& step);
  void visit(const StepCall& step) { walk(plan_->functions[step.function]); }
  void visit(const StepHostCall& step);
  template <typename Step>
  void visit(const Step&) {}  // takes no step of its own
  void number(std::uint64_t& position);

  const Plan* plan_;
  std::vector<bool> walked_;  // blocks
  std::uint64_t next_ = 0;
};

}  // namespace ipu_model
