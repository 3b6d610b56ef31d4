// The table of kernels of one instruction set. The build compiles this file once for each, with SNNJAX_ISA set to its
// name and with the compiler's flags for it.
#include "kernels.hpp"

#include "kernels/byte_products.hpp"
#include "kernels/integer_neurons.hpp"
#include "kernels/lists.hpp"
#include "kernels/neuron.hpp"
#include "kernels/neuron_steps.hpp"
#include "kernels/padded_patches.hpp"
#include "kernels/patches.hpp"
#include "kernels/products.hpp"
#include "kernels/split_products.hpp"
#include "kernels/stream.hpp"
#include "kernels/surrogate.hpp"
#include "kernels/synaptic_neurons.hpp"
#include "kernels/taps.hpp"
#include "kernels/tile_products.hpp"
#include "kernels/transpose.hpp"
#include "kernels/winograd.hpp"

#define SNNJAX_TEXT_OF(name) #name
#define SNNJAX_TEXT(name) SNNJAX_TEXT_OF(name)

namespace snnjax::SNNJAX_ISA {

extern const Kernels kKernels;
constexpr Kernels kKernels{
    .name = SNNJAX_TEXT(SNNJAX_ISA),
    .lanes = kLanes,
    .tile_rows = kTileRows,
    .listNonZero = listNonZero<float>,
    .listNonZeroBfloat16 = listNonZero<std::uint16_t>,
    .listNonZeroBytes = listNonZeroBytes,
    .listBits = listBits,
    .markOnes = markOnes,
    .markIds = markIds,
    .expandBits = expandBits,
    .countMarks = countMarks,
    .compressMarked = compressMarked,
    .expandMarked = expandMarked,
    .expandList = expandList,
    .addList = addList,
    .streamRows = streamRows,
    .affine = affine,
    .listEntries = listEntries,
    .mark = mark,
    .markSlopes = markSlopes,
    .sumRows = sumRows<float>,
    .sumRowsBfloat16 = sumRows<std::uint16_t>,
    .sumRowsInt8 = sumRowsInt8,
    .addRows = addRows,
    .dotRows = dotRows,
    .multiplyRows = multiplyRows,
    .multiplyPanels = multiplyPanels,
    .roundingPays = roundingPays,
    .parts_of_float = 0,
    .splitLength = splitLength,
    .splitRows = splitRows,
    .splitPanels = splitPanels,
    .multiplySplit = multiplySplit,
    .addProducts = addProducts,
    .addPatches = addPatches,
    .addPatchGradients = addPatchGradients,
    .dotPatches = dotPatches,
    .addPaddedGradients = addPaddedGradients,
    .padRow = padRow,
    .readVectors = readVectors,
    .writeVectors = writeVectors,
    .finishStream = finishStream,
    .spreadShares = spreadShares,
    .addTaps = addTaps,
    .sumTaps = sumTaps,
    .pickTaps = pickTaps,
    .dotTaps = dotTaps,
    .splitShares = splitShares,
    .collectShares = collectShares,
    .collectSteps = collectSteps,
    .spreadBlock = spreadBlock,
    .collectBlock = collectBlock,
    .transpose = transpose,
    .stepForward = stepForward,
    .stepAgain = stepAgain,
    .stepBackward = stepBackward,
    .stepsForward = stepsForward,
    .stepsBackward = stepsBackward,
    .stepSynaptic = stepSynaptic,
    .addPoisson = addPoisson,
    .addNoise = addNoise,
    .addIntegers = addIntegers,
    .addWhole = addWhole,
    .stepIntegers = stepIntegers,
    .derivative = derivative,
};

#if defined(__AVX512F__)

// With the matrix unit.
constexpr Kernels withTiles(Kernels all) {
  all.name = "amx";
  all.roundingPays = [] { return true; };
  all.parts_of_float = 3;
  all.splitLength = pairedLength;
  all.splitRows = pairRows;
  all.splitPanels = pairPanels;
  all.multiplySplit = multiplyOnTiles;
  return all;
}

extern const Kernels kTileKernels;
const Kernels kTileKernels = withTiles(kKernels);

#endif

}  // namespace snnjax::SNNJAX_ISA
