// What the engine counts: words between tiles, cycles of vertices, memory, and the profile made of them.
#include <algorithm>
#include <ctime>
#include <limits>
#include <sstream>

#include "core/on_model.hpp"
#include "costs/costs.hpp"

namespace {

using namespace poplar;
using namespace poplar::program;
using ipu_model::TileTraffic;
using on_model::Model;

const ipu_model::Chip& chip() { return ipu_model::chipNamed("ipu2"); }

// `words` from tile 0 to tile 1, with nothing else.
std::uint64_t oneTransfer(std::uint64_t words) {
  const TileTraffic traffic[] = {
      {.tile = 0, .words_sent = words, .fragments_sent = 1},
      {.tile = 1,
       .words_received = words,
       .fragments_received = 1,
       .route_cycles = ipu_model::arrivalCycles(chip(), 0, 1)},
  };
  return ipu_model::exchangeCycles(chip(), traffic);
}

void bringsInputsAndTakesOutputs() {
  Model model(4);
  const Tensor in = model.variable(FLOAT, {100}, "in", 0);
  const Tensor out = model.variable(FLOAT, {100}, "out", 1);
  model.run(model.one("Scale<float>", {{"in", in}, {"out", out}}, 1));
  ipu_model::ComputeSetProfile profile = model.profile().compute_sets[0];
  CHECK_EQUAL(profile.exchange.bytes, 400U);
  CHECK_EQUAL(profile.exchange.messages, 1U);
  CHECK_EQUAL(profile.exchange.cycles, oneTransfer(100));
  CHECK_EQUAL(profile.sync_cycles, ipu_model::ipuSyncCycles(chip()));
  CHECK_EQUAL(model.profile().tiles[1].buffers, 400U);

  model.run(model.one("Scale<float>", {{"in", in}, {"out", out}}, 2));
  profile = model.profile().compute_sets[0];  // of the first engine's set no more: it is not in the program
  CHECK_EQUAL(profile.exchange.bytes, 800U);
  CHECK_EQUAL(profile.exchange.messages, 2U);
  CHECK_EQUAL(profile.sync_cycles, 2 * ipu_model::ipuSyncCycles(chip()));

  model.run(model.one("Scale<float>", {{"in", in}, {"out", in}}, 0));
  CHECK_EQUAL(model.profile().cycles.exchange + model.profile().cycles.sync, 0U);
}

// A word that several vertices of a tile read comes once; one that several tiles read is sent once.
void sendsAWordOnce() {
  Model model(4);
  const Tensor in = model.variable(FLOAT, {50}, "in", 0);
  const ComputeSet set = model.graph.addComputeSet("set");
  for (unsigned tile : {1U, 1U, 2U, 3U}) {
    const Tensor out = model.graph.addVariable(FLOAT, {50}, "out");
    model.graph.setTileMapping(out, tile);
    model.graph.setTileMapping(model.graph.addVertex(set, "Scale<float>", {{"in", in}, {"out", out}}), tile);
  }
  model.run(Execute(set));
  const ipu_model::ExchangeProfile exchange = model.profile().compute_sets[0].exchange;
  CHECK_EQUAL(exchange.bytes, 3U * 200);
  CHECK(exchange.cycles < oneTransfer(50) + 50);
}

// Seconds of the processor to plan as many copies of every other column to a row, the least of three times.
double planningTime(std::size_t copies) {
  Model model(2);
  const Tensor columns = model.variable(FLOAT, {2, 2 * copies}, "columns", 0);
  const Tensor rows = model.variable(FLOAT, {2 * copies, 2}, "rows", 1);
  Sequence program;
  for (std::size_t i = 0; i < copies; ++i) {
    program.add(Copy(columns.slice(2 * i, 2 * i + 1, 1).flatten(), rows[2 * i], false, "copy " + std::to_string(i)));
  }
  std::clock_t least = std::numeric_limits<std::clock_t>::max();
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::clock_t start = std::clock();
    compileGraph(model.graph, {program}, {{"debug.allowOutOfMemory", "true"}});
    least = std::min(least, std::clock() - start);
  }
  return static_cast<double>(least) / CLOCKS_PER_SEC;
}

// Four times as many take sixteen times as long where each is compared with all before it.
void plansCopiesInTimeThatGrowsWithTheirNumber() { CHECK(planningTime(16000) < 8 * planningTime(4000)); }

// Rows of two tiles dealt in turn: the stream arrives half on each, and half of each goes to the other. Where a tile's
// elements follow each other in the stream, or the host puts them in order, nothing moves.
void rearrangesStreams() {
  for (const bool to_host : {false, true}) {
    for (const bool by_host : {false, true}) {
      Model model(2);
      const Tensor rows = model.graph.addVariable(FLOAT, {8, 25}, "rows");
      for (unsigned row = 0; row < 8; ++row) model.graph.setTileMapping(rows[row], row % 2);
      const DataStream in = model.graph.addHostToDeviceFIFO("in", FLOAT, 200);
      const DataStream out = model.graph.addDeviceToHostFIFO("out", FLOAT, 200);
      Engine& engine = model.engine(to_host ? Copy(rows, out, by_host) : Copy(in, rows, by_host));
      std::vector<float> values(200);
      engine.connectStream(to_host ? "out" : "in", values.data(), values.data() + values.size());
      model.run();
      const ipu_model::Profile profile = model.profile();
      CHECK_EQUAL(profile.cycles.exchange, profile.streams[0].exchange.cycles);
      if (by_host) {
        CHECK_EQUAL(profile.cycles.exchange, 0U);
      } else {
        CHECK(profile.cycles.exchange > oneTransfer(50) && profile.cycles.exchange < oneTransfer(100) + 20);
        CHECK_EQUAL(profile.tiles[0].buffers, 400U);
      }
    }
  }
  Model model(2);
  const Tensor halves = model.graph.addVariable(FLOAT, {2, 100}, "halves");
  for (unsigned half = 0; half < 2; ++half) model.graph.setTileMapping(halves[half], half);
  std::vector<float> values(200);
  model.engine(Copy(model.graph.addHostToDeviceFIFO("in", FLOAT, 200), halves)).connectStream("in", values.data());
  model.run();
  CHECK_EQUAL(model.profile().cycles.exchange, 0U);
}

// Columns lie on one tile each, in a row there, though not in the variable.
void countsPiecesAsTheTilesHaveThem() {
  Model model(4);
  const Tensor table = model.graph.addVariable(FLOAT, {8, 3}, "table");
  for (unsigned i = 0; i < 3; ++i) model.graph.setTileMapping(table.slice(i, i + 1, 1), i);
  const Tensor out = model.variable(FLOAT, {3, 8}, "out", 3);
  model.run(Copy(table.transpose(), out));
  CHECK_EQUAL(model.profile().copies[0].exchange.messages, 3U);
  CHECK_EQUAL(model.profile().copies[0].exchange.bytes, 96U);
}

void sharesOneExchangeAmongCopies() {
  Model model(4);
  const Tensor a = model.variable(FLOAT, {10}, "a", 0);
  const Tensor b = model.variable(FLOAT, {10}, "b", 1);
  const Tensor c = model.variable(FLOAT, {10}, "c", 2);
  const Tensor d = model.variable(FLOAT, {10}, "d", 3);
  model.engine(Sequence({Copy(a, b, false, "first"), Sequence({Copy(c, d, false, "second")}), Copy(b, c)}));
  model.write("a", on_model::counting(10));
  model.run();
  CHECK(model.read("c", 10) == on_model::counting(10));
  const ipu_model::Profile profile = model.profile();
  CHECK_EQUAL(profile.copies.size(), 2U);
  CHECK_EQUAL(profile.copies[0].name, "first, second");
  CHECK_EQUAL(profile.copies[0].exchange.bytes, 80U);
  CHECK_EQUAL(profile.cycles.sync, 2 * ipu_model::ipuSyncCycles(chip()));
}

// Where part of a row comes from elsewhere, the part at home is sent to its own tile, so that they stand side by side.
void sendsToItselfWhatStandsBesideOthers() {
  Model model(2);
  const Tensor in = model.graph.addVariable(FLOAT, {50}, "in");
  model.graph.setTileMapping(in.slice(0, 20), 0);
  model.graph.setTileMapping(in.slice(20, 50), 1);
  const Tensor out = model.variable(FLOAT, {2, 50}, "out", 1);
  const ComputeSet set = model.graph.addComputeSet("set");
  for (unsigned i = 0; i < 2; ++i) {  // both read the same words, which come once
    model.graph.setTileMapping(model.graph.addVertex(set, "Scale<float>", {{"in", in}, {"out", out[i]}}), 1);
  }
  model.run(Execute(set));
  const std::int32_t route = std::max(ipu_model::arrivalCycles(chip(), 0, 1), ipu_model::arrivalCycles(chip(), 1, 1));
  const TileTraffic traffic[] = {{.tile = 0, .words_sent = 20, .fragments_sent = 1},
                                 {.tile = 1,
                                  .words_sent = 30,
                                  .words_received = 50,
                                  .fragments_sent = 1,
                                  .fragments_received = 2,
                                  .route_cycles = route}};
  ipu_model::ExchangeProfile exchange = model.profile().compute_sets[0].exchange;
  CHECK_EQUAL(exchange.cycles, ipu_model::exchangeCycles(chip(), traffic));
  CHECK_EQUAL(exchange.bytes, 200U);
  CHECK_EQUAL(exchange.messages, 2U);
  model.run(Copy(in, out[0]));
  exchange = model.profile().copies[0].exchange;
  CHECK_EQUAL(exchange.cycles, ipu_model::exchangeCycles(chip(), traffic));
}

void copiesOnATileWithoutAnExchange() {
  Model model(2);
  const Tensor a = model.variable(FLOAT, {8}, "a", 0), b = model.variable(FLOAT, {8}, "b", 0);
  const Tensor out = model.variable(FLOAT, {2, 16}, "out", 0);
  const ComputeSet set = model.graph.addComputeSet("set");
  for (unsigned i = 0; i < 2; ++i) {
    model.graph.setTileMapping(model.graph.addVertex(set, "Scale<float>", {{"in", concat(a, b)}, {"out", out[i]}}), 0);
  }
  model.run(Execute(set));
  CHECK_EQUAL(model.profile().cycles.exchange, ipu_model::tileCopyCycles(chip(), 64, 2));
  model.run(Copy(a, b));
  CHECK_EQUAL(model.profile().cycles.exchange, ipu_model::tileCopyCycles(chip(), 32, 1));
  CHECK_EQUAL(model.profile().cycles.sync, 0U);
}

// A row in another order than memory's is put together before it is read, or taken apart after it is written; once for
// all that read it. What only skips elements of other tiles is one piece.
void rearrangesOnATile() {
  Model model(2);
  const Tensor x = model.variable(FLOAT, {4, 4}, "x", 0), y = model.variable(FLOAT, {4, 4}, "y", 0);
  const Tensor apart = model.graph.addVariable(FLOAT, {2, 8}, "apart"), out = model.variable(FLOAT, {2, 16}, "out", 0);
  model.graph.setTileMapping(apart.slice(0, 4, 1), 0);
  model.graph.setTileMapping(apart.slice(4, 8, 1), 1);
  const auto cycles = [&](const Tensor& in, const Tensor& result, unsigned vertices) {
    const ComputeSet set = model.graph.addComputeSet("set");
    for (unsigned i = 0; i < vertices; ++i) {
      const auto vertex = model.graph.addVertex(
          set, "Scale<float>", {{"in", in}, {"out", result.flatten().slice(i * 16, i * 16 + in.numElements())}});
      model.graph.setTileMapping(vertex, 0);
    }
    model.run(Execute(set));
    return model.profile().cycles.exchange;
  };
  const auto copy = [](std::uint64_t words, std::uint64_t pieces) {
    return ipu_model::tileCopyCycles(chip(), words * 4, pieces);
  };
  CHECK_EQUAL(cycles(x.flatten(), out, 1), 0U);
  CHECK_EQUAL(cycles(x.transpose().flatten(), out, 2), copy(16, 16));
  CHECK_EQUAL(cycles(x.flatten(), y.transpose(), 1), copy(16, 16));
  CHECK_EQUAL(cycles(x.slice(0, 2, 1).flatten(), out, 1), copy(8, 4));
  CHECK_EQUAL(cycles(apart.slice(0, 4, 1).flatten(), out, 1), 0U);
}

void crossesLinksOnce() {
  Model model(4, 2);
  const Tensor in = model.variable(FLOAT, {64}, "in", 0);
  const ComputeSet set = model.graph.addComputeSet("set");
  for (unsigned tile : {4U, 5U, 6U}) {
    const Tensor out = model.graph.addVariable(FLOAT, {64}, "out");
    model.graph.setTileMapping(out, tile);
    model.graph.setTileMapping(model.graph.addVertex(set, "Scale<float>", {{"in", in}, {"out", out}}), tile);
  }
  model.run(Execute(set));
  const ipu_model::ComputeSetProfile profile = model.profile().compute_sets[0];
  CHECK_EQUAL(profile.exchange.link_bytes, 256U);
  CHECK_EQUAL(profile.sync_cycles, ipu_model::systemSyncCycles(chip(), 2));
  const std::uint64_t words[] = {0, 64, 0, 0};
  CHECK(profile.exchange.cycles >= ipu_model::linkCycles(chip(), words, 2));
}

void countsWhatVerticesCost() {
  Model model(2);
  const Tensor in = model.variable(FLOAT, {20}, "in", 0);
  const ComputeSet set = model.graph.addComputeSet("set");
  for (unsigned i = 0; i < 2; ++i) {
    const Tensor part = in.slice(i * 10, i * 10 + 10);
    model.graph.setTileMapping(model.graph.addVertex(set, "Scale<float>", {{"in", part}, {"out", part}}), 0);
  }
  model.engine(Repeat(5, Execute(set)));
  model.run();
  ipu_model::TileSchedule schedule(chip());
  schedule.addVertex(20);
  schedule.addVertex(20);
  const ipu_model::ComputeSetProfile profile = model.profile().compute_sets[0];
  CHECK_EQUAL(profile.executions, 5U);
  CHECK_EQUAL(profile.cycles, 5 * schedule.cycles());
  CHECK_EQUAL(profile.max, schedule.cycles());
  CHECK_EQUAL(profile.codelets[0].name, "Scale<float>");
  CHECK_EQUAL(profile.codelets[0].vertices, 2U);
  CHECK_EQUAL(profile.codelets[0].count, 10U);
  CHECK_EQUAL(profile.codelets[0].mean(), 120.0);
  CHECK_EQUAL(profile.codelets[0].max, 120U);
  CHECK_EQUAL(model.profile().tiles[0].cycles, profile.cycles);
  CHECK_EQUAL(model.profile().cycles.compute, profile.cycles);
  model.engine().resetExecutionProfile();
  model.engine().disableExecutionProfiling();
  model.run();
  CHECK_EQUAL(model.profile().cycles.total(), 0U);
}

void takesEstimatesAndReportsTheUnknown() {
  Model model(1);
  const Tensor left = model.variable(INT, {}, "left", 0);
  const Tensor more = model.variable(BOOL, {}, "more", 0);
  const ComputeSet set = model.graph.addComputeSet("set");
  const VertexRef vertex = model.graph.addVertex(set, "Countdown", {{"left", left}, {"more", more}});
  model.graph.setTileMapping(vertex, 0);
  model.run(Execute(set));
  CHECK((model.profile().unknown_codelets == std::vector<std::string>{"Countdown"}));
  CHECK_EQUAL(model.profile().codelets[0].unknown, 1U);
  std::ostringstream text;
  model.engine().printProfileSummary(text);
  CHECK(text.str().find("Countdown        (1 instances):              0, of unknown cost") != std::string::npos);
  model.graph.setPerfEstimate(vertex, 601);
  CHECK_EQUAL(model.graph.getPerfEstimate(vertex).cycles, 601U);
  model.run(Execute(set));
  CHECK(model.profile().unknown_codelets.empty());
  CHECK_EQUAL(model.profile().codelets[0].cycles, 6 * 601U);  // a worker issues every sixth cycle
  model.engine(Execute(set), {{"ipu_model.ignoreEstimates", "true"}}).run(0);
  CHECK_EQUAL(model.profile().codelets[0].unknown, 1U);
}

// An estimate of theirs is in tile cycles.
void reportsUnknownCostsOfAnyKindOfVertex() {
  for (const char* name : {"CountdownOfWorkers", "CountdownOfSupervisor"}) {
    Model model(1);
    const Tensor left = model.variable(INT, {}, "left", 0);
    const ComputeSet set = model.graph.addComputeSet("set");
    const VertexRef vertex = model.graph.addVertex(set, name, {{"left", left}});
    model.graph.setTileMapping(vertex, 0);
    model.run(Execute(set));
    CHECK((model.profile().unknown_codelets == std::vector<std::string>{name}));
    CHECK_EQUAL(model.profile().codelets[0].cycles, 0U);
    model.graph.setPerfEstimate(vertex, 601);
    model.run(Execute(set));
    CHECK(model.profile().unknown_codelets.empty());
    CHECK_EQUAL(model.profile().codelets[0].cycles, 601U);
  }
}

void givesTheSameForAnyThreads() {
  std::string first;
  for (const char* threads : {"1", "2", "5"}) {
    Model model(64);
    const Tensor a = model.graph.addVariable(FLOAT, {64, 30}, "a");
    for (unsigned tile = 0; tile < 64; ++tile) model.graph.setTileMapping(a[tile], tile);
    model.open(a, "a");
    const ComputeSet set = model.graph.addComputeSet("set");
    for (unsigned tile = 0; tile < 64; ++tile) {
      for (unsigned i = 0; i < 3; ++i) {
        const Tensor from = a[(tile + 1) % 64].slice(i * 10, i * 10 + tile % 10 + 1);
        const Tensor to = a[tile].slice(i * 10, i * 10 + tile % 10 + 1);
        model.graph.setTileMapping(
            model.graph.addVertex(set, "Scale<float>", {{"in", from}, {"out", to}, {"factor", 0.9F}}), tile);
      }
    }
    model.engine(Repeat(20, Execute(set)), {{"ipu_model.threads", threads}});
    model.write("a", on_model::counting(64 * 30));
    model.run();
    std::string all = toJson(model.profile());
    for (const float value : model.read("a", 64 * 30)) all += std::to_string(value) + " ";
    if (first.empty()) first = all;
    CHECK(all == first);
  }
}

void writesTheProfile() {
  Model model(2);
  const Tensor in = model.variable(FLOAT, {4}, "in", 0);
  model.run(model.one("Scale<float>", {{"in", in}, {"out", in}}, 0, "a \"set\"\n"));
  const std::string json = toJson(model.profile());
  CHECK(json.find(R"({"chip":"mk2","clock_hz":)") == 0);
  CHECK(json.find(R"("compute_sets":[{"name":"a \"set\"\u000a","position":0,"executions":1,"cycles":)") != json.npos);
  CHECK(json.find(R"("tiles":[{"cycles":)") != json.npos && json.back() == '}');
  CHECK(toJson(model.profile(), false).find("\"tiles\":[") == json.npos);
  std::ostringstream text;
  model.engine().printProfileSummary(text);
  CHECK(text.str().find("IPU Model (not measured on hardware): mk2\n\nTarget:\n") == 0);
  for (const char* part :
       {"  Number of IPUs:         1\n  Tiles per IPU:          2\n", "  Memory Per-Tile:        624.0 kB\n",
        "  Clock Speed (approx):   1,330.0 MHz\n", "  Number of edges:                   2\n",
        "    Including Gaps:         ", "  Total cycles:                                         122 (approx 0.1",
        "  Tile average compute cycles (including idle threads): 61.0 (50.0% of total)\n",
        "    Scale<float>        (1 instances):             84\n"}) {
    check::that(text.str().find(part) != std::string::npos, part, __FILE__, __LINE__, text.str());
  }
  CHECK(text.str().find("Compute sets (") == std::string::npos);
  model.engine().printProfileSummary(text, {{"showExecutionSteps", "true"}});
  CHECK(text.str().find(": 1, 122, 0, 1.00\n") != std::string::npos);
}

}  // namespace

int main() {
  return on_model::result([] {
    bringsInputsAndTakesOutputs();
    sendsAWordOnce();
    rearrangesStreams();
    countsPiecesAsTheTilesHaveThem();
    sharesOneExchangeAmongCopies();
    plansCopiesInTimeThatGrowsWithTheirNumber();
    sendsToItselfWhatStandsBesideOthers();
    copiesOnATileWithoutAnExchange();
    rearrangesOnATile();
    crossesLinksOnce();
    countsWhatVerticesCost();
    takesEstimatesAndReportsTheUnknown();
    reportsUnknownCostsOfAnyKindOfVertex();
    givesTheSameForAnyThreads();
    writesTheProfile();
  });
}
