// poplin::convolution against the sum that defines it, over strides, paddings, dilations, groups and reversals.
#include <poplin/Convolution.hpp>
#include <poputil/exceptions.hpp>

#include "poplibs_program.hpp"

using namespace poplibs_test;
using poplin::ConvParams;

namespace {

// The element of a transformed operand of one dimension, as an index of the operand; -1 where it is a zero.
long sourceOf(long place, std::size_t size, const poplin::InputTransform& t, unsigned dim, std::size_t transformed) {
  if (t.flip[dim]) place = static_cast<long>(transformed) - 1 - place;
  place -= t.paddingLower[dim];
  const long last = static_cast<long>(size) - t.truncationUpper[dim];
  if (place < 0 || place % t.dilation[dim] != 0) return -1;
  place = place / t.dilation[dim] + t.truncationLower[dim];
  return place < last ? place : -1;
}

// Two field dimensions, {h, w}.
double expected(const ConvParams& p, const std::vector<float>& in, const std::vector<float>& weights, std::size_t b,
                std::size_t g, std::size_t o, std::size_t y, std::size_t x) {
  const std::size_t ci = p.inputChannelsPerConvGroup, co = p.outputChannelsPerConvGroup;
  const auto at = [&](std::size_t out, unsigned d) {
    return static_cast<long>((out - p.outputTransform.paddingLower[d]) * p.outputTransform.stride[d] +
                             p.outputTransform.truncationLower[d]);
  };
  double sum = 0;
  for (std::size_t ky = 0; ky < p.getTransformedKernelSize(0); ++ky) {
    for (std::size_t kx = 0; kx < p.getTransformedKernelSize(1); ++kx) {
      const long place[] = {static_cast<long>(ky), static_cast<long>(kx)}, out[] = {at(y, 0), at(x, 1)};
      long i[2], k[2];
      for (unsigned d = 0; d < 2; ++d) {
        i[d] = sourceOf(out[d] + place[d], p.inputFieldShape[d], p.inputTransform, d, p.getTransformedInputSize(d));
        k[d] = sourceOf(place[d], p.kernelShape[d], p.kernelTransform, d, p.getTransformedKernelSize(d));
      }
      if (i[0] < 0 || i[1] < 0 || k[0] < 0 || k[1] < 0) continue;
      for (std::size_t c = 0; c < ci; ++c) {
        const std::size_t from =
            ((b * p.numConvGroups * ci + g * ci + c) * p.inputFieldShape[0] + static_cast<std::size_t>(i[0])) *
                p.inputFieldShape[1] +
            static_cast<std::size_t>(i[1]);
        const std::size_t weight =
            (((g * co + o) * ci + c) * p.kernelShape[0] + static_cast<std::size_t>(k[0])) * p.kernelShape[1] +
            static_cast<std::size_t>(k[1]);
        sum += static_cast<double>(in[from]) * static_cast<double>(weights[weight]);
      }
    }
  }
  return sum;
}

void matchesTheSum(const ConvParams& p) {
  Run run(12);
  const Tensor x = poplin::createInput(run.graph, p, "x"), w = poplin::createWeights(run.graph, p, "w");
  const std::vector<float> in = randomFloats(x.numElements(), 1), weights = randomFloats(w.numElements(), 2);
  run.graph.setInitialValue(x.flatten(), poplar::ArrayRef<float>(in));
  run.graph.setInitialValue(w.flatten(), poplar::ArrayRef<float>(weights));
  const Tensor out = poplin::convolution(run.graph, x, w, p, false, run.prog, "conv");
  CHECK(out.shape() == Shape({p.batchSize, p.getNumOutputChans(), p.getOutputSize(0), p.getOutputSize(1)}));
  const auto name = run.output(out);
  run.run();
  const auto got = run.read<float>(name, out.numElements());
  std::size_t next = 0;
  for (std::size_t b = 0; b < p.batchSize; ++b) {
    for (std::size_t o = 0; o < p.getNumOutputChans(); ++o) {
      for (std::size_t y = 0; y < p.getOutputSize(0); ++y) {
        for (std::size_t column = 0; column < p.getOutputSize(1); ++column) {
          const std::size_t co = p.outputChannelsPerConvGroup;
          const double sum = expected(p, in, weights, b, o / co, o % co, y, column);
          CHECK_NEAR(static_cast<double>(got[next]), sum, 1e-4);
          ++next;
        }
      }
    }
  }
}

// With all that may be done to operands and output at once.
void everyTransform() {
  ConvParams p(poplar::FLOAT, 2, {7, 6}, {2, 3}, 2, 3, 2);
  matchesTheSum(p);
  p.inputTransform = {{1, 0}, {0, 1}, {2, 1}, {1, 2}, {0, 1}, {false, true}};
  p.kernelTransform = {{0, 1}, {0, 0}, {2, 1}, {0, 0}, {0, 1}, {true, false}};
  p.outputTransform.truncationLower = {1, 0};
  p.outputTransform.truncationUpper = {0, 1};
  p.outputTransform.stride = {2, 3};
  matchesTheSum(p);
}

// Weights with their channels swapped and the kernel reversed give what the swapped and reversed weights give; biases
// are added to each channel; an output that is padded has zeros there.
void weightsTurnedBiasesAndPadding() {
  ConvParams p(poplar::FLOAT, 1, {4, 4}, {2, 2}, 1, 2, 1), transposed(poplar::FLOAT, 1, {4, 4}, {2, 2}, 2, 1, 1);
  p.outputTransform.paddingLower = {1, 0};
  Run run(4);
  const Tensor x = run.input({1, 1, 4, 4}, std::vector<float>(16, 1.0F));
  const Tensor w = run.input({1, 1, 2, 2, 2}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});  // one output, two inputs
  const Tensor out = poplin::convolution(run.graph, x, w, p, true, run.prog);
  CHECK(out.shape() == Shape({1, 2, 4, 3}));
  const Tensor rows = out.slice(1, 4, 2);
  const Tensor biases = poplin::createBiases(run.graph, out);
  run.graph.setInitialValue(biases, poplar::ArrayRef<float>({100, 200}));
  poplin::addBias(run.graph, rows, biases, run.prog);
  const auto name = run.output(out);
  run.run();
  const auto got = run.read<float>(name, 24);
  CHECK(got[0] == 0 && got[2] == 0 && got[12] == 0);
  CHECK(got[3] == 110 && got[11] == 110 && got[15] == 226);
  CHECK_THROWS(poplin::convolution(run.graph, x, w, transposed, false, run.prog), "`in, weights` must have the shapes");
}

}  // namespace

int main() {
  everyTransform();
  weightsTurnedBiasesAndPadding();
  return check::failures;
}
