// The shapes of a convolution, and the transforms of its operands and result.
#pragma once

#include <cstddef>
#include <poplar/Type.hpp>
#include <utility>
#include <vector>

namespace poplin {

// In this order, along each dimension of the field: elements are taken away, `dilation` - 1 zeros put between those
// that are left, zeros put around them, and the whole is reversed.
struct InputTransform {
  std::vector<unsigned> truncationLower, truncationUpper, dilation, paddingLower, paddingUpper;
  std::vector<bool> flip;

  InputTransform() = default;
  explicit InputTransform(std::size_t dims)
      : truncationLower(dims, 0),
        truncationUpper(dims, 0),
        dilation(dims, 1),
        paddingLower(dims, 0),
        paddingUpper(dims, 0),
        flip(dims, false) {}
  InputTransform(std::vector<unsigned> truncation_lower, std::vector<unsigned> truncation_upper,
                 std::vector<unsigned> dilation_by, std::vector<unsigned> padding_lower,
                 std::vector<unsigned> padding_upper, std::vector<bool> flipped)
      : truncationLower(std::move(truncation_lower)),
        truncationUpper(std::move(truncation_upper)),
        dilation(std::move(dilation_by)),
        paddingLower(std::move(padding_lower)),
        paddingUpper(std::move(padding_upper)),
        flip(std::move(flipped)) {}
};

// Elements are taken away, every `stride`-th of the rest is kept, and zeros are put around.
struct OutputTransform {
  std::vector<unsigned> truncationLower, truncationUpper, stride, paddingLower, paddingUpper;

  OutputTransform() = default;
  explicit OutputTransform(std::size_t dims)
      : truncationLower(dims, 0),
        truncationUpper(dims, 0),
        stride(dims, 1),
        paddingLower(dims, 0),
        paddingUpper(dims, 0) {}
  OutputTransform(std::vector<unsigned> truncation_lower, std::vector<unsigned> truncation_upper,
                  std::vector<unsigned> stride_of, std::vector<unsigned> padding_lower,
                  std::vector<unsigned> padding_upper)
      : truncationLower(std::move(truncation_lower)),
        truncationUpper(std::move(truncation_upper)),
        stride(std::move(stride_of)),
        paddingLower(std::move(padding_lower)),
        paddingUpper(std::move(padding_upper)) {}
};

// Channels are those of one group.
struct ConvParams {
  poplar::Type inputType, outputType;
  std::size_t batchSize = 0;
  std::vector<std::size_t> inputFieldShape, kernelShape;
  std::size_t inputChannelsPerConvGroup = 0, outputChannelsPerConvGroup = 0, numConvGroups = 0;
  InputTransform inputTransform, kernelTransform;
  OutputTransform outputTransform;

  ConvParams() = default;
  ConvParams(poplar::Type data_type, std::size_t batch_size, std::vector<std::size_t> input_field,
             std::vector<std::size_t> kernel, std::size_t input_channels, std::size_t output_channels,
             std::size_t groups)
      : ConvParams(data_type, data_type, batch_size, std::move(input_field), std::move(kernel), input_channels,
                   output_channels, groups) {}
  ConvParams(poplar::Type input_type, poplar::Type output_type, std::size_t batch_size,
             const std::vector<std::size_t>& input_field, std::vector<std::size_t> kernel, std::size_t input_channels,
             std::size_t output_channels, std::size_t groups)
      : ConvParams(input_type, output_type, batch_size, input_field, std::move(kernel), input_channels, output_channels,
                   groups, InputTransform(input_field.size()), InputTransform(input_field.size()),
                   OutputTransform(input_field.size())) {}
  ConvParams(poplar::Type input_type, poplar::Type output_type, std::size_t batch_size,
             std::vector<std::size_t> input_field, std::vector<std::size_t> kernel, std::size_t input_channels,
             std::size_t output_channels, std::size_t groups, InputTransform of_input, InputTransform of_kernel,
             OutputTransform of_output)
      : inputType(input_type),
        outputType(output_type),
        batchSize(batch_size),
        inputFieldShape(std::move(input_field)),
        kernelShape(std::move(kernel)),
        inputChannelsPerConvGroup(input_channels),
        outputChannelsPerConvGroup(output_channels),
        numConvGroups(groups),
        inputTransform(std::move(of_input)),
        kernelTransform(std::move(of_kernel)),
        outputTransform(std::move(of_output)) {}

  std::size_t getNumFieldDims() const { return inputFieldShape.size(); }
  std::size_t getNumConvGroups() const { return numConvGroups; }
  std::size_t getNumInputChans() const { return inputChannelsPerConvGroup * numConvGroups; }
  std::size_t getNumOutputChans() const { return outputChannelsPerConvGroup * numConvGroups; }
  // Sizes after the transforms; of the output also before its own.
  std::size_t getTransformedInputSize(unsigned dim) const;
  std::size_t getTransformedKernelSize(unsigned dim) const;
  std::size_t getUntransformedOutputSize(unsigned dim) const;
  std::size_t getOutputSize(unsigned dim) const;
  std::vector<std::size_t> getOutputFieldShape() const;
};

}  // namespace poplin
