// Chips, syncs, links and the host.
#include <array>
#include <set>
#include <string>
#include <vector>

#include "check.hpp"
#include "costs/costs.hpp"

using namespace ipu_model;

namespace {

const Chip& mk2() { return chipNamed("mk2"); }

void testChips() {
  std::set<std::string> names;
  for (const Chip& chip : chips()) names.insert(std::string(chip.name));
  CHECK_EQUAL(names.size(), 4u);
  CHECK_EQUAL(chipNamed("mk1").tiles, 1216u);
  CHECK_EQUAL(chipNamed("ipu2").name, "mk2");
  CHECK_EQUAL(chipNamed("ipu21").name, "c600");
  CHECK_THROWS(chipNamed("mk3"), "`ipuVersion` must be one of mk1, mk2, bow, c600, ipu1, ipu2, ipu21, got mk3");
  for (const Chip& chip : chips()) {
    CHECK_EQUAL(chip.tiles % 64, 0u);  // whole rows
    CHECK_EQUAL(chip.workers, kMaxWorkers);
    CHECK(chip.interleaved_from < chip.tile_memory);
  }
  CHECK_NEAR(seconds(mk2(), 6681766), 5023.9e-6, 0.1e-6);  // ipu.md 3.1, tutorial 6
}

void testSync() {
  CHECK_EQUAL(ipuSyncCycles(mk2()), 150u);
  CHECK_EQUAL(systemSyncCycles(mk2(), 1), 150u);
  CHECK_EQUAL(systemSyncCycles(mk2(), 2), 150u + 40);  // 2 hops of 15 ns at 1.33 GHz: 39.9
  for (std::uint32_t ipus = 1; ipus < 64; ++ipus) {
    CHECK(systemSyncCycles(mk2(), ipus + 1) >= systemSyncCycles(mk2(), ipus));
  }
}

std::uint64_t link(std::uint32_t ipus, std::uint32_t from, std::uint32_t to, std::uint64_t count) {
  std::vector<std::uint64_t> words(std::size_t{ipus} * ipus, 0);
  words[from * std::size_t{ipus} + to] = count;
  return linkCycles(mk2(), words, ipus);
}

void testLinks() {
  CHECK_EQUAL(link(2, 0, 0, 1000), 0u);
  CHECK_EQUAL(link(2, 0, 1, 0), 0u);
  // 4 links of 14.6 GB/s: 4 MB in 68.5 us, 91,078 cycles, and 250 ns on the way.
  CHECK_NEAR(static_cast<double>(link(2, 0, 1, 1'000'000)), 91078 + 333, 2);
  CHECK_NEAR(static_cast<double>(link(4, 0, 2, 1'000'000)), 2 * 91078 + 333, 2);      // 2 links straight up
  CHECK_NEAR(static_cast<double>(link(4, 0, 3, 1'000'000)), 2 * 91078 + 333, 2);      // 2 links across
  CHECK_NEAR(static_cast<double>(link(8, 7, 0, 1'000'000)), 2 * 91078 + 3 * 333, 4);  // three hops
  for (std::uint64_t count = 0; count < 10000; count += 500) CHECK(link(4, 1, 2, count + 1) >= link(4, 1, 2, count));
  // Opposite directions share nothing; what goes the same way shares its links.
  const std::array<std::uint64_t, 4> both = {0, 1'000'000, 1'000'000, 0};
  CHECK_EQUAL(linkCycles(mk2(), both, 2), link(2, 0, 1, 1'000'000));
}

void testHost() {
  CHECK_EQUAL(hostCycles(mk2(), 0, 0), 0u);
  // ipu.md 3.9, tutorial 6 on hardware: 40,044,000 bytes in 2,641,488 cycles; 30 us a request besides.
  CHECK_NEAR(static_cast<double>(hostCycles(mk2(), 40'044'000, 0)), 2'641'488, 6000);
  CHECK_EQUAL(hostCycles(mk2(), 40'044'000, 3) - hostCycles(mk2(), 40'044'000, 0), 3 * 164920u);
  CHECK_EQUAL(remoteCycles(mk2(), 40'044'000, 3) - remoteCycles(mk2(), 40'044'000, 0), 3 * 39900u);
  for (std::uint64_t bytes = 1; bytes < 100000; bytes *= 2)
    CHECK(hostCycles(mk2(), 2 * bytes, 1) >= hostCycles(mk2(), bytes, 1));
}

}  // namespace

int main() {
  testChips();
  testSync();
  testLinks();
  testHost();
  return check::failures;
}
