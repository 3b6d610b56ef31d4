// Convolutions in ranges of outputs: each range computes its own part of the whole, and all of them together the whole.
#include "cpu/products/convolution.hpp"

#include <initializer_list>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "cpu/products/transposed_convolution.hpp"

namespace {

using namespace snnjax;
using Floats = std::vector<float>;

Floats floats(Index count, int seed) {
  Floats made;  // whole numbers, whose sums are exact in any order
  for (Index i = 0; i < count; ++i) made.push_back(static_cast<float>((i * 7 + seed) % 11 - 5));
  return made;
}

Index sizeOf(const Floats& all) { return static_cast<Index>(all.size()); }

// Ranges that begin and end within a pixel, within a row of outputs, and at its end; one is empty.
std::vector<Index> cutsOf(const ConvolutionShape& shape) {
  const Index row = shape.outWidth() * shape.channels_out, all = shape.numOutputs();
  return {0, 1, row - 1, row - 1, row, std::min(all, 2 * row + 3), all};
}

void rangesOfPatchesSumToTheWhole(const ConvolutionShape& shape) {
  const PatchWeights layout(shape);
  const Floats weights = floats(shape.numWeights(), 1), g = floats(shape.numOutputs(), 2);
  Floats packed(weights.size());
  layout.pack({weights.data(), false}, packed.data());
  std::vector<std::uint32_t> ids;
  for (Index id = 0; id < shape.numInputs(); id += 2) ids.push_back(static_cast<std::uint32_t>(id));
  const Floats values = floats(static_cast<Index>(ids.size()), 3);
  const SpikeRow spikes{ids.data(), values.data(), static_cast<std::uint32_t>(ids.size()), false};

  struct Results {
    Floats out, d_weights, d_values;
  };
  const auto compute = [&](const std::vector<Index>& cuts) {
    Results sums{Floats(g.size()), Floats(weights.size()), Floats(ids.size())};
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const ConvolutionPatches part(layout, cuts[i], cuts[i + 1] - cuts[i]);
      part.add(spikes, packed.data(), sums.out.data() + cuts[i]);
      part.addGradient(spikes, sums.d_weights.data(), g.data() + cuts[i]);
      Floats own(ids.size());
      part.dot(ids.data(), static_cast<Index>(ids.size()), packed.data(), g.data() + cuts[i], own.data());
      for (std::size_t k = 0; k < own.size(); ++k) sums.d_values[k] += own[k];
    }
    return sums;
  };
  const Results whole = compute({0, shape.numOutputs()}), parts = compute(cutsOf(shape));
  CHECK(parts.out == whole.out);
  CHECK(parts.d_weights == whole.d_weights);
  CHECK(parts.d_values == whole.d_values);
  CHECK(whole.out != Floats(g.size()));
  CHECK(whole.d_weights != Floats(weights.size()));
  CHECK(whole.d_values != Floats(ids.size()));
}

// Those of the dense form are ranges of pixels.
void rangesOfPixelsMakeTheWhole(const ConvolutionShape& shape) {
  const DenseConvolution form(shape);
  const Floats image = floats(shape.numInputs(), 1), weights = floats(shape.numWeights(), 2);
  Floats packed(static_cast<std::size_t>(form.size()));
  form.pack({weights.data(), false}, packed.data());
  DenseConvolution::Scratch scratch;
  Floats whole(static_cast<std::size_t>(shape.numOutputs())), parts(whole.size());
  CHECK(form.multiply(image.data(), packed.data(), 0, shape.numOutputs(), whole.data(), scratch));
  const Index outputs = shape.channels_out, all = shape.numOutputs();
  Index first = 0;
  for (const Index end : {Index{1}, shape.outWidth() - 1, shape.outWidth() + 2, all / outputs}) {
    const Index columns = end * outputs - first;
    CHECK(form.multiply(image.data(), packed.data(), first, columns, parts.data() + first, scratch));
    first += columns;
  }
  CHECK_EQUAL(first, sizeOf(parts));
  CHECK(parts == whole);
}

// The dense form and its gradient are those of patches, and have no numbers of earlier images in them.
void denseFormIsThatOfPatches(const ConvolutionShape& shape) {
  const PatchWeights layout(shape);
  const DenseConvolution form(shape);
  const Floats weights = floats(shape.numWeights(), 1), g = floats(shape.numOutputs(), 2);
  Floats packed(weights.size()), dense_packed(static_cast<std::size_t>(form.size()));
  layout.pack({weights.data(), false}, packed.data());
  form.pack({weights.data(), false}, dense_packed.data());
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(shape.numInputs()));
  std::iota(ids.begin(), ids.end(), 0U);
  const ConvolutionPatches patches(layout, 0, shape.numOutputs());
  DenseConvolution::Scratch scratch;
  for (const int seed : {3, 4}) {
    const Floats image = floats(shape.numInputs(), seed);
    const SpikeRow spikes{ids.data(), image.data(), static_cast<std::uint32_t>(ids.size()), false};
    Floats out(g.size()), want(g.size()), d_packed(weights.size()), d_want(weights.size());
    patches.add(spikes, packed.data(), want.data());
    CHECK(form.multiply(image.data(), dense_packed.data(), 0, shape.numOutputs(), out.data(), scratch));
    CHECK(out == want);
    patches.addGradient(spikes, d_packed.data(), g.data());
    layout.unpack(d_packed.data(), {d_want.data(), false});
    Floats d_dense(dense_packed.size()), d_out(weights.size());
    form.addGradient(image.data(), g.data(), 0, shape.numOutputs(), d_dense.data(), scratch);
    form.addTo(d_dense.data(), d_out.data());
    CHECK(d_out == d_want);
  }
}

// Images whose rows of a column are shorter, as long and longer than what is copied at once, with and without zeros
// around them, and outputs in whole vectors and in parts of them.
void denseFormsOfFewChannels() {
  for (const Index channels : {1, 2, 3, 4, 5, 6}) {
    for (const Index padding : {0, 1, 3}) {
      for (const Index height : {3, 4, 5}) {
        for (const Index width : {3, 5}) {
          for (const Index outputs : {2, 16}) {
            denseFormIsThatOfPatches(
                {height, width, channels, 3, 2, 1, 1, padding, padding, padding, padding, 1, outputs});
          }
        }
      }
    }
  }
}

// The dense form of cotangents is that of patches.
void cotangentsAreThoseOfPatches(const ConvolutionShape& shape) {
  CHECK(TransposedConvolution::takes(shape));
  const Floats weights = floats(shape.numWeights(), 1), g = floats(shape.numOutputs(), 2);
  const PatchWeights layout(shape);
  Floats packed(weights.size()), expected(static_cast<std::size_t>(shape.numInputs())), found(expected.size());
  layout.pack({weights.data(), false}, packed.data());
  std::vector<std::uint32_t> ids(expected.size());
  std::iota(ids.begin(), ids.end(), 0U);
  ConvolutionPatches(layout, 0, shape.numOutputs())
      .dot(ids.data(), shape.numInputs(), packed.data(), g.data(), expected.data());
  TransposedConvolution::Scratch scratch;
  CHECK(TransposedConvolution(shape, {weights.data(), false}).multiply(g.data(), found.data(), scratch));
  CHECK(found == expected);
  CHECK(found != Floats(found.size()));
}

}  // namespace

int main() {
  const ConvolutionShape plain{5, 9, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 8}, wide{6, 17, 3, 5, 4, 1, 1, 2, 2, 2, 1, 1, 16};
  const ConvolutionShape strided{7, 8, 4, 3, 2, 2, 3, 1, 0, 0, 2, 2, 6};
  // Strides with and without a common divisor with the dilation; zeros between the pixels.
  const ConvolutionShape dilated{7, 9, 2, 3, 2, 2, 3, 2, 1, 1, 2, 1, 8, 4, 2, 1, 1};
  const ConvolutionShape transposed{4, 5, 2, 3, 4, 1, 1, 2, 1, 3, 2, 2, 6, 1, 3, 2, 3};
  for (const ConvolutionShape& shape : {plain, wide, strided, dilated, transposed}) {
    CHECK(shape.isValid());
    rangesOfPatchesSumToTheWhole(shape);
  }
  // A kernel smaller than its stride, and zeros around the image that are wider than the kernel.
  const ConvolutionShape gaps{7, 6, 3, 1, 2, 2, 3, 0, 0, 0, 0, 1, 5}, padded{4, 5, 2, 2, 3, 3, 2, 3, 4, 5, 2, 1, 4};
  ConvolutionShape one_group = strided;
  one_group.groups = 1;
  // In blocks of 2 x 2 pixels, the last ones of which lie partly outside.
  const ConvolutionShape blocks{5, 8, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 48}, odd{7, 4, 48, 3, 3, 1, 1, 2, 0, 0, 1, 1, 32};
  for (const ConvolutionShape& shape : {plain, wide, one_group, gaps, padded, blocks, odd}) {
    cotangentsAreThoseOfPatches(shape);
  }
  rangesOfPixelsMakeTheWhole(plain);
  rangesOfPixelsMakeTheWhole(wide);
  denseFormsOfFewChannels();
  return check::failures;
}
