// The table of kernels of one instruction set. The build compiles this file once for each, with SNNJAX_ISA set to its
// name and with the compiler's flags for it.
#include "kernels.hpp"

#include "kernels/byte_products.hpp"
#include "kernels/lists.hpp"
#include "kernels/neuron.hpp"
#include "kernels/patches.hpp"
#include "kernels/products.hpp"
#include "kernels/rounded_products.hpp"

#define SNNJAX_TEXT_OF(name) #name
#define SNNJAX_TEXT(name) SNNJAX_TEXT_OF(name)

namespace snnjax::SNNJAX_ISA {

extern const Kernels kKernels;
const Kernels kKernels{
    .name = SNNJAX_TEXT(SNNJAX_ISA),
    .lanes = kLanes,
    .tile_rows = kTileRows,
    .listNonZero = listNonZero,
    .listNonZeroBytes = listNonZeroBytes,
    .listBits = listBits,
    .expandBits = expandBits,
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
    .roundRows = roundRows,
    .roundPanels = roundPanels,
    .multiplyRounded = multiplyRounded,
    .addProducts = addProducts,
    .addPatches = addPatches,
    .addPatchGradients = addPatchGradients,
    .dotPatches = dotPatches,
    .stepForward = stepForward,
    .stepSecondState = stepSecondState,
    .stepBackward = stepBackward,
    .derivative = derivative,
};

}  // namespace snnjax::SNNJAX_ISA
