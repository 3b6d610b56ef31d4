// The mapping of layers onto tiles, and the plan of a network, without a graph.
#include "../../ipu_model/tests/check.hpp"
#include "../network_plan.hpp"
#include "../scan_plan.hpp"

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

void testTwoNeuronsATile() {
  const NetworkPlan plan = planNetwork(nmnist(), 1472, kBytes);
  CHECK_EQUAL(plan.layers.size(), 3u);
  for (const LayerPlan& layer : plan.layers) CHECK_EQUAL(layer.tiles.columns, 2u);
  CHECK_EQUAL(plan.layers[0].tiles.count, 733u);
  CHECK_EQUAL(plan.layers[2].tiles.first, 1466u);
  CHECK_EQUAL(plan.layers[2].tiles.count, 5u);
}

void testBalance() {
  // The first layer reads far longer lists: its neurons get more tiles.
  const std::vector<LayerSize> layers = {{1000, 512, 200}, {512, 512, 10}};
  const std::vector<TileRange> ranges = tilesOfLayers(layers, {.count = 128, .bytes = kBytes, .batch = 8});
  CHECK(ranges[0].columns < ranges[1].columns);
  CHECK(ranges[1].first + ranges[1].count <= 128u);
  CHECK_EQUAL(ranges[1].first, ranges[0].count);
}

void testFewTiles() {
  NetworkOptions options = nmnist();
  options.num_inputs = 20;
  options.batch = 3;
  options.num_steps = 4;
  options.layers = {{12, 14}, {9, {}}};
  const NetworkPlan plan = planNetwork(options, 1, kBytes);
  for (const LayerPlan& layer : plan.layers) CHECK_EQUAL(layer.tiles.first + layer.tiles.count, 1u);
  CHECK_EQUAL(plan.lists[1].capacity, 12u);  // no more slots than neurons
  CHECK_EQUAL(plan.lists[2].capacity, 9u);
}

void testEverySampleHasOneHome() {
  const NetworkPlan plan = planNetwork(nmnist(), 1472, kBytes);
  for (const ListPlan& list : plan.lists) {
    unsigned next = 0;
    for (const Home& home : list.homes) {
      CHECK_EQUAL(home.first_sample, next);
      CHECK(home.tile < 1472u);
      next += home.samples;
    }
    CHECK_EQUAL(next, 48u);
  }
}

NetworkOptions overAllSteps() {
  NetworkOptions options = nmnist();
  options.num_steps = 10;
  options.over_all_steps = true;
  return options;
}

// Groups of samples share the batch, all tiles exist, and every row has one home.
void testScan() {
  const NetworkPlan plan = planNetwork(overAllSteps(), 1472, kBytes);
  CHECK(plan.scans);
  for (const LayerPlan& layer : plan.layers) {
    unsigned samples = 0;
    for (const SampleGroup& group : layer.sample_groups) {
      CHECK_EQUAL(group.first, samples);
      samples += group.count;
    }
    CHECK_EQUAL(samples, 48u);
    CHECK(layer.paddedNeurons() >= layer.neurons);
    CHECK(layer.tileOf(layer.tiles.count - 1, layer.sample_groups.size() - 1) < 1472u);
  }
  CHECK(plan.layers[0].sample_groups.size() > 1);
  for (const ListPlan& list : plan.lists) {
    unsigned next = 0;
    for (const Home& home : list.homes) {
      CHECK_EQUAL(home.first_sample, next);
      CHECK(home.tile < 1472u);
      next += home.samples;
    }
    CHECK_EQUAL(next, 480u);
  }
}

// Events have the same place before and after it is known that all are of value 1: weights stay where they are.
void testPlaceOfValues() {
  NetworkOptions options = overAllSteps();
  const NetworkPlan known = planNetwork(options, 1472, kBytes);
  options.inputs = Inputs::Events;
  const NetworkPlan unknown = planNetwork(options, 1472, kBytes);
  CHECK_EQUAL(known.layers[0].tiles.columns, unknown.layers[0].tiles.columns);
  CHECK_EQUAL(known.layers[0].sample_groups.size(), unknown.layers[0].sample_groups.size());
}

// A recurrent layer has tiles that its neurons leave free for the lists of its loop, one for each sample.
void testRecurrentScan() {
  NetworkOptions options = overAllSteps();
  options.layers[0].recurrent = true;
  const NetworkPlan plan = planNetwork(options, 1472, kBytes);
  CHECK(plan.scans);
  CHECK(plan.layers[0].recurrent);
  CHECK(plan.lists[2].sample_homes.empty());
  CHECK_EQUAL(plan.lists[1].sample_homes.size(), 48u);
  for (unsigned b = 0; b < 48; ++b) {
    CHECK_EQUAL(plan.lists[1].sample_homes[b].first_sample, b);
    CHECK(plan.lists[1].sample_homes[b].tile < 1472u);
  }
}

// Sums of few entries have few parts, of which each takes few messages.
void testSums() {
  const SumsPlan few = planSums(86, 10), many = planSums(86, 1000), one = planSums(1, 1);
  CHECK(few.parts > many.parts);
  CHECK_EQUAL(one.parts, 1u);
  for (const auto& [plan, entries] : {std::pair(few, 10U), {many, 1000U}, {one, 1U}, {planSums(7, 3), 3U}}) {
    CHECK_EQUAL(plan.of_run % 2, 0u);
    CHECK(plan.runs * plan.of_run >= entries);
    CHECK((plan.runs - 1) * plan.of_run < entries);
  }
}

// Steps that do not fit at once take the time loop.
void testNoScan() {
  NetworkOptions options = overAllSteps();
  options.num_steps = 1000;
  CHECK(!planNetwork(options, 1472, kBytes).scans);
  CHECK(!planNetwork(nmnist(), 1472, kBytes).scans);
}

void testErrors() {
  NetworkOptions options = nmnist();
  CHECK_THROWS(planNetwork(options, 8, kBytes), "lif_network: `layers` must fit into tiles of 638976 bytes");
  options.layers.clear();
  CHECK_THROWS(planNetwork(options, 8, kBytes), "lif_network: `layers` must hold at least one layer, got none");
  options = nmnist();
  options.inputs_gradient = true;
  CHECK_THROWS(planNetwork(options, 1472, kBytes), "lif_network: `inputs` must have values for a gradient, got spikes");
}

// One recurrent layer changes the pace of all: one step per iteration for its lists, and one more for what it sums.
void testRecurrentDelays() {
  NetworkOptions options = nmnist();
  options.layers.back().recurrent = true;
  const NetworkPlan plan = planNetwork(options, 1472, kBytes);
  CHECK(plan.isRecurrent());
  CHECK_EQUAL(plan.layers[0].delay, 1u);
  CHECK_EQUAL(plan.layers[1].delay, 3u);
  CHECK_EQUAL(plan.layers[2].delay, 4u);
  CHECK_EQUAL(plan.iterations, 104u);
  CHECK_EQUAL(plan.layers[2].backward_delay, 1u);
  CHECK_EQUAL(plan.layers[0].backward_delay, 3u);
  CHECK_EQUAL(plan.backward_iterations, 103u);
  CHECK(!planNetwork(nmnist(), 1472, kBytes).isRecurrent());
}

// Its own lists are full lists of the plan, after all others.
void testRecurrentOutput() {
  NetworkOptions options = nmnist();
  options.outputs = 0;
  CHECK_EQUAL(planNetwork(options, 1472, kBytes).lists.size(), 2u);
  options.layers.back().recurrent = true;
  const NetworkPlan plan = planNetwork(options, 1472, kBytes);
  CHECK_EQUAL(plan.lists.size(), 3u);
  CHECK_EQUAL(plan.lists[2].capacity, 1466u);
  CHECK_EQUAL(plan.layers[1].backward_delay, 2u);
  CHECK_EQUAL(plan.listDelay(2), 1u);
}

// Recurrent weights take memory too: 2 x 1466 rows of two columns instead of one.
void testRecurrentMemory() {
  NetworkOptions options = nmnist();
  options.num_inputs = 10;
  options.layers = {{.neurons = 5000, .capacity = 10}};
  const unsigned tiles = 400;
  planNetwork(options, tiles, kBytes);
  options.layers.front().recurrent = true;
  CHECK_THROWS(planNetwork(options, tiles, kBytes), "lif_network: `layers` must fit into tiles of 638976 bytes");
}

// The second states of all steps are kept where thresholds or gradients of constants need them.
void testSecondStates() {
  NetworkOptions options = nmnist();
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

// The layer with the least work has by far the most weights: it must not be packed closer than they fit.
void testMemoryComesBeforeWork() {
  const std::vector<LayerSize> layers = {{20000, 8, 1}, {10, 100, 50}};
  const std::vector<TileRange> ranges = tilesOfLayers(layers, {.count = 8, .bytes = kBytes, .batch = 8, .arrays = 2});
  CHECK_EQUAL(ranges[0].columns, 2u);
  CHECK_EQUAL(ranges[0].count, 4u);
  CHECK(ranges[1].count <= 4u);
}

}  // namespace

int main() {
  testTwoNeuronsATile();
  testBalance();
  testFewTiles();
  testEverySampleHasOneHome();
  testScan();
  testPlaceOfValues();
  testRecurrentScan();
  testSums();
  testNoScan();
  testErrors();
  testRecurrentDelays();
  testRecurrentOutput();
  testRecurrentMemory();
  testSecondStates();
  testMemoryComesBeforeWork();
  return check::failures;
}
