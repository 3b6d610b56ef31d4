// The targets of `spike_conv`: the convolution of spikes.
#include "convolution_products.hpp"
#include "product.hpp"

namespace snnjax::spike_conv {
namespace {

using schema::Axis;

// The geometry, which is checked before anything is read or written.
struct Convolution : NoLayers, ConvolutionShape {
  explicit Convolution(const Attributes& attributes) : ConvolutionShape(of(Geometry::read(attributes))) {
    if (!isValid()) throw misfit(attributes.op(), "geometry", "be that of a convolution", "another one");
  }

  void fix(schema::Lengths& lengths) const {
    lengths.fix(Axis::kNeurons, numInputs());
    lengths.fix(Axis::kOutputs, numOutputs());
    lengths.fix(Axis::kKernelHeight, kernel_height);
    lengths.fix(Axis::kKernelWidth, kernel_width);
    lengths.fix(Axis::kGroupInputs, groupInputs());
    lengths.fix(Axis::kChannelsOut, channels_out);
  }
};

template <typename From, typename To>
using ConvCall = Call<From, To, Convolution>;

// The rows of spikes where they lie.
Rows<const float> inPlace(const auto& from, const auto& of) {
  return from.ids ? Rows<const float>{nullptr, 0} : rowsOf(from.spikes, of.group, of.lengths).inPlace();
}

void forward(ConvCall<Operands<Operand>, Results<Result>>& call) {
  forEachGroup(call, [&](const auto& of) {
    convolve(of.spikes(), inPlace(call.from, of), call.numbers, of.numbers(call.from.weights), of.numbers(call.to.out),
             call.threads);
  });
}

void spikesBackward(ConvCall<SpikesBackwardOperands<Operand>, SpikesBackwardResults<Result>>& call) {
  const auto& from = call.from;
  const auto& to = call.to;
  needSameForm("spike_conv", from, to);
  forEachGroup(call, [&](const auto& of) {
    const Numbers weights = of.numbers(from.weights), g = of.numbers(from.g);
    if (from.ids) {
      convolveToSlots(of.slots(), of[Axis::kCapacity], call.numbers, weights, g, of.numbers(to.g_values), call.threads);
    } else {
      convolveToInputs(of.rows(), call.numbers, weights, g, of.numbers(to.g_spikes), call.threads);
    }
  });
}

void weightsBackward(ConvCall<WeightsBackwardOperands<Operand>, WeightsBackwardResults<Result>>& call) {
  forEachGroup(call, [&](const auto& of) {
    convolveToWeights(of.spikes(), inPlace(call.from, of), call.numbers, of.numbers(call.from.g),
                      of.numbers(call.to.g_weights), call.threads);
  });
}

}  // namespace
}  // namespace snnjax::spike_conv

SNNJAX_PRODUCT(spike_conv);
