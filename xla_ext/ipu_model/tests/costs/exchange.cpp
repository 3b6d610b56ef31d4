// Routes and phases of the exchange against ipu.md 3.6.
#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "check.hpp"
#include "costs/costs.hpp"

using namespace ipu_model;

namespace {

const Chip& c600() { return chipNamed("c600"); }

std::uint64_t phase(TileTraffic tile) { return exchangeCycles(c600(), std::array{tile}); }

void testRoutes() {
  std::vector<std::int32_t> routes;
  for (std::uint32_t from = 0; from < c600().tiles; ++from) {
    for (std::uint32_t to = 0; to < c600().tiles; ++to) routes.push_back(routeCycles(c600(), from, to));
  }
  std::sort(routes.begin(), routes.end());
  CHECK_EQUAL(routes.front(), -78);
  CHECK_EQUAL(routes[routes.size() / 2], -12);
  CHECK_EQUAL(routes.back(), 112);
}

// The end of an isolated transfer of one word: 59 to 171 cycles, median 87; each further word takes one more.
void testIsolatedTransfers() {
  std::vector<std::uint64_t> ends;
  for (std::uint32_t from = 0; from < c600().tiles; ++from) {
    for (std::uint32_t to = 0; to < c600().tiles; ++to) {
      if (from == to) continue;
      const TileTraffic tile{
          .words_received = 1, .fragments_received = 1, .route_cycles = arrivalCycles(c600(), from, to)};
      ends.push_back(phase(tile));
    }
  }
  std::sort(ends.begin(), ends.end());
  CHECK_EQUAL(ends.front(), 59u);
  CHECK_EQUAL(ends[ends.size() / 2], 87u);
  CHECK_EQUAL(ends.back(), 171u);
  for (const std::uint64_t words : {16u, 64u, 1024u}) {
    CHECK_EQUAL(phase({.words_received = words, .fragments_received = 1, .route_cycles = 86}), 86 + words);
  }
}

void testPairs() {
  CHECK_EQUAL(pairedTile(4), 5u);
  CHECK_EQUAL(pairedTile(5), 4u);
  CHECK_EQUAL(pairedWords(c600(), 127), 0u);
  CHECK_EQUAL(pairedWords(c600(), 128), 128u);
  CHECK_EQUAL(pairedWords(c600(), 129), 128u);
  CHECK_EQUAL(phase({.words_received = 1000, .paired_words_received = 1000, .fragments_received = 1}), 500u);
}

void testPhases() {
  CHECK_EQUAL(exchangeCycles(c600(), {}), 0u);
  CHECK_EQUAL(phase({}), 0u);
  // Both directions at once; 2 cycles for each further message sent, 3 for each received, also at once.
  CHECK_EQUAL(phase({.words_sent = 300, .words_received = 100, .fragments_sent = 1, .fragments_received = 1}), 300u);
  CHECK_EQUAL(phase({.words_sent = 300, .words_received = 100, .fragments_sent = 11, .fragments_received = 5}), 320u);
  CHECK_EQUAL(phase({.words_sent = 300, .words_received = 100, .fragments_sent = 11, .fragments_received = 9}), 324u);
  // The busiest tile decides, and the longest route is on its way.
  const std::array tiles = {TileTraffic{.words_sent = 500, .fragments_sent = 1},
                            TileTraffic{.words_received = 10, .fragments_received = 1, .route_cycles = 100},
                            TileTraffic{.words_received = 90, .fragments_received = 1, .route_cycles = 60}};
  CHECK_EQUAL(exchangeCycles(c600(), tiles), 600u);
}

void testMoreTrafficIsNeverFaster() {
  for (std::uint64_t n = 0; n < 50; ++n) {
    const TileTraffic base{.words_sent = 5 * n, .words_received = 3 * n, .fragments_sent = n, .fragments_received = n};
    for (auto field : {&TileTraffic::words_sent, &TileTraffic::words_received, &TileTraffic::fragments_sent,
                       &TileTraffic::fragments_received}) {
      TileTraffic more = base;
      ++(more.*field);
      CHECK(phase(more) >= phase(base));
    }
  }
}

void testSmallerChip() {
  const Chip& mk1 = chipNamed("ipu1");
  std::set<std::int32_t> seen;
  for (std::uint32_t tile = 0; tile < mk1.tiles; ++tile) seen.insert(arrivalCycles(mk1, 0, tile));
  CHECK(*seen.begin() >= 58);
  CHECK(*seen.rbegin() <= 163);
}

}  // namespace

int main() {
  testRoutes();
  testIsolatedTransfers();
  testPairs();
  testPhases();
  testMoreTrafficIsNeverFaster();
  testSmallerChip();
  return check::failures;
}
