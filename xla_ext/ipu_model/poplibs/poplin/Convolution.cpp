#include <poplin/Convolution.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Pad.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

namespace poplin {
namespace {

using poplar::Tensor;
using FieldShape = std::vector<std::size_t>;

constexpr unsigned kFirstFieldDim = 2;  // of an input, behind batch and channels; of a group's weights likewise

std::size_t transformedSize(std::size_t size, const InputTransform& transform, unsigned dim) {
  const std::size_t taken = transform.truncationLower[dim] + transform.truncationUpper[dim];
  const std::size_t left = taken < size ? size - taken : 0;
  const std::size_t dilated = left == 0 ? 0 : (left - 1) * transform.dilation[dim] + 1;
  return dilated + transform.paddingLower[dim] + transform.paddingUpper[dim];
}

Tensor dilated(poplar::Graph& graph, const Tensor& t, unsigned dilation, unsigned dim) {
  if (dilation == 1 || t.dim(dim) < 2) return t;
  const std::size_t size = t.dim(dim);
  const Tensor each = t.expand({dim + 1});
  const Tensor apart = popops::pad(graph, each, 0, static_cast<std::ptrdiff_t>(dilation) - 1, dim + 1);
  return apart.flatten(dim, dim + 2).slice(0, (size - 1) * dilation + 1, dim);
}

Tensor transformed(poplar::Graph& graph, Tensor t, const InputTransform& transform) {
  for (unsigned field = 0; field < transform.dilation.size(); ++field) {
    const unsigned dim = kFirstFieldDim + field;
    t = t.slice(transform.truncationLower[field], t.dim(dim) - transform.truncationUpper[field], dim);
    t = dilated(graph, t, transform.dilation[field], dim);
    t = popops::pad(graph, t, transform.paddingLower[field], transform.paddingUpper[field], dim);
    if (transform.flip[field]) t = t.reverse(dim);
  }
  return t;
}

// The elements that one place of the kernel is multiplied by, for every element of the output before its padding.
Tensor patchesAt(const Tensor& in, const FieldShape& place, const ConvParams& params) {
  Tensor t = in;
  const OutputTransform& of = params.outputTransform;
  for (unsigned field = 0; field < place.size(); ++field) {
    const unsigned dim = kFirstFieldDim + field;
    const std::size_t end = place[field] + params.getUntransformedOutputSize(field) - of.truncationUpper[field];
    t = t.slice(place[field] + of.truncationLower[field], end, dim).subSample(of.stride[field], dim);
  }
  return t;
}

// Calls visit(place) for each index of a kernel of this shape, the last dimension fastest.
template <typename Visit>
void forEachPlace(const FieldShape& kernel, Visit&& visit) {
  std::size_t places = 1;
  for (const std::size_t size : kernel) places *= size;
  for (std::size_t number = 0; number < places; ++number) {
    FieldShape place(kernel.size());
    std::size_t rest = number;
    for (std::size_t field = kernel.size(); field-- > 0; rest /= kernel[field]) place[field] = rest % kernel[field];
    visit(place);
  }
}

// Of one group: in {batch, channels, field...} with weights {output channels, channels, kernel...}.
Tensor convolveGroup(poplar::Graph& graph, const Tensor& in, const Tensor& weights, const ConvParams& params,
                     poplar::program::Sequence& prog, const poplar::DebugContext& debug,
                     const poplar::OptionFlags& options, PlanningCache* cache) {
  const Tensor input = transformed(graph, in, params.inputTransform);
  const Tensor kernel = transformed(graph, weights, params.kernelTransform);
  const FieldShape kernel_shape(kernel.shape().begin() + kFirstFieldDim, kernel.shape().end());
  std::vector<Tensor> rows;
  Tensor one;
  forEachPlace(kernel_shape, [&](const FieldShape& place) {
    one = patchesAt(input, place, params).dimRoll(1, 0);  // {channels, batch, field...}
    rows.push_back(one.flatten(1, one.rank()));
  });
  const Tensor by_place = kernel.flatten(kFirstFieldDim, kernel.rank()).dimRoll(1, 2).flatten(1, 3);
  const Tensor product = matMul(graph, by_place, poplar::concat(rows), prog, params.outputType, debug, options, cache);
  FieldShape shape = one.shape();
  shape[0] = weights.dim(0);
  return product.reshape(shape).dimRoll(1, 0);
}

void check(const Tensor& in, const Tensor& weights, const ConvParams& params) {
  const std::size_t fields = params.getNumFieldDims();
  bool fits = in.rank() == fields + 2 && weights.rank() == fields + 3 && in.dim(0) == params.batchSize &&
              in.dim(1) == params.getNumInputChans() && weights.dim(0) == params.numConvGroups &&
              weights.dim(1) == params.outputChannelsPerConvGroup && weights.dim(2) == params.inputChannelsPerConvGroup;
  for (unsigned field = 0; fits && field < fields; ++field) {
    fits = in.dim(kFirstFieldDim + field) == params.inputFieldShape[field] &&
           weights.dim(3 + field) == params.kernelShape[field] && params.getOutputSize(field) > 0;
  }
  if (fits) return;
  throw poputil::poplibs_error("poplin::convolution: `in, weights` must have the shapes of params, got " +
                               in.shapeToString() + " and " + weights.shapeToString() +
                               ". createInput and createWeights make them.");
}

Tensor addSpread(poplar::Graph& graph, const poplar::Type& type, const FieldShape& shape,
                 const poplar::DebugContext& debug) {
  const Tensor t = graph.addVariable(type, shape, debug);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

}  // namespace

std::size_t ConvParams::getTransformedInputSize(unsigned dim) const {
  return transformedSize(inputFieldShape[dim], inputTransform, dim);
}

std::size_t ConvParams::getTransformedKernelSize(unsigned dim) const {
  return transformedSize(kernelShape[dim], kernelTransform, dim);
}

std::size_t ConvParams::getUntransformedOutputSize(unsigned dim) const {
  const std::size_t input = getTransformedInputSize(dim), kernel = getTransformedKernelSize(dim);
  return kernel == 0 || kernel > input ? 0 : input - kernel + 1;
}

std::size_t ConvParams::getOutputSize(unsigned dim) const {
  const OutputTransform& of = outputTransform;
  const std::size_t all = getUntransformedOutputSize(dim), taken = of.truncationLower[dim] + of.truncationUpper[dim];
  if (taken >= all) return 0;
  return (all - taken + of.stride[dim] - 1) / of.stride[dim] + of.paddingLower[dim] + of.paddingUpper[dim];
}

std::vector<std::size_t> ConvParams::getOutputFieldShape() const {
  std::vector<std::size_t> shape;
  for (unsigned dim = 0; dim < inputFieldShape.size(); ++dim) shape.push_back(getOutputSize(dim));
  return shape;
}

Tensor createInput(poplar::Graph& graph, const ConvParams& params, const poplar::DebugContext& debug,
                   const poplar::OptionFlags&, PlanningCache*) {
  FieldShape shape = {params.batchSize, params.getNumInputChans()};
  shape.insert(shape.end(), params.inputFieldShape.begin(), params.inputFieldShape.end());
  return addSpread(graph, params.inputType, shape, debug);
}

Tensor createWeights(poplar::Graph& graph, const ConvParams& params, const poplar::DebugContext& debug,
                     const poplar::OptionFlags&, PlanningCache*) {
  FieldShape shape = {params.numConvGroups, params.outputChannelsPerConvGroup, params.inputChannelsPerConvGroup};
  shape.insert(shape.end(), params.kernelShape.begin(), params.kernelShape.end());
  return addSpread(graph, params.inputType, shape, debug);
}

Tensor createBiases(poplar::Graph& graph, const Tensor& activations, const poplar::DebugContext& debug,
                    const poplar::OptionFlags&) {
  return addSpread(graph, activations.elementType(), {activations.dim(1)}, debug);
}

Tensor convolution(poplar::Graph& graph, const Tensor& in, const Tensor& weights, const ConvParams& params,
                   bool transposeAndFlipWeights, poplar::program::Sequence& prog, const poplar::DebugContext& debug,
                   const poplar::OptionFlags& options, PlanningCache* cache) {
  Tensor kernel = weights;
  if (transposeAndFlipWeights) {
    kernel = weights.dimRoll(2, 1);
    for (unsigned dim = 3; dim < kernel.rank(); ++dim) kernel = kernel.reverse(dim);
  }
  check(in, kernel, params);
  const std::size_t channels = params.inputChannelsPerConvGroup;
  std::vector<Tensor> groups;
  for (std::size_t group = 0; group < params.numConvGroups; ++group) {
    const Tensor part = in.slice(group * channels, (group + 1) * channels, 1);
    groups.push_back(convolveGroup(graph, part, kernel[group], params, prog, debug, options, cache));
  }
  Tensor out = poplar::concat(groups, 1);
  for (unsigned field = 0; field < params.getNumFieldDims(); ++field) {
    const OutputTransform& of = params.outputTransform;
    out = popops::pad(graph, out, of.paddingLower[field], of.paddingUpper[field], kFirstFieldDim + field);
  }
  return out;
}

void addBias(poplar::Graph& graph, const Tensor& in, const Tensor& biases, poplar::program::Sequence& prog,
             const poplar::DebugContext& debug, const poplar::OptionFlags&) {
  FieldShape shape(in.rank(), 1);
  shape[1] = biases.numElements();
  popops::addInPlace(graph, in, biases.reshape(shape), prog, debug);
}

}  // namespace poplin
