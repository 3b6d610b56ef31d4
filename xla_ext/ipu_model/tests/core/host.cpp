// Streams, callbacks, host functions, remote buffers and printing.
#include <sstream>

#include "core/on_model.hpp"

namespace {

using namespace poplar;
using namespace poplar::program;
using on_model::counting;
using on_model::Model;
using Floats = std::vector<float>;

void streamsThroughRings() {
  Model model(2);
  const Tensor a = model.variable(FLOAT, {2}, "a", 0);
  const Tensor b = model.variable(FLOAT, {2}, "b", 1);
  const DataStream in = model.graph.addHostToDeviceFIFO("in", FLOAT, 2);
  const DataStream out = model.graph.addDeviceToHostFIFO("out", FLOAT, 2);
  const Program step = model.one("Scale<float>", {{"in", a}, {"out", b}, {"factor", 2.0F}}, 1);
  Engine& engine = model.engine(Repeat(3, Sequence({Copy(in, a), step, Copy(b, out)})));
  Floats from = counting(4), to(6);
  engine.connectStream(in, from.data(), from.data() + 4);
  engine.connectStream("out", to.data(), to.data() + 6);
  model.run();
  CHECK((to == Floats{0, 2, 4, 6, 0, 2}));
  CHECK((engine.listStreams() == std::vector<std::string>{"in", "out"}));
  const ipu_model::Profile profile = model.profile();
  CHECK_EQUAL(profile.streams.size(), 2U);
  CHECK_EQUAL(profile.streams[0].executions, 3U);
  CHECK_EQUAL(profile.streams[0].exchange.bytes, 24U);
  CHECK_EQUAL(profile.cycles.host, profile.streams[0].host_cycles + profile.streams[1].host_cycles);
  CHECK(profile.cycles.host > 0);
}

// Copies in a row that go one way are one request: two handshakes and a sync for all.
void joinsRequestsInARow() {
  const auto hostCyclesOf = [](bool apart) {
    Model model(2);
    const Tensor a = model.variable(FLOAT, {2}, "a", 0), b = model.variable(FLOAT, {2}, "b", 1);
    const DataStream first = model.graph.addHostToDeviceFIFO("first", FLOAT, 2);
    const DataStream second = model.graph.addHostToDeviceFIFO("second", FLOAT, 2);
    Sequence program({Copy(first, a)});
    if (apart) program.add(model.one("Scale<float>", {{"in", a}, {"out", a}, {"factor", 2.0F}}, 0));
    program.add(Copy(second, b));
    Engine& engine = model.engine(program);
    Floats values = counting(2);
    engine.connectStream(first, values.data(), values.data() + 2);
    engine.connectStream(second, values.data(), values.data() + 2);
    model.run();
    const ipu_model::Profile profile = model.profile();
    CHECK_EQUAL(profile.streams[1].sync_cycles > 0, apart);
    return profile.cycles.host;
  };
  CHECK_NEAR(static_cast<double>(hostCyclesOf(true)) / static_cast<double>(hostCyclesOf(false)), 2.0, 0.01);
}

// Every cycle is that of a compute set, a copy or a stream, and each of these knows where it stands in the program.
void tellsItsStepsInOrder() {
  Model model(2, 2);
  const Tensor a = model.variable(FLOAT, {64}, "a", 0);
  const Tensor b = model.variable(FLOAT, {64}, "b", 3);
  const DataStream in = model.graph.addHostToDeviceFIFO("in", FLOAT, 64);
  const DataStream out = model.graph.addDeviceToHostFIFO("out", FLOAT, 64);
  const Program last = model.one("Scale<float>", {{"in", a}, {"out", b}, {"factor", 2.0F}}, 3, "last");
  const Program looped = model.one("Scale<float>", {{"in", a}, {"out", a}, {"factor", 0.5F}}, 0, "looped");
  const Program body = Sequence({looped, Copy(a, b, false, "copied")});
  Engine& engine = model.engine(Sequence({Copy(in, a), Repeat(3, body), last, body, Copy(b, out)}));
  Floats from = counting(64), to(64);
  engine.connectStream(in, from.data(), from.data() + 64);
  engine.connectStream(out, to.data(), to.data() + 64);
  model.run();
  const ipu_model::Profile profile = model.profile();
  std::vector<std::string> names(6);
  ipu_model::PhaseCycles sum;
  const auto add = [&](const auto& step) {
    names.at(step.position) = step.name;
    sum.exchange += step.exchange.cycles;
    sum.sync += step.sync_cycles;
  };
  for (const auto& compute_set : profile.compute_sets) {
    add(compute_set);
    sum.compute += compute_set.cycles;
  }
  for (const auto& copy : profile.copies) add(copy);
  for (const auto& stream : profile.streams) {
    add(stream);
    sum.host += stream.host_cycles;
  }
  CHECK((names == std::vector<std::string>{"in", "looped", "copied", "last", "copied", "out"}));
  CHECK_EQUAL(sum.compute, profile.cycles.compute);
  CHECK_EQUAL(sum.exchange, profile.cycles.exchange);
  CHECK_EQUAL(sum.sync, profile.cycles.sync);
  CHECK_EQUAL(sum.host, profile.cycles.host);
}

void drawsItsGraph() {
  Model model(1);
  const Tensor a = model.variable(FLOAT, {2}, "a", 0);
  const Tensor b = model.variable(FLOAT, {2}, "a \"b\"", 0);
  model.one("AddShared", {{"data", a}, {"other", b}}, 0, "sum");
  std::ostringstream vertices, sets;
  model.graph.outputVertexGraph(vertices, std::vector<Program>{Sequence()});
  model.graph.outputComputeGraph(sets);
  const std::string variables =
      "digraph {\n"
      "  variable0 [shape=box, label=\"a: float[2]\"];\n"
      "  variable1 [shape=box, label=\"a \\\"b\\\": float[2]\"];\n";
  const auto edges = [](const std::string& node) {
    return "  variable0 -> " + node + ";\n  " + node + " -> variable0;\n  variable1 -> " + node + ";\n}\n";
  };
  CHECK_EQUAL(vertices.str(), variables + "  vertex0 [label=\"AddShared in sum\"];\n" + edges("vertex0"));
  CHECK_EQUAL(sets.str(), variables + "  computeSet0 [label=\"sum\"];\n" + edges("computeSet0"));
}

class Count : public StreamCallback {
 public:
  explicit Count(float* completed) : completed_(completed) {}
  // The second value is ready before it is asked for.
  Result prefetch(void* data) override {
    if (next_ != 1) return Result::NotAvailable;
    *static_cast<float*>(data) = 20;
    ++next_;
    return Result::Success;
  }
  void fetch(void* data) override { *static_cast<float*>(data) = ++next_; }
  void complete() override { ++*completed_; }

 private:
  float next_ = 0;
  float* completed_;
};

void streamsThroughCallbacks() {
  Model model(1);
  const Tensor a = model.variable(FLOAT, {3}, "a", 0);
  const DataStream in = model.graph.addHostToDeviceFIFO("in", FLOAT, 1);
  const DataStream out = model.graph.addDeviceToHostFIFO("out", FLOAT, 3);
  Engine& engine = model.engine(Sequence({Copy(in, a), Copy(a, out)}));
  float completed = 0;
  Floats got;
  engine.connectStreamToCallback("in", std::make_unique<Count>(&completed));
  engine.connectStreamToCallback(out, [&](void* data) {
    const auto* values = static_cast<const float*>(data);
    got.insert(got.end(), values, values + 3);
  });
  model.run();
  CHECK((got == Floats{1, 20, 3}));
  CHECK_EQUAL(completed, 3.0F);
}

void callsTheHost() {
  Model model(1);
  const Tensor a = model.variable(FLOAT, {2}, "a", 0);
  const Tensor b = model.variable(FLOAT, {1}, "b", 0);
  const HostFunction sum = model.graph.addHostFunction("sum", {FLOAT}, {2}, {FLOAT}, {1});
  Engine& engine = model.engine(Call(sum, {a}, {b}));
  CHECK_THROWS(model.run(), "`sum` must be connected");
  engine.connectHostFunction("sum", 0, [](ArrayRef<const void*> inputs, ArrayRef<void*> outputs) {
    const auto* values = static_cast<const float*>(inputs[0]);
    *static_cast<float*>(outputs[0]) = values[0] + values[1];
  });
  model.write("a", Floats{3, 4});
  model.run();
  CHECK_EQUAL(model.read("b", 1)[0], 7.0F);
}

void keepsRowsInRemoteBuffers() {
  Model model(1);
  const Tensor a = model.variable(FLOAT, {2, 3}, "a", 0);
  const Tensor b = model.variable(FLOAT, {2, 3}, "b", 0);
  const Tensor rows = model.variable(UNSIGNED_INT, {2}, "rows", 0);
  const RemoteBuffer buffer = model.graph.addRemoteBuffer("buffer", FLOAT, 3, 4);
  Engine& engine = model.engine(Sequence({Copy(a, buffer, rows), Copy(buffer, b.slice(0, 1))}));
  Floats row(3, 9.0F);
  engine.copyToRemoteBuffer(row.data(), "buffer", 0);
  model.write("a", counting(6));
  model.write("rows", std::vector<unsigned>{3, 1});
  model.run();
  engine.copyFromRemoteBuffer("buffer", row.data(), 1);
  CHECK((row == Floats{3, 4, 5}));
  CHECK_EQUAL(model.read("b", 6)[2], 9.0F);
  model.write("rows", std::vector<unsigned>{0, 4});
  CHECK_THROWS(model.run(), "`offset` must be a repeat of remote buffer buffer, got 4");
  CHECK_THROWS(model.engine(Copy(a, buffer)), "`buffer` must have rows that fit float{2,3} of a");
}

void prints() {
  Model model(1);
  const Tensor a = model.variable(FLOAT, {2, 2}, "a", 0);
  const Tensor flag = model.variable(BOOL, {}, "flag", 0);
  std::ostringstream text;
  Engine& engine = model.engine(Sequence({PrintTensor("title", a), PrintTensor(flag)}));
  engine.setPrintStream(text);
  model.write("a", counting(4, 0.5F));
  model.run();
  CHECK_EQUAL(text.str(), "title: [[0.5000000 1.5000000]\n [2.5000000 3.5000000]]\nflag: 0\n");
}

std::string printed(const std::vector<float>& values, const PrintTensorFmt& format) {
  Model model(1);
  const Tensor a = model.variable(FLOAT, {values.size()}, "a", 0);
  Engine& engine = model.engine(PrintTensor("a", a, format));
  std::ostringstream text;
  engine.setPrintStream(text);
  model.write("a", values);
  model.run();
  return text.str();
}

void printsAsTheFormatSays() {
  using Format = PrintTensorFmt::FloatFormat;
  CHECK_EQUAL(printed({1, -2.5F, 1000}, {}), "a: [   1.0000   -2.5000 1000.0000]\n");
  CHECK_EQUAL(printed({1e-6F, 0}, {}), "a: [1.0000000e-06 0.0000000e+00]\n");
  CHECK_EQUAL(printed({0.5F, 10}, {1000, 3, 75, 4, Format::Fixed, ',', '(', ')'}), "a: ( 0.50,10.00)\n");
  CHECK_EQUAL(printed({0.5F, 10}, {1000, 3, 75, 0}), "a: [0.5 10]\n");
  CHECK_EQUAL(printed(counting(9), {4, 2, 75, 2}), "a: [0.0 1.0 ... 7.0 8.0]\n");
  CHECK_EQUAL(printed(counting(5), {1000, 3, 12, 2}), "a: [0.0 1.0 2.0\n 3.0 4.0]\n");
  CHECK_EQUAL(printed({NAN, INFINITY, 1}, {}), "a: [      nan       inf 1.0000000]\n");
}

void setsInitialValues() {
  Model model(1);
  const Tensor a = model.variable(FLOAT, {3}, "a", 0);
  const Tensor h = model.variable(HALF, {2}, "h", 0);
  model.graph.setInitialValue(a, ArrayRef<float>({1, 2, 3}));
  model.graph.setInitialValue(a.slice(1, 2), 7.0);
  model.graph.setInitialValueHalf(h, ArrayRef<std::uint16_t>({0x3c00, 0xc000}));
  model.engine(Sequence());
  CHECK((model.read("a", 3) == Floats{1, 7, 3}));
  CHECK((model.read<std::uint16_t>("h", 2) == std::vector<std::uint16_t>{0x3c00, 0xc000}));
}

}  // namespace

int main() {
  drawsItsGraph();
  return on_model::result([] {
    streamsThroughRings();
    joinsRequestsInARow();
    tellsItsStepsInOrder();
    streamsThroughCallbacks();
    callsTheHost();
    keepsRowsInRemoteBuffers();
    prints();
    printsAsTheFormatSays();
    setsInitialValues();
  });
}
