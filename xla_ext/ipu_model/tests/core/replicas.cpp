// Graphs of several replicas: each with memory of its own, one program for all.
#include "core/on_model.hpp"

namespace {

using namespace poplar;
using namespace poplar::program;
using on_model::counting;
using on_model::Model;
using Floats = std::vector<float>;

constexpr unsigned kReplicas = 3;

Program scaled(Model& model, const Tensor& from, const Tensor& to, float factor) {
  return model.one("Scale<float>", {{"in", from}, {"out", to}, {"factor", factor}}, 1);
}

void runsEachOnItsOwnData() {
  Model model(2, kReplicas, kReplicas);
  CHECK_EQUAL(model.graph.getReplicationFactor(), kReplicas);
  CHECK_EQUAL(model.graph.getTarget().getNumTiles(), 2U);
  const Tensor in = model.variable(FLOAT, {2}, "in", 0);
  const Tensor out = model.variable(FLOAT, {2}, "out", 1);
  model.engine(scaled(model, in, out, 2));
  model.write("in", counting(6));
  model.run();
  CHECK((model.read("out", 6) == Floats{0, 2, 4, 6, 8, 10}));
  const ipu_model::Profile profile = model.profile();
  CHECK_EQUAL(profile.ipus, kReplicas);
  CHECK_EQUAL(profile.tiles.size(), 6U);
  for (std::size_t tile = 0; tile < 6; ++tile) CHECK_EQUAL(profile.tiles[tile].cycles > 0, tile % 2 == 1);
  CHECK_EQUAL(profile.compute_sets[0].executions, 1U);
  CHECK_EQUAL(profile.compute_sets[0].cycles, profile.tiles[1].cycles);  // all at once
}

void takesNoLongerThanOne() {
  std::uint64_t cycles[2];
  for (const unsigned replicas : {1U, kReplicas}) {
    Model model(2, replicas, replicas);
    const Tensor in = model.variable(FLOAT, {8}, "in", 0);
    const Tensor out = model.variable(FLOAT, {8}, "out", 1);
    model.engine(Repeat(5, Sequence({scaled(model, in, out, 2), Copy(out, in)})));
    model.write("in", Floats(8 * replicas, 1));
    model.run();
    CHECK(model.read("out", 8 * replicas) == Floats(8 * replicas, 32));
    cycles[replicas == 1 ? 0 : 1] = model.profile().cycles.total();
  }
  CHECK_EQUAL(cycles[0], cycles[1]);
}

void copiesAcrossReplicas() {
  Model model(2, kReplicas, kReplicas);
  const Tensor in = model.variable(FLOAT, {2}, "in", 0);
  const Tensor out = model.variable(FLOAT, {2}, "out", 1);
  model.engine(CrossReplicaCopy(in, out, {{0, 1}, {1, 2}, {2, 0}}));
  model.write("in", counting(6));
  model.run();
  CHECK((model.read("out", 6) == Floats{4, 5, 0, 1, 2, 3}));
  const ipu_model::Profile profile = model.profile();
  CHECK_EQUAL(profile.copies[0].exchange.link_bytes, 24U);
  // At least the latency of a hop, 250 ns of the chip's clock.
  CHECK(static_cast<double>(profile.cycles.exchange) > 250e-9 * profile.clock_hz);
}

// Both ways at once, in one exchange that takes no longer than one of them; what depends on another copy waits for it.
void sharesAnExchange() {
  const auto cyclesOf = [](bool both, bool dependent) {
    Model model(2, kReplicas, kReplicas);
    const Tensor in = model.variable(FLOAT, {512}, "in", 0), right = model.variable(FLOAT, {512}, "right", 1);
    const Tensor left = model.variable(FLOAT, {512}, "left", 1);
    Sequence program({CrossReplicaCopy(in.slice(0, 256), right.slice(0, 256), {{0, 1}})});
    const Tensor source = dependent ? right.slice(0, 256) : in.slice(256, 512);
    if (both) program.add(CrossReplicaCopy(source, left.slice(0, 256), {{1, 0}}));
    model.engine(program);
    model.write("in", counting(512 * kReplicas));
    model.run();
    CHECK_EQUAL(model.read("right", 512 * kReplicas)[512 + 7], 7.0F);
    if (both) CHECK_EQUAL(model.read("left", 512 * kReplicas)[7], dependent ? 7.0F : 512 + 256 + 7.0F);
    CHECK_EQUAL(model.profile().copies.size(), both && dependent ? 2U : 1U);
    return model.profile().cycles.total();
  };
  const std::uint64_t one = cyclesOf(false, false);
  CHECK_EQUAL(cyclesOf(true, false), one);
  CHECK(cyclesOf(true, true) > one * 3 / 2);
}

void swapsInPlace() {
  Model model(1, 2, 2);
  const Tensor a = model.variable(FLOAT, {2}, "a", 0);
  model.engine(CrossReplicaCopy(a, a.reverse(0), {{0, 1}, {1, 0}}));
  model.write("a", counting(4));
  model.run();
  CHECK((model.read("a", 4) == Floats{3, 2, 1, 0}));
}

void knowsItsNumber() {
  Model model(1, kReplicas, kReplicas);
  const Tensor number = model.graph.addReplicationIndexConstant();
  model.graph.setTileMapping(number, 0);
  const Tensor out = model.variable(UNSIGNED_INT, {1}, "out", 0);
  model.engine(Copy(number, out[0]));
  model.run();
  CHECK((model.read<unsigned>("out", 3) == std::vector<unsigned>{0, 1, 2}));
}

void loopsAndBranchesEachByItself() {
  Model model(1, kReplicas, kReplicas);
  const Tensor left = model.variable(INT, {}, "left", 0);
  const Tensor more = model.variable(BOOL, {}, "more", 0);
  const Tensor a = model.variable(FLOAT, {1}, "a", 0);
  const Tensor number = model.graph.addReplicationIndexConstant();
  model.graph.setTileMapping(number, 0);
  const Tensor other = model.variable(FLOAT, {1}, "other", 0);
  const auto add = [&] { return model.one("AddShared", {{"data", a}, {"other", other}}, 0); };
  const Program count = model.one("Countdown", {{"left", left}, {"more", more}}, 0);
  model.engine(Sequence({RepeatWhileTrue(count, more, add()), If(number, Sequence({add(), add()}), Sequence())}));
  model.write("left", std::vector<int>{1, 4, 2});
  model.write("a", Floats{0, 10, 20});
  model.write("other", Floats{1, 1, 1});
  model.run();
  CHECK((model.read("a", 3) == Floats{0, 15, 23}));
  CHECK((model.read<int>("left", 3) == std::vector<int>{0, 0, 0}));
}

// Who does not take a branch waits while the others do; together none waits.
void waitsWhileOthersBranch() {
  const auto profileOf = [](bool alone) {
    Model model(2, kReplicas, kReplicas);
    const Tensor in = model.variable(FLOAT, {64}, "in", 0), out = model.variable(FLOAT, {64}, "out", 1);
    const Tensor number = model.graph.addReplicationIndexConstant();
    model.graph.setTileMapping(number, 0);
    const Program work = Sequence({scaled(model, in, out, 2), Copy(out, in)});
    model.engine(alone ? Program(If(number, Sequence(), work)) : work);
    model.write("in", Floats(64 * kReplicas, 1));
    model.run();
    return model.profile();
  };
  const ipu_model::Profile together = profileOf(false), alone = profileOf(true);
  CHECK((together.waiting == std::vector<std::uint64_t>(kReplicas, 0)));
  CHECK_EQUAL(alone.cycles.total(), together.cycles.total());
  CHECK((alone.waiting == std::vector<std::uint64_t>{0, alone.cycles.total(), alone.cycles.total()}));
}

void waitsWhileOthersIterate() {
  Model model(1, 2, 2);
  const Tensor left = model.variable(INT, {}, "left", 0);
  const Tensor more = model.variable(BOOL, {}, "more", 0);
  const Tensor a = model.variable(FLOAT, {1}, "a", 0), other = model.variable(FLOAT, {1}, "other", 0);
  const Program count = model.one("Countdown", {{"left", left}, {"more", more}}, 0);
  model.engine(RepeatWhileTrue(count, more, model.one("AddShared", {{"data", a}, {"other", other}}, 0)));
  model.write("left", std::vector<int>{3, 1});
  model.run();
  const ipu_model::Profile profile = model.profile();
  CHECK_EQUAL(profile.waiting[0], 0U);
  CHECK(profile.waiting[1] > 0 && profile.waiting[1] < profile.cycles.total());
}

void streamsToEachOrToAll() {
  Model model(1, kReplicas, kReplicas);
  const Tensor own = model.variable(FLOAT, {2}, "own", 0), all = model.variable(FLOAT, {2}, "all", 0);
  const DataStream in = model.graph.addHostToDeviceFIFO("in", FLOAT, 2);
  const DataStream same = model.graph.addHostToDeviceFIFO("same", FLOAT, 2, ReplicatedStreamMode::BROADCAST);
  const DataStream out = model.graph.addDeviceToHostFIFO("out", FLOAT, 2);
  Engine& engine = model.engine(Sequence({Copy(in, own), Copy(same, all), Copy(own, out)}));
  Floats from = counting(6), one = {7, 8}, to(6);
  engine.connectStream("in", from.data(), from.data() + 6);
  engine.connectStream("same", one.data(), one.data() + 2);
  engine.connectStream("out", to.data(), to.data() + 6);
  model.run();
  CHECK(to == from);
  CHECK((model.read("all", 6) == Floats{7, 8, 7, 8, 7, 8}));
}

void refusesWhatReplicasCannotDo() {
  CHECK_THROWS(Model(1, 4, 3), "Graph: `replicas` must divide the 4 IPUs of the target, got 3");
  Model model(1, 2, 2);
  const Tensor a = model.variable(FLOAT, {1}, "a", 0);
  const Tensor b = model.variable(FLOAT, {1}, "b", 0);
  CHECK_THROWS(model.engine(CrossReplicaCopy(a, b, {{0, 1}, {1, 1}})), "at most once on either side, got 1 to 1");
  CHECK_THROWS(model.engine(CrossReplicaCopy(a, b, {{0, 2}})), "got 0 to 2");
  const Tensor number = model.graph.addReplicationIndexConstant();
  model.graph.setTileMapping(number, 0);
  model.engine(If(number, CrossReplicaCopy(a, b, {{0, 1}}), Sequence()));
  CHECK_THROWS(model.run(), "CrossReplicaCopy: `replicas` must all reach it, got 1 of 2");
  model.engine(Copy(a, b));
  CHECK_THROWS(model.write("a", Floats{1}), "`bufEnd` must lie 8 bytes after buf");
}

void everything() {
  runsEachOnItsOwnData();
  takesNoLongerThanOne();
  copiesAcrossReplicas();
  sharesAnExchange();
  swapsInPlace();
  knowsItsNumber();
  loopsAndBranchesEachByItself();
  waitsWhileOthersBranch();
  waitsWhileOthersIterate();
  streamsToEachOrToAll();
  refusesWhatReplicasCannotDo();
}

}  // namespace

int main() { return on_model::result(everything); }
