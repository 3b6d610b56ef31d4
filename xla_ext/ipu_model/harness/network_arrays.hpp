// The arrays of a network of LIF layers, from a call to the variables on the tiles. The read-out is one more layer.
#pragma once

#include <builders/network_plan.hpp>
#include <builders/network_tensors.hpp>
#include <span>
#include <string>
#include <vector>

#include "call.hpp"
#include "model.hpp"

namespace snnjax::harness {

// The name of a layer's array in the call.
std::string numbered(const char* name, std::size_t layer);

// Sizes and switches; the caller says whether the record is kept.
builders::NetworkOptions networkOptions(const Call& call);
builders::NetworkPlan planOf(const builders::NetworkOptions& options, const Model& model);

// The ids of the call's events; none where inputs are dense.
std::span<const std::int32_t> eventIds(const Call& call, const builders::NetworkPlan& plan);
// The events of the call as the history of the input lists, and their values or those of dense inputs.
std::vector<std::uint16_t> eventsOf(const Call& call, const builders::NetworkPlan& plan);
std::vector<float> valuesOf(const Call& call, const builders::NetworkPlan& plan);

// Weights, recurrent weights, bias, decay, gain and both thresholds of layer `l`.
void writeParameters(Model& model, const Call& call, const builders::NetworkPlan& plan, std::size_t l,
                     const builders::LayerTensors& tensors);

// Fills the call's array `name` [rows, neurons] from blocks of tiles.
void takeBlocks(Model& model, const Call& call, const std::string& name, const builders::LayerPlan& layer,
                std::size_t rows, std::size_t extra_rows = 0);

}  // namespace snnjax::harness
