// Shared by the checks of own ops when a plan is read: arrays, each with a leading axis of one group, and attributes.
#pragma once

#include "executor/plan/operation_check.hpp"
#include "executor/targets/call.hpp"

namespace snnjax::executor::targets {

class TargetCheck {
 public:
  // Any array has one group and fewer than 2^31 elements: codelets count in 32 bits.
  explicit TargetCheck(const OperationCheck& op);

  const OperationCheck& op() const { return op_; }

  // The sizes of an array of so many axes besides that of the group.
  Shape sizes(const ArrayType& type, std::size_t rank) const;
  // Throws unless an array has these sizes, and a type of such numbers: floats are float16 or float32, whatever the
  // weights are, ids are uint16 or int32, counts int32.
  void need(const ArrayType& type, schema::Numbers numbers, const Shape& sizes) const;

  // Throws unless a call of an op without layers has the arrays that its table asks for.
  template <typename From, typename To>
  void need(const Call<From, To>& call) const {
    schema::Lengths lengths;
    needRoot(call.from, lengths);
    needRoot(call.to, lengths);
  }

 private:
  void needRoot(const auto& root, schema::Lengths& lengths) const {
    const auto has = [&](schema::Switch by, std::size_t layer) { return root.has(by, layer); };
    const auto visit = [&](const schema::Leaf& leaf, std::size_t, const Value& value) {
      const ArrayType& type = op_.type(*value);
      Shape shape = sizes(type, leaf.rank);
      for (std::size_t i = 0; i < leaf.rank; ++i) {
        shape[i] = static_cast<std::size_t>(lengths.expected(leaf.axes[i], static_cast<std::int64_t>(shape[i])));
      }
      need(type, leaf.numbers, shape);
    };
    schema::check(root, 1, has, visit, refusal(op_.instruction()));
  }

  const OperationCheck& op_;
};

}  // namespace snnjax::executor::targets
