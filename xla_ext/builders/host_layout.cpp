#include "host_layout.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "../error.hpp"

namespace snnjax::builders {
namespace {

void checkSize(const char* function, std::size_t expected, std::size_t actual) {
  if (expected == actual) return;
  throw Error(ErrorCode::kInvalidArgument, std::string(function) + ": `array` must hold " + std::to_string(expected) +
                                               " numbers, got " + std::to_string(actual) +
                                               ". Give it the sizes of the plan.");
}

// Calls body(record of sample b at step t in the history, t * batch + b); records are `width` entries wide.
template <class Entry, class Body>
void forEachRecord(const NetworkPlan& plan, const ListPlan& list, std::size_t width, std::span<Entry> history,
                   Body&& body) {
  const std::size_t batch = plan.options.batch, steps = plan.options.num_steps;
  Entry* record = history.data();
  for (const Home& home : list.homes) {
    for (std::size_t t = 0; t < steps; ++t) {
      for (unsigned b = home.first_sample; b < home.first_sample + home.samples; ++b) {
        body(record, t * batch + b);
        record += width;
      }
    }
  }
}

// The valid slots of a user's list, ordered by id, equal ids by slot.
std::vector<std::size_t> slotsInOrder(const ListPlan& list, std::span<const std::int32_t> ids) {
  std::vector<std::size_t> slots;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (ids[k] >= 0 && ids[k] < static_cast<std::int32_t>(list.num_neurons)) slots.push_back(k);
  }
  std::ranges::stable_sort(slots, {}, [&](std::size_t k) { return ids[k]; });
  return slots;
}

}  // namespace

std::vector<float> toTiles(const LayerPlan& layer, std::span<const float> array, std::size_t rows,
                           std::size_t extra_rows) {
  checkSize("toTiles", rows * layer.neurons, array.size());
  const std::size_t columns = layer.tiles.columns;
  std::vector<float> blocks(layer.tiles.count * (rows + extra_rows) * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t j = 0; j < layer.neurons; ++j) {
      blocks[(j / columns * (rows + extra_rows) + row) * columns + j % columns] = array[row * layer.neurons + j];
    }
  }
  return blocks;
}

std::vector<float> fromTiles(const LayerPlan& layer, std::span<const float> blocks, std::size_t rows,
                             std::size_t extra_rows) {
  const std::size_t columns = layer.tiles.columns;
  checkSize("fromTiles", layer.tiles.count * (rows + extra_rows) * columns, blocks.size());
  std::vector<float> array(rows * layer.neurons);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t j = 0; j < layer.neurons; ++j) {
      array[row * layer.neurons + j] = blocks[(j / columns * (rows + extra_rows) + row) * columns + j % columns];
    }
  }
  return array;
}

std::vector<float> constantsToTiles(const LayerPlan& layer, std::span<const float> values) {
  if (values.size() != 1) return toTiles(layer, values, 1);
  return toTiles(layer, std::vector<float>(layer.neurons, values.front()), 1);
}

std::vector<std::uint16_t> listsToHomes(const NetworkPlan& plan, std::size_t l, std::span<const std::int32_t> ids) {
  const ListPlan& list = plan.lists[l];
  const std::size_t records = std::size_t{plan.options.num_steps} * plan.options.batch;
  checkSize("listsToHomes", records * list.capacity, ids.size());
  std::vector<std::uint16_t> history(records * list.stride, static_cast<std::uint16_t>(list.num_neurons));
  forEachRecord(plan, list, list.stride, std::span(history), [&](std::uint16_t* record, std::size_t row) {
    const std::span<const std::int32_t> own = ids.subspan(row * list.capacity, list.capacity);
    const std::vector<std::size_t> slots = slotsInOrder(list, own);
    std::fill_n(record, kListHeader - 1, static_cast<std::uint16_t>(slots.size()));  // kept, listed, true spikes
    record[kListHeader - 1] = 0;
    std::ranges::transform(slots, record + kListHeader,
                           [&](std::size_t k) { return static_cast<std::uint16_t>(own[k]); });
  });
  return history;
}

std::vector<float> valuesToHomes(const NetworkPlan& plan, std::size_t l, std::span<const std::int32_t> ids,
                                 std::span<const float> values) {
  const ListPlan& list = plan.lists[l];
  const std::size_t records = std::size_t{plan.options.num_steps} * plan.options.batch, width = list.capacity;
  checkSize("valuesToHomes", records * width, values.size());
  if (!list.dense) checkSize("values of lists", records * width, ids.size());
  std::vector<std::size_t> all(width);
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<float> history(records * width);
  forEachRecord(plan, list, width, std::span(history), [&](float* record, std::size_t row) {
    const std::vector<std::size_t> slots = list.dense ? all : slotsInOrder(list, ids.subspan(row * width, width));
    for (std::size_t k = 0; k < slots.size(); ++k) record[k] = values[row * width + slots[k]];
  });
  return history;
}

}  // namespace snnjax::builders
