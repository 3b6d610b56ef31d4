#include <algorithm>
#include <builders/host_layout.hpp>
#include <builders/lif_step.hpp>

#include "ops.hpp"

namespace snnjax::harness {
namespace {

builders::LifStepOptions optionsOf(const Call& call) {
  builders::LifStepOptions options;
  options.rows = call.size("rows");
  options.neurons = call.size("neurons");
  options.half_membranes = call.flag("half");
  options.reset = call.choice<Reset>("reset");
  options.reset_time = call.choice<ResetTime>("reset_time");
  options.detach_reset = call.flag("detach_reset");
  options.spike_from_old = call.flag("spike_from_old");
  options.inclusive = call.flag("inclusive");
  options.surrogate = call.choice<Surrogate>("surrogate");
  options.slope = static_cast<float>(call.number("slope"));
  return options;
}

// The gradients of a constant, one row of neurons from each worker, summed.
void sumOverWorkers(const builders::LayerPlan& columns, const std::vector<float>& partials, std::span<float> sums) {
  const std::size_t rows = partials.size() / columns.tiles.count / columns.tiles.columns;
  const std::vector<float> array = builders::fromTiles(columns, partials, rows);
  std::ranges::fill(sums, 0.0F);
  for (std::size_t i = 0; i < array.size(); ++i) sums[i % sums.size()] += array[i];
}

}  // namespace

Report runLifStep(const Call& call) {
  const builders::LifStepOptions options = optionsOf(call);
  const std::size_t rows = options.rows, neurons = options.neurons;
  Model model(call);
  const auto tensors = builders::addLifStepTensors(model.graph(), options);
  builders::LayerPlan columns;
  columns.neurons = options.neurons;
  columns.tiles = tensors.tiles;
  const auto write = [&](const poplar::Tensor& tensor, const char* name, std::size_t its_rows) {
    model.write(tensor, builders::toTiles(columns, call.floats(name, its_rows * neurons), its_rows));
  };
  std::vector<poplar::program::Program> programs = {builders::addLifStep(model.graph(), options, tensors)};
  write(tensors.v, "v", rows);
  write(tensors.current, "current", rows);
  write(tensors.decay, "decay", 1);
  write(tensors.threshold, "threshold", 1);
  write(tensors.gain, "gain", 1);
  model.read(tensors.v_new);
  model.read(tensors.spikes);
  const bool backward = call.flag("backward");
  if (backward) {
    const auto cotangents = builders::addLifStepCotangents(model.graph(), options, tensors);
    programs.push_back(builders::addLifStepBackward(model.graph(), options, tensors, cotangents));
    write(cotangents.g_v_new, "g_v_new", rows);
    write(cotangents.g_spikes, "g_spikes", rows);
    for (const poplar::Tensor& each : {cotangents.g_v, cotangents.g_current}) model.read(each);
    for (const poplar::Tensor& each : {cotangents.g_decay, cotangents.g_threshold, cotangents.g_gain}) model.read(each);
  }

  Report report = model.run(programs);
  const auto take = [&](const char* name) {
    std::ranges::copy(builders::fromTiles(columns, model.nextFloats(), rows),
                      call.floats(name, rows * neurons).begin());
  };
  take("v_new");
  take("spikes");
  if (backward) {
    take("g_v");
    take("g_current");
    for (const char* name : {"g_decay", "g_threshold", "g_gain"}) {
      sumOverWorkers(columns, model.nextFloats(), call.floats(name, neurons));
    }
  }
  return report;
}

}  // namespace snnjax::harness
