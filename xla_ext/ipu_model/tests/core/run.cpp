// Programs on the model: vertices, copies and control flow, against the expected results.
#include <cfenv>
#include <poplar/CycleCount.hpp>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "core/on_model.hpp"

namespace {

using namespace poplar;
using namespace poplar::program;
using on_model::counting;
using on_model::Model;
using Floats = std::vector<float>;

void runsOneVertex() {
  Model model(2);
  const Tensor in = model.variable(FLOAT, {4}, "in", 0);
  const Tensor out = model.variable(FLOAT, {4}, "out", 1);
  model.engine(model.one("Scale<float>", {{"in", in}, {"out", out}, {"factor", 3.0F}}, 0));
  model.write("in", counting(4));
  model.run();
  CHECK((model.read("out", 4) == Floats{0, 3, 6, 9}));
}

void sharesWorkAmongWorkers() {
  Model model(1);
  const Tensor a = model.variable(FLOAT, {13}, "a", 0);
  const Tensor b = model.variable(FLOAT, {13}, "b", 0);
  model.engine(Repeat(3, model.one("AddShared", {{"data", a}, {"other", b}}, 0)));
  model.write("a", counting(13));
  model.write("b", Floats(13, 10));
  model.run();
  CHECK(model.read("a", 13) == counting(13, 30.0F));
}

void connectsRowsStateAndScalars() {
  Model model(3);
  const Tensor table = model.variable(FLOAT, {3, 2}, "table", 2);
  const Tensor sums = model.variable(FLOAT, {3}, "sums", 0);
  const Tensor calls = model.variable(UNSIGNED_INT, {}, "calls", 0);
  const ComputeSet set = model.graph.addComputeSet();
  const VertexRef vertex = model.graph.addVertex(set, "RowSums", {{"rows", table.transpose().transpose()}});
  model.graph.connect(vertex["sums"], sums);
  model.graph.connect(vertex["calls"], calls);
  model.graph.setInitialValue(vertex["weights"], std::vector<float>{1, 10, 100});
  model.graph.setTileMapping(vertex, 1);
  model.engine(Sequence({Execute(set), Execute(set)}));
  model.write("table", counting(6));
  model.run();
  CHECK((model.read("sums", 3) == Floats{1, 50, 900}));
  CHECK_EQUAL(model.read<unsigned>("calls", 1)[0], 2U);
  model.run();
  CHECK_EQUAL(model.read<unsigned>("calls", 1)[0], 4U);
}

// A view in many pieces, of which the vertex sees a row.
void gathersAndScattersViews() {
  Model model(2);
  const Tensor in = model.variable(FLOAT, {3, 4}, "in", 0);
  const Tensor out = model.variable(FLOAT, {4, 3}, "out", 1);
  model.engine(model.one("Scale<float>",
                         {{"in", in.transpose().flatten()}, {"out", out.reverse(0).flatten()}, {"factor", 1.0F}}, 0));
  model.write("in", counting(12));
  model.run();
  CHECK((model.read("out", 12) == Floats{3, 7, 11, 2, 6, 10, 1, 5, 9, 0, 4, 8}));
}

// Bulk-synchronous: a vertex reads what its input was before the compute set, whoever writes it meanwhile.
void readsWhatWasBefore() {
  Model model(2);
  const Tensor a = model.variable(FLOAT, {2}, "a", 0);
  const Tensor b = model.variable(FLOAT, {2}, "b", 1);
  const ComputeSet set = model.graph.addComputeSet("swap");
  model.graph.setTileMapping(model.graph.addVertex(set, "Scale<float>", {{"in", a}, {"out", b}}), 0);
  model.graph.setTileMapping(model.graph.addVertex(set, "Scale<float>", {{"in", b}, {"out", a}}), 1);
  model.engine(Repeat(3, Execute(set)));
  model.write("a", Floats{1, 2});
  model.write("b", Floats{3, 4});
  model.run();
  CHECK((model.read("a", 2) == Floats{3, 4}));
  CHECK((model.read("b", 2) == Floats{1, 2}));
}

void copiesThroughViews() {
  Model model(4);
  const Tensor in = model.variable(FLOAT, {2, 3}, "in", 3);
  const Tensor out = model.graph.addVariable(FLOAT, {3, 2}, VariableMappingMethod::LINEAR, "out");
  model.open(out, "out");
  const Tensor wide = model.variable(FLOAT, {2, 6}, "wide", 1);
  model.engine(Sequence({Copy(in.transpose(), out), Copy(in.broadcast(2, 1), wide),
                         Copy(wide.slice(0, 1), wide.slice(1, 2)), Copy(in.slice(0, 2, 1), in.slice(1, 3, 1))}));
  model.write("in", counting(6));
  model.run();
  CHECK((model.read("out", 6) == Floats{0, 3, 1, 4, 2, 5}));
  CHECK((model.read("wide", 12) == Floats{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  // Both sides overlap: all is read before anything is written.
  CHECK((model.read("in", 6) == Floats{0, 0, 1, 3, 3, 4}));
}

void takesTheRightBranch() {
  Model model(1);
  const Tensor left = model.variable(INT, {}, "left", 0);
  const Tensor more = model.variable(BOOL, {}, "more", 0);
  const Tensor n = model.variable(FLOAT, {1}, "n", 0);
  const Tensor one = model.graph.addConstant(FLOAT, {1}, 1.0F);
  const Tensor two = model.graph.addConstant(FLOAT, {1}, 2.0F);
  model.graph.setTileMapping(one, 0);
  model.graph.setTileMapping(two, 0);
  const Program down = model.one("Countdown", {{"left", left}, {"more", more}}, 0);
  const Program add = model.one("AddShared", {{"data", n}, {"other", one}}, 0);
  const Function add_two = model.graph.addFunction(model.one("AddShared", {{"data", n}, {"other", two}}, 0));
  Switch by_value(left);
  by_value.add(0, Call(add_two)).add(7, add);
  model.engine(Sequence({RepeatWhileTrue(down, more, add), by_value, If(more, add, Call(add_two))}));
  model.write("left", std::vector<int>{5});
  model.run();
  CHECK_EQUAL(model.read("n", 1)[0], 4 + 2 + 2);
}

void countsItsOwnCycles() {
  Model model(2);
  const Tensor a = model.variable(FLOAT, {12}, "a", 0);
  const Tensor b = model.variable(FLOAT, {12}, "b", 0);
  Sequence program({model.one("AddShared", {{"data", a}, {"other", b}}, 0)});
  const Tensor cycles = cycleCount(model.graph, program, 0, SyncType::INTERNAL);
  model.graph.createHostRead("cycles", cycles);
  model.run(program);
  CHECK_EQUAL(model.read<unsigned>("cycles", 2)[0], model.profile().cycles.total());
}

// As programs for older versions of Poplar are written.
void takesOlderNames() {
  Model model(1);
  const Tensor a = model.variable(FLOAT, {12}, "a", 0), b = model.variable(FLOAT, {12}, "b", 0);
  const ComputeSet set = model.graph.addComputeSet("set");
  const VertexRef vertex = model.graph.addVertex(set, "AddShared", {{"data", a}, {"other", b}});
  model.graph.setTileMapping(vertex, 0);
  const std::uint64_t before = model.graph.getCycleEstimate(vertex);
  model.graph.setCycleEstimate(vertex, 100);
  CHECK(before == 0 && model.graph.getPerfEstimate(vertex).cycles == 100);
  Sequence program({Execute(set)});
  model.graph.createHostRead("cycles", cycleCount(model.graph, program, 0, "timer"));
  model.run(program);
  CHECK_EQUAL(model.read<unsigned>("cycles", 2)[0], model.profile().cycles.total());
}

// As some threads of XLA compute, and with another direction of rounding.
void takeOtherModes() {
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // subnormal numbers are 0: results (bit 15) and operands (bit 6)
#endif
}

// Whatever the modes of the thread that calls, and of the one that started the engine's threads.
void roundsAsTilesDo() {
  constexpr unsigned kTiles = 256;  // enough vertices for several threads
  constexpr float kSubnormal = 0x1p-140F, kRoundedUp = 1 + 0x1p-23F;
  for (const char* threads : {"1", "3"}) {
    Model model(kTiles);
    const Tensor in = model.graph.addVariable(FLOAT, {kTiles, 2}, "in");
    const Tensor out = model.graph.addVariable(FLOAT, {kTiles, 2}, "out");
    model.open(in, "in");
    model.open(out, "out");
    const ComputeSet set = model.graph.addComputeSet("scale");
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      const VertexRef vertex = model.graph.addVertex(set, "Scale<float>", {{"in", in[tile]}, {"out", out[tile]}});
      model.graph.setInitialValue(vertex["factor"], kRoundedUp);
      model.graph.setTileMapping(vertex, tile);
      model.graph.setTileMapping(in[tile], tile);
      model.graph.setTileMapping(out[tile], tile);
    }
    Floats values, expected;
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      values.insert(values.end(), {kSubnormal, kRoundedUp});
      expected.insert(expected.end(), {kSubnormal, 1 + 0x1p-22F});
    }
    std::fenv_t before;
    std::fegetenv(&before);
    takeOtherModes();
    model.engine(Execute(set), {{"ipu_model.threads", threads}});
    model.write("in", values);
    for (unsigned call = 0; call < 3; ++call) {
      model.run();
      CHECK(model.read("out", expected.size()) == expected);
    }
    const bool is_restored = std::fegetround() == FE_UPWARD;
    std::fesetenv(&before);
    CHECK(is_restored);
  }
}

void failsWhenTold() {
  Model model(1);
  const Tensor flag = model.variable(BOOL, {}, "flag", 0);
  model.engine(AbortOnCondition(flag, "too bad"));
  model.run();
  model.write("flag", std::vector<char>{1});
  CHECK_THROWS(model.run(), "too bad");
}

}  // namespace

int main() {
  return on_model::result([] {
    runsOneVertex();
    sharesWorkAmongWorkers();
    connectsRowsStateAndScalars();
    gathersAndScattersViews();
    readsWhatWasBefore();
    copiesThroughViews();
    takesTheRightBranch();
    countsItsOwnCycles();
    takesOlderNames();
    roundsAsTilesDo();
    failsWhenTold();
  });
}
