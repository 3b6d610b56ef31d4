// A tile's time for the vertices of a compute set, by hand: a worker issues every sixth cycle.
#include <array>

#include "check.hpp"
#include "costs/costs.hpp"

using namespace ipu_model;

namespace {

const Chip& mk2() { return chipNamed("mk2"); }
const std::uint64_t kCall = mk2().launch_cycles + mk2().rendezvous_cycles;

std::uint64_t vertices(unsigned count, std::uint64_t slots) {
  TileSchedule tile(mk2());
  for (unsigned i = 0; i < count; ++i) tile.addVertex(slots);
  return tile.cycles();
}

void testVertices() {
  CHECK_EQUAL(TileSchedule(mk2()).cycles(), 0u);
  CHECK_EQUAL(vertices(1, 100), kCall + 600);
  CHECK_EQUAL(vertices(6, 100), kCall + 600);
  CHECK_EQUAL(vertices(7, 100), kCall + 1200);
  // ipu.md 3.9: the vendor's model prints 3,696 cycles for the 48 vertices of 77 slots of tutorial 6.
  CHECK_EQUAL(vertices(48, 77), kCall + 3696);
}

void testVerticesGoToTheFirstFreeWorker() {
  TileSchedule tile(mk2());
  for (const std::uint64_t slots : {50, 10, 10, 10, 10, 10, 30, 30}) tile.addVertex(slots);
  CHECK_EQUAL(tile.cycles(), kCall + 6 * 50);  // the last two follow vertices of 10
}

void testMultiVertex() {
  const std::array<std::uint64_t, 6> slots = {10, 20, 30, 40, 50, 60};
  TileSchedule tile(mk2());
  tile.addMultiVertex(slots);
  CHECK_EQUAL(tile.cycles(), kCall + 6 * 60);
  tile.addMultiVertex(slots, 100);  // waits for the first, and is launched again
  CHECK_EQUAL(tile.cycles(), 2 * kCall + 100 + 2 * 6 * 60);
  tile.addVertex(7);
  CHECK_EQUAL(tile.cycles(), 2 * kCall + 100 + 2 * 6 * 60);  // worker 0 is free long before worker 5
}

void testSupervisorVertex() {
  TileSchedule tile(mk2());
  tile.addVertex(10);
  tile.addSupervisorVertex(1000);
  CHECK_EQUAL(tile.cycles(), kCall + 60 + mk2().rendezvous_cycles + 1000);
}

void testMoreWorkIsNeverFaster() {
  for (unsigned count = 0; count < 20; ++count) {
    for (std::uint64_t slots = 0; slots < 200; slots += 40) {
      CHECK(vertices(count + 1, slots) >= vertices(count, slots));
      CHECK(vertices(count, slots + 1) >= vertices(count, slots));
    }
  }
}

void testTileCopy() {
  const Chip& c600 = chipNamed("c600");
  CHECK_EQUAL(tileCopyCycles(c600, 0, 0), 0u);
  CHECK_EQUAL(tileCopyCycles(c600, 8192, 1), 1312u);  // ipu.md 3.6: measured 1,308
  CHECK_EQUAL(tileCopyCycles(c600, 1, 1), 289u);
  CHECK_EQUAL(tileCopyCycles(c600, 64, 3), 288u + 8 + 20);
}

}  // namespace

int main() {
  testVertices();
  testVerticesGoToTheFirstFreeWorker();
  testMultiVertex();
  testSupervisorVertex();
  testMoreWorkIsNeverFaster();
  testTileCopy();
  return check::failures;
}
