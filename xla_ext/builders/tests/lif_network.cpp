// `lif_network` on tiles against the scalar reference: membranes and lists bit for bit, gradients up to rounding.
#include <ipu_model/profile.hpp>

#include "../../ipu_model/tests/check.hpp"
#include "network_on_tiles.hpp"

namespace network_test {
namespace {

NetworkOptions smallNetwork() {
  NetworkOptions options;
  options.num_steps = 7;
  options.batch = 5;
  options.num_inputs = 13;
  options.event_capacity = 4;
  options.layers = {{24, 6}, {17, 20}};
  options.outputs = 3;
  return options;
}

float largestDifference(const Row& a, const Row& b) {
  float largest = a.size() == b.size() ? 0.0F : std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    largest = difference <= largest ? largest : difference;  // a NaN is the largest
  }
  return largest;
}

float largest(const Row& a) { return largestDifference(a, Row(a.size(), 0.0F)); }

// Lists hold what the reference lists: spikes ascending, then the others.
void checkLists(const Network& network, const Ran& ran, OnTiles& tiles, std::size_t l) {
  const HostLists lists = tiles.lists(l + 1);
  const std::size_t neurons = network.neurons(l), capacity = tiles.plan.lists[l + 1].capacity;
  for (std::size_t row = 0; row < lists.num_kept.size(); ++row) {
    std::vector<std::int32_t> expected;
    for (const bool spikes : {true, false}) {
      for (std::size_t j = 0; j < neurons; ++j) {
        const std::size_t i = row * neurons + j;
        if (ran.listed[l][i] > 0 && (ran.fired[l][i] > 0) == spikes) expected.push_back(static_cast<std::int32_t>(j));
      }
    }
    CHECK_EQUAL(lists.num_listed[row], static_cast<std::int32_t>(expected.size()));
    expected.resize(capacity, static_cast<std::int32_t>(neurons));
    const auto first = lists.ids.begin() + static_cast<std::ptrdiff_t>(row * capacity);
    CHECK(std::equal(expected.begin(), expected.end(), first));
  }
}

void checkClose(const Row& actual, const Row& expected) {
  CHECK(largest(expected) > 0.0F);
  CHECK_NEAR(largestDifference(actual, expected), 0.0F, 1e-5F * largest(expected));
}

// The gradient of dense inputs at the slots of events, if any.
Row atSlots(const Network& network, const Row& dense) {
  if (network.options.inputs == Inputs::Dense) return dense;
  const std::size_t inputs = network.options.num_inputs;
  Row listed(network.ids.size(), 0.0F);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const std::int32_t id = network.ids[i];
    if (id < 0 || id >= static_cast<std::int32_t>(inputs)) continue;
    listed[i] = dense[i / network.options.event_capacity * inputs + static_cast<std::size_t>(id)];
  }
  return listed;
}

void checkNetwork(const NetworkOptions& options, unsigned tiles, unsigned ipus = 1) {
  const Network network = randomNetwork(options, 3);
  const Ran ran = runForward(network);
  OnTiles on_tiles(network, tiles, ipus);
  on_tiles.forward();
  for (std::size_t l = 0; l < network.count(); ++l) {
    CHECK_EQUAL(largestDifference(on_tiles.membranes(l), ran.v[l]), 0.0F);
    if (network.isListed(l)) checkLists(network, ran, on_tiles, l);
  }
  Row g(ran.v.back().size());
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(i % 7) - 3.0F;
  on_tiles.writeOutputGradient(g);
  on_tiles.backward();
  const Gradients expected = runBackward(network, ran, g);
  for (std::size_t l = 0; l < network.count(); ++l) {
    checkClose(on_tiles.weightsGradient(l), expected.weights[l]);
    if (!network.isRecurrent(l)) continue;
    if (options.num_steps > 1) checkClose(on_tiles.recurrentGradient(l), expected.recurrent[l]);
    if (options.num_steps == 1) CHECK_EQUAL(largest(on_tiles.recurrentGradient(l)), 0.0F);  // nothing fired before
  }
  if (options.inputs_gradient) checkClose(on_tiles.inputsGradient(), atSlots(network, expected.inputs));
}

void testSpikingOutput() {
  NetworkOptions options = smallNetwork();
  options.outputs = 0;
  checkNetwork(options, 7);
}

void testResets() {
  for (const Reset reset : {Reset::Zero, Reset::None}) {
    NetworkOptions options = smallNetwork();
    for (LayerOptions& layer : options.layers) layer.neuron.reset = reset;
    checkNetwork(options, 7);
  }
}

void testFullLists() {
  NetworkOptions options = smallNetwork();
  options.layers = {{24, {}}, {10, {}}, {9, {}}};
  checkNetwork(options, 16);
}

void testTrees() {
  for (const unsigned homes : {1U, 2U, 5U}) {
    for (const unsigned group_tiles : {1U, 3U, 12U}) {
      NetworkOptions options = smallNetwork();
      options.homes = homes;
      options.group_tiles = group_tiles;
      checkNetwork(options, 64);
    }
  }
}

NetworkOptions recurrentNetwork() {
  NetworkOptions options = smallNetwork();
  options.layers = {{.neurons = 24, .capacity = 6, .recurrent = true}, {.neurons = 17, .capacity = 20}};
  return options;
}

// Recurrent layers below, above, both, and as the output, whose lists are full.
void testRecurrent() {
  for (const unsigned tiles : {1U, 7U, 64U}) checkNetwork(recurrentNetwork(), tiles);
  checkNetwork(recurrentNetwork(), 8, 2);
  NetworkOptions options = recurrentNetwork();
  options.layers[1].recurrent = true;
  for (const unsigned outputs : {3U, 0U}) {
    options.outputs = outputs;
    checkNetwork(options, 7);
    options.layers[0].recurrent = false;
    checkNetwork(options, 64);
  }
  options.num_steps = 1;
  checkNetwork(options, 7);
}

void testRecurrentTrees() {
  for (const unsigned homes : {1U, 5U}) {
    for (const unsigned group_tiles : {1U, 3U}) {
      NetworkOptions options = recurrentNetwork();
      options.homes = homes;
      options.group_tiles = group_tiles;
      checkNetwork(options, 64);
    }
  }
}

// Events with values and dense inputs, with and without their gradient.
void testValues() {
  for (const Inputs inputs : {Inputs::Events, Inputs::Dense}) {
    for (const bool gradient : {false, true}) {
      for (NetworkOptions options : {smallNetwork(), recurrentNetwork()}) {
        options.inputs = inputs;
        options.inputs_gradient = gradient;
        checkNetwork(options, gradient ? 7 : 64);
      }
    }
  }
}

// A wide layer and a narrow one that reads longer lists: the same results by either mapping, sooner by the balanced
// one.
void testBalancedMapping() {
  NetworkOptions options = smallNetwork();
  options.batch = 8;
  options.layers = {{80, 60}, {20, 20}};
  const Network network = randomNetwork(options, 10), equal = [&] {
    Network other = network;
    other.options.equal_columns = true;
    return other;
  }();
  OnTiles balanced_tiles(network, 32), equal_tiles(equal, 32);
  for (OnTiles* tiles : {&balanced_tiles, &equal_tiles}) {
    tiles->writeOutputGradient(Row(options.num_steps * options.batch * options.outputs, 1.0F));
    tiles->forward();
    tiles->backward();
  }
  for (std::size_t l = 0; l < network.count(); ++l) {
    CHECK_EQUAL(largestDifference(balanced_tiles.membranes(l), equal_tiles.membranes(l)), 0.0F);
  }
  const auto cycles = [](OnTiles& tiles) { return ipu_model::profileOf(tiles.engine()).cycles.total(); };
  CHECK(static_cast<double>(cycles(balanced_tiles)) < 0.95 * static_cast<double>(cycles(equal_tiles)));
}

}  // namespace
}  // namespace network_test

int main() {
  using namespace network_test;
  for (const unsigned tiles : {1U, 7U, 64U}) checkNetwork(smallNetwork(), tiles);
  checkNetwork(smallNetwork(), 8, 2);
  testSpikingOutput();
  testResets();
  testFullLists();
  testTrees();
  testRecurrent();
  testRecurrentTrees();
  testValues();
  testBalancedMapping();
  return check::failures;
}
