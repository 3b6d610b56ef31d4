// Converts between a user's arrays, row-major in snnjax's order (time, batch, neurons; weights [inputs, neurons]), and
// the variables on the tiles. All functions copy on the host; wrong sizes throw Error.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network_plan.hpp"

namespace snnjax::builders {

// [rows, neurons] to [tiles, rows + extra_rows, columns] and back. Spare columns and rows hold 0: a neuron of zeros,
// thresholds included, neither fires nor produces a NaN.
std::vector<float> toTiles(const LayerPlan& layer, std::span<const float> array, std::size_t rows,
                           std::size_t extra_rows = 0);
std::vector<float> fromTiles(const LayerPlan& layer, std::span<const float> blocks, std::size_t rows,
                             std::size_t extra_rows = 0);

// One constant for all neurons, or one per neuron, to [tiles, columns].
std::vector<float> constantsToTiles(const LayerPlan& layer, std::span<const float> values);

// Lists of ids [num_steps, batch, capacity] to the history at their homes. Ids out of range are dropped, the others
// sorted, as the weight gradient needs them.
std::vector<std::uint16_t> listsToHomes(const NetworkPlan& plan, std::size_t list, std::span<const std::int32_t> ids);

// The values of such lists, or those [num_steps, batch, inputs] of dense inputs (then `ids` is empty), to the history
// at their homes; ids out of range have none.
std::vector<float> valuesToHomes(const NetworkPlan& plan, std::size_t list, std::span<const std::int32_t> ids,
                                 std::span<const float> values);

}  // namespace snnjax::builders
