#include <algorithm>
#include <builders/host_layout.hpp>
#include <builders/spike_matmul.hpp>

#include "ops.hpp"

namespace snnjax::harness {

using builders::fromTiles;
using builders::toTiles;

Report runSpikeMatmul(const Call& call) {
  builders::SpikeMatmulOptions options;
  options.rows = call.size("rows");
  options.capacity = call.size("capacity");
  options.num_inputs = call.size("num_inputs");
  options.outputs = call.size("outputs");
  options.half_weights = call.flag("half");
  options.long_ids = call.flag("long_ids");
  const std::size_t rows = options.rows, slots = rows * options.capacity, outputs = options.outputs;

  Model model(call);
  const auto tensors = builders::addSpikeMatmulTensors(model.graph(), options);
  builders::LayerPlan columns;
  columns.neurons = options.outputs;
  columns.tiles = tensors.tiles;
  std::vector<poplar::program::Program> programs = {builders::addSpikeMatmul(model.graph(), options, tensors)};
  model.write(tensors.ids, call.integers("ids", slots));
  model.write(tensors.values, call.floats("values", slots));
  model.write(tensors.weights,
              toTiles(columns, call.floats("weights", options.num_inputs * outputs), options.num_inputs, 1));
  model.read(tensors.out);
  const bool backward = call.flag("backward");
  if (backward) {
    const auto cotangents = builders::addSpikeMatmulCotangents(model.graph(), options, tensors);
    programs.push_back(builders::addSpikeMatmulBackward(model.graph(), options, tensors, cotangents));
    model.write(cotangents.g, toTiles(columns, call.floats("g", rows * outputs), rows));
    model.read(cotangents.d_values);
    model.read(cotangents.d_weights);
  }

  Report report = model.run(programs);
  std::ranges::copy(fromTiles(columns, model.nextFloats(), rows), call.floats("out", rows * outputs).begin());
  if (backward) {
    std::ranges::copy(model.nextFloats(), call.floats("d_values", slots).begin());
    std::ranges::copy(fromTiles(columns, model.nextFloats(), options.num_inputs, 1),
                      call.floats("d_weights", options.num_inputs * outputs).begin());
  }
  return report;
}

}  // namespace snnjax::harness
