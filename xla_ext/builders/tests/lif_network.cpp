// `lif_network` on tiles against the scalar reference: membranes and lists to the bit, gradients within rounding.
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
  const std::vector<Row> expected = runBackward(network, ran, g);
  for (std::size_t l = 0; l < network.count(); ++l) {
    CHECK(largest(expected[l]) > 0.0F);
    CHECK_NEAR(largestDifference(on_tiles.weightsGradient(l), expected[l]), 0.0F, 1e-5F * largest(expected[l]));
  }
}

void testSpikingOutput() {
  NetworkOptions options = smallNetwork();
  options.outputs = 0;
  checkNetwork(options, 7);
}

void testResets() {
  for (const Reset reset : {Reset::Zero, Reset::None}) {
    NetworkOptions options = smallNetwork();
    options.reset = reset;
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
  return check::failures;
}
