// What the targets of all products of spikes with weights share. Each product has a file with its own kernels.
#pragma once

#include "cpu/lists/spike_operands.hpp"

namespace snnjax {

// One group of a call.
template <typename Call>
struct ProductGroup {
  const Call& call;
  const schema::Lengths& lengths;
  Index group;

  Index operator[](schema::Axis axis) const { return lengths[axis]; }
  auto numbers(const auto& array) const { return array.numbers(group); }

  Index rows() const { return lengths[schema::Axis::kRows]; }
  Index neurons() const { return lengths[schema::Axis::kNeurons]; }
  Index outputs() const { return lengths[schema::Axis::kOutputs]; }

  ListedRows spikes() const { return spikesOf(call.from, rows(), lengths, group, call.threads); }
  ListedRows slots() const { return slotsOf(call.from, rows(), lengths, group, call.threads); }
};

template <typename Call>
void forEachGroup(Call& call, auto body) {
  const schema::Lengths lengths = call.check();
  for (Index group = 0; group < call.groups(); ++group) body(ProductGroup<Call>{call, lengths, group});
}

}  // namespace snnjax

// The handlers of a product, whose namespace has a body for each target.
#define SNNJAX_PRODUCT(op)                                                       \
  SNNJAX_TARGET(snnjax_##op, #op, snnjax::op::forward);                          \
  SNNJAX_TARGET(snnjax_##op##_spikes_backward, #op, snnjax::op::spikesBackward); \
  SNNJAX_TARGET(snnjax_##op##_weights_backward, #op, snnjax::op::weightsBackward)
