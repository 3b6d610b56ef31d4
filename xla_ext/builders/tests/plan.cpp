// The plan of a network, without a graph.
#include "builders/layout/layer_costs.hpp"
#include "builders/layout/network_plan.hpp"
#include "check.hpp"

using namespace snnjax::builders;

namespace {

constexpr std::size_t kBytes = 624 * 1024;

// The network of ipu.md 1.3 with two hidden layers, at 1 % activity.
NetworkOptions nmnist() {
  NetworkOptions options;
  options.num_steps = 100;
  options.batch = 48;
  options.num_inputs = 2312;
  options.event_capacity = 32;
  options.layers = {{1466, 14}, {1466, 14}};
  options.outputs = 10;
  return options;
}

void testFewTiles() {
  NetworkOptions options = nmnist();
  options.num_inputs = 20;
  options.batch = 3;
  options.num_steps = 4;
  options.layers = {{12, 14}, {9, {}}};
  const NetworkPlan plan = planNetwork(options, 1, kBytes);
  for (const LayerPlan& layer : plan.layers) CHECK_EQUAL(layer.tileOf(layer.tiles.count - 1, 0), 0u);
  CHECK_EQUAL(plan.lists[1].capacity, 12u);  // no more slots than neurons
  CHECK_EQUAL(plan.lists[2].capacity, 9u);
}

NetworkOptions fewSteps() {
  NetworkOptions options = nmnist();
  options.num_steps = 10;
  return options;
}

// Groups of samples share the batch, all tiles exist, and every row of a block has one home.
void checkPlaces(const NetworkPlan& plan) {
  for (const LayerPlan& layer : plan.layers) {
    unsigned samples = 0;
    for (const SampleGroup& group : layer.sample_groups) {
      CHECK_EQUAL(group.first, samples);
      samples += group.count;
    }
    CHECK_EQUAL(samples, plan.options.batch);
    CHECK(layer.paddedNeurons() >= layer.neurons);
    CHECK(layer.tileOf(layer.tiles.count - 1, layer.sample_groups.size() - 1) < plan.num_tiles);
  }
  for (const ListPlan& list : plan.lists) {
    unsigned next = 0;
    for (const Home& home : list.homes) {
      CHECK_EQUAL(home.first, next);
      CHECK(home.tile < plan.num_tiles);
      next += home.rows;
    }
    CHECK_EQUAL(next, plan.blockRows());
  }
}

// Layouts after some that did not fit take less, if any does.
void testAttempts() {
  for (const unsigned steps : {10U, 100U, 277U}) {
    NetworkOptions options = nmnist();
    options.num_steps = steps;
    std::size_t first = kBytes, before = kBytes;
    for (const unsigned attempts : {0U, 1U, 2U}) {
      options.attempts = attempts;
      const NetworkPlan plan = planNetwork(options, 1472, kBytes);
      checkPlaces(plan);
      CHECK(plan.bytes <= before);
      before = plan.bytes;
      if (attempts == 0) first = plan.bytes;
    }
    CHECK(steps == 10 || before < first);
  }
}

// Few steps run at once; of many, blocks that fit, the last of which may have steps to spare.
void testBlocks() {
  for (const unsigned steps : {1U, 10U, 100U, 101U, 277U}) {
    NetworkOptions options = nmnist();
    options.num_steps = steps;
    const NetworkPlan plan = planNetwork(options, 1472, kBytes);
    checkPlaces(plan);
    CHECK(steps == 1 || plan.layers[0].sample_groups.size() > 1);
    CHECK_EQUAL(plan.num_blocks == 1, steps <= 10);
    CHECK(plan.paddedSteps() >= steps);
    CHECK(plan.paddedSteps() - steps < plan.block_steps);
    CHECK(plan.bytes < kBytes);
  }
}

// Short lists are added up; long ones are dense rows for the matrix unit, if weights are floats.
void testUnit() {
  const auto onUnit = [](unsigned events, bool half_weights) {
    NetworkOptions options = fewSteps();
    options.half_weights = half_weights;
    options.event_capacity = events;
    const NetworkPlan plan = planNetwork(options, 1472, kBytes);
    CHECK(plan.bytes < kBytes);
    return plan.layers[0].currents_on_unit && plan.layers[0].gradient_on_unit;
  };
  CHECK(!onUnit(12, false));
  CHECK(onUnit(1000, false));
  CHECK(!onUnit(1000, true));
}

// The spikes that the state of a recurrent layer carries have a home for each sample.
void testRecurrent() {
  NetworkOptions options = fewSteps();
  options.layers[0].recurrent = true;
  const NetworkPlan plan = planNetwork(options, 1472, kBytes);
  CHECK(plan.layers[0].recurrent);
  CHECK(plan.lists[2].sample_homes.empty());
  CHECK_EQUAL(plan.lists[1].sample_homes.size(), 48u);
  for (unsigned b = 0; b < 48; ++b) {
    CHECK_EQUAL(plan.lists[1].sample_homes[b].first, b);
    CHECK(plan.lists[1].sample_homes[b].tile < 1472u);
  }
}

// Sums of few entries have few parts, of which each takes few messages: longer runs than tiles would allow.
void testSums() {
  const SumsPlan few = planSums(86, 10), many = planSums(86, 1000), one = planSums(1, 1);
  CHECK(few.parts > many.parts);
  CHECK_EQUAL(one.parts, 1u);
  CHECK(planSums(256, 32).of_run > 2u);
  for (const auto& [plan, entries] : {std::pair(few, 10U), {many, 1000U}, {one, 1U}, {planSums(7, 3), 3U}}) {
    CHECK_EQUAL(plan.of_run % 2, 0u);
    CHECK(plan.runs * plan.of_run >= entries);
    CHECK((plan.runs - 1) * plan.of_run < entries);
  }
}

// Few short lists are those of the blocks; long ones, and those without slots, are joined. Likewise the dot products.
void testParts() {
  const PartsPlan few = planParts({22, 12, 3, 3, 1});
  CHECK(few.are_blocks);
  CHECK_EQUAL(few.lists, 22u);
  CHECK_EQUAL(few.of_list, 6u);
  CHECK(!planParts({86, 12, 100, 100, 1}).are_blocks);
  CHECK(!planParts({22, 12, 0, 0, 1}).are_blocks);
  CHECK_EQUAL(planSums(22, 3).parts, 22u);
  CHECK_EQUAL(planSums(22, 0).parts, 22u);
  CHECK(planSums(86, 100).parts < 86u);
}

void testErrors() {
  NetworkOptions options = nmnist();
  CHECK_THROWS(planNetwork(options, 8, kBytes), "lif_network: `layers` must fit into 549519 of the 638976 bytes of");
}

// Lists of a layer with a capacity are the output; of one without there are some only where it reads them itself.
void testSpikingOutput() {
  NetworkOptions options = fewSteps();
  options.outputs = 0;
  CHECK_EQUAL(planNetwork(options, 1472, kBytes).lists[2].capacity, 14u);
  options.layers.back().capacity = {};
  CHECK_EQUAL(planNetwork(options, 1472, kBytes).lists.size(), 2u);
  options.layers.back().recurrent = true;
  const NetworkPlan plan = planNetwork(options, 1472, kBytes);
  CHECK_EQUAL(plan.lists.size(), 3u);
  CHECK_EQUAL(plan.lists[2].capacity, 1466u);
}

// Recurrent weights take memory too: 2 x 1466 rows of two columns instead of one.
void testRecurrentMemory() {
  NetworkOptions options = fewSteps();
  options.num_inputs = 10;
  options.layers = {{.neurons = 5000, .capacity = 10}};
  const unsigned tiles = 400;
  planNetwork(options, tiles, kBytes);
  options.layers.front().recurrent = true;
  CHECK_THROWS(planNetwork(options, tiles, kBytes),
               "lif_network: `layers` must fit into 549519 of the 638976 bytes of");
}

// The second states of all steps are kept where thresholds or gradients of constants need them.
void testSecondStates() {
  NetworkOptions options = fewSteps();
  const NeuronOptions plain = {.second_state = true};
  const NeuronOptions raising = {.second_state = true, .raises_threshold = true};
  const NeuronOptions learning = {.second_state = true, .keeps_second = true};
  const auto rows = [&](const NeuronOptions& neuron, bool keeps_record, unsigned outputs) {
    options.keeps_record = keeps_record;
    options.outputs = outputs;
    options.layers = {{.neurons = 20, .capacity = 4, .neuron = neuron}};
    return planNetwork(options, 1472, kBytes).secondRows(0);
  };
  CHECK_EQUAL(rows(plain, true, 10), 1u);
  CHECK_EQUAL(rows(learning, true, 10), options.num_steps + 1);
  CHECK_EQUAL(rows(learning, false, 10), 1u);
  CHECK_EQUAL(rows(raising, true, 10), options.num_steps + 1);
  CHECK_EQUAL(rows(raising, false, 10), 1u);
  CHECK_EQUAL(rows(raising, false, 0), options.num_steps + 1);  // its spikes are read off both states
}

}  // namespace

int main() {
  testFewTiles();
  testBlocks();
  testAttempts();
  testUnit();
  testRecurrent();
  testSums();
  testParts();
  testErrors();
  testSpikingOutput();
  testRecurrentMemory();
  testSecondStates();
  return check::failures;
}
