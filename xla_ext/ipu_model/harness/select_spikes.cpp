#include <algorithm>
#include <builders/select_spikes.hpp>

#include "ops.hpp"

namespace snnjax::harness {
namespace {

// The leaves of SparseSpikes from records: header and ids of each row.
void unpackRecords(const Call& call, const std::vector<std::int32_t>& records, std::size_t rows, std::size_t capacity) {
  const std::span<std::int32_t> ids = call.integers("ids", rows * capacity);
  const std::span<std::int32_t> num_spikes = call.integers("num_spikes", rows);
  const std::span<std::int32_t> num_listed = call.integers("num_listed", rows);
  const std::size_t stride = records.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int32_t* const record = records.data() + row * stride;
    num_listed[row] = record[1];
    num_spikes[row] = record[2];
    std::copy_n(record + kListHeader, capacity, &ids[row * capacity]);
  }
}

}  // namespace

Report runSelectSpikes(const Call& call) {
  builders::SelectSpikesOptions options;
  options.rows = call.size("rows");
  options.neurons = call.size("neurons");
  options.capacity = call.size("capacity");
  options.half_membranes = call.flag("half");
  options.long_ids = call.flag("long_ids");
  options.surrogate = call.choice<Surrogate>("surrogate");
  options.slope = static_cast<float>(call.number("slope"));
  const std::size_t rows = options.rows, neurons = options.neurons, slots = rows * options.capacity;

  Model model(call);
  const auto tensors = builders::addSelectSpikesTensors(model.graph(), options);
  std::vector<poplar::program::Program> programs = {builders::addSelectSpikes(model.graph(), options, tensors)};
  model.write(tensors.v, call.floats("v", rows * neurons));
  model.write(tensors.threshold, call.floats("threshold", neurons));
  model.write(tensors.second_threshold, call.floats("second_threshold", neurons));
  model.read(tensors.records);
  model.read(tensors.values);
  const bool backward = call.flag("backward");
  if (backward) {
    const auto cotangents = builders::addSelectSpikesCotangents(model.graph(), options, tensors);
    programs.push_back(builders::addSelectSpikesBackward(model.graph(), options, tensors, cotangents));
    model.write(cotangents.g_values, call.floats("g", slots));
    model.read(cotangents.g_v);
    model.read(cotangents.g_threshold);
  }

  Report report = model.run(programs);
  unpackRecords(call, model.nextIntegers(), rows, options.capacity);
  std::ranges::copy(model.nextFloats(), call.floats("values", slots).begin());
  if (backward) {
    std::ranges::copy(model.nextFloats(), call.floats("g_v", rows * neurons).begin());
    std::ranges::copy(model.nextFloats(), call.floats("g_threshold", neurons).begin());
  }
  return report;
}

}  // namespace snnjax::harness
