// Every hardware rule that the model enforces, with its error message.
#include <poplar/DeviceManager.hpp>
#include <sstream>

#include "core/on_model.hpp"

namespace {

using namespace poplar;
using namespace poplar::program;
using on_model::Model;

// What running the program throws, whole.
std::string refusal(Model& model, const Program& program) {
  return check::messageOf([&] { model.run(program); });
}

void everythingLiesOnTiles() {
  Model model(2);
  const Tensor in = model.variable(FLOAT, {4}, "in", 0);
  const Tensor out = model.graph.addVariable(FLOAT, {4}, "homeless");
  model.graph.setTileMapping(out.slice(0, 3), 1);
  CHECK_EQUAL(refusal(model, Copy(in, out)),
              "Copy: `homeless` must lie on tiles, got no mapping for element 3 of 4. Call Graph::setTileMapping.");
  CHECK_THROWS(model.run(model.one("Scale<float>", {{"in", in}, {"out", out}}, 0)), "`homeless` must lie on tiles");
  const ComputeSet set = model.graph.addComputeSet("set");
  model.graph.addVertex(set, "Scale<float>", {{"in", in}, {"out", in}});
  CHECK_EQUAL(refusal(model, Execute(set)),
              "Execute: `Scale<float>` of set must lie on a tile, got a vertex without. Call Graph::setTileMapping.");
  CHECK_THROWS(model.graph.setTileMapping(out, 2), "`tile` must be below 2, got 2");
  CHECK_THROWS(model.graph.getTileMapping(out), "must be mapped to tiles");
  CHECK_EQUAL(model.graph.getTileMapping(out, false)[1].size(), 1U);
}

void oneWriterForEachElement() {
  Model model(2);
  const Tensor in = model.variable(FLOAT, {4}, "in", 0);
  const Tensor out = model.variable(FLOAT, {6}, "out", 0);
  const ComputeSet set = model.graph.addComputeSet("race");
  for (unsigned tile = 0; tile < 2; ++tile) {
    const Tensor part = out.slice(tile * 2, tile * 2 + 4);
    model.graph.setTileMapping(model.graph.addVertex(set, "Scale<float>", {{"in", in}, {"out", part}}), tile);
  }
  CHECK_EQUAL(refusal(model, Execute(set)),
              "Execute: `out` must have one writer for each element in race, got Scale<float>.out on tile 0 and "
              "Scale<float>.out on tile 1 for element 2. Write to different elements, or in different compute sets.");
  // One vertex may not write an element twice either; side by side, and in two compute sets, all may.
  const ComputeSet twice = model.graph.addComputeSet("twice");
  const VertexRef sums = model.graph.addVertex(twice, "RowSums", {{"rows", in.expand({0})}, {"sums", out.slice(0, 1)}});
  model.graph.connect(sums["calls"], out[0].reinterpret(UNSIGNED_INT));
  model.graph.setInitialValue(sums["weights"], std::vector<float>{1});
  model.graph.setTileMapping(sums, 0);
  CHECK_THROWS(model.run(Execute(twice)), "got RowSums.sums on tile 0 and RowSums.calls on tile 0 for element 0");
  const Program first = model.one("Scale<float>", {{"in", in}, {"out", out.slice(0, 4)}}, 0);
  const Program second = model.one("Scale<float>", {{"in", in}, {"out", out.slice(2, 6)}}, 1);
  CHECK_EQUAL(refusal(model, Sequence({first, second})), "");
}

void writesOnlyWhatCanBeWritten() {
  Model model(1);
  const Tensor in = model.variable(FLOAT, {4}, "in", 0);
  const Tensor constant = model.graph.addConstant(FLOAT, {4}, 1.0F);
  model.graph.setTileMapping(constant, 0);
  CHECK_THROWS(Copy(in, constant), "`dst` must hold each element once and no constants");
  CHECK_THROWS(Copy(in, in.slice(0, 1).broadcast(4, 0)), "`dst` must hold each element once");
  CHECK_THROWS(Copy(in, in.slice(0, 2)), "`dst` must have as many elements");
  CHECK_THROWS(model.one("Scale<float>", {{"in", in}, {"out", constant}}, 0),
               "`Scale<float>.out` must be connected to elements that can be written");
  CHECK_THROWS(model.graph.createHostWrite("constant", constant), "`tensor` must hold each element once");
}

void edgesFitTheirFields() {
  Model model(1);
  const Tensor in = model.variable(FLOAT, {2, 2}, "in", 0);
  const Tensor n = model.variable(INT, {4}, "n", 0);
  const ComputeSet set = model.graph.addComputeSet("set");
  const VertexRef vertex = model.graph.addVertex(set, "Scale<float>");
  model.graph.setTileMapping(vertex, 0);
  CHECK_THROWS(model.graph.connect(vertex["in"], in), "`Scale<float>.in` must be connected to a tensor of rank 1");
  CHECK_THROWS(model.graph.connect(vertex["in"], n), "`Scale<float>.in` must be connected to a tensor of float");
  CHECK_THROWS(vertex["inn"], "`field` must be a field of Scale<float>, got \"inn\". It has: in, out, factor");
  CHECK_EQUAL(check::messageOf([&] { model.graph.addVertex(set, "Scale<double>"); }),
              "addVertex: `vertexType` must be a class of a codelet file of this graph, got \"Scale<double>\". Call "
              "addCodelets with its source, or mind the template arguments.");
  model.graph.connect(vertex["in"], in.flatten());
  CHECK_THROWS(model.run(Execute(set)), "`out` of Scale<float> on tile 0 must be connected, got no tensor");
  const VertexRef sums = model.graph.addVertex(set, "RowSums");
  CHECK_THROWS(model.graph.connect(sums["rows"], in.flatten()), "must be connected to a tensor of rank 2");
  CHECK_THROWS(model.graph.connect(sums["calls"], in), "must be connected to one element");
}

// Those of snnjax.gp are there from the start; a codelet of the program's own with that name comes before it.
void codeletsOfTheModelAreKnown() {
  Graph graph(on_model::device(1));
  const ComputeSet set = graph.addComputeSet("set");
  CHECK_EQUAL(check::messageOf([&] { graph.addVertex(set, "snnjax::LoadBlock<float>"); }), "");
  std::stringstream own(
      "#include <poplar/Vertex.hpp>\nnamespace snnjax { template <typename T> struct LoadBlock : poplar::Vertex {\n"
      "poplar::Output<T> own; void compute() {} }; template struct LoadBlock<float>; }");
  graph.addCodelets(own);
  CHECK_THROWS(graph.addVertex(set, "snnjax::LoadBlock<float>")["none"], "It has: own.");
}

void tilesHaveSoMuchMemory() {
  Model model(2);
  const std::size_t bytes = IPUModel("ipu2").memoryBytesPerTile;
  const Tensor small = model.variable(FLOAT, {1000}, "small", 1);
  const Tensor large = model.variable(FLOAT, {bytes / sizeof(float)}, "large", 1);
  const Sequence nothing;
  CHECK_EQUAL(
      refusal(model, nothing),
      "Engine: `graph` must fit in 638976 bytes on each tile, got 642976 on tile 1 (variables 642976, vertices "
      "0, code 0, exchange code 0, exchange buffers 0, stacks 0; the largest: large 638976, small 4000). 1 of 2 tiles "
      "hold too much: spread the "
      "largest over more tiles, or use more IPUs.");
  model.engine(nothing, {{"debug.allowOutOfMemory", "true"}});
  CHECK_EQUAL(model.profile().tiles[1].memory(), bytes + 4000);
}

// The phase with most code and the one with the largest buffers, of the tile that holds too much.
void largestExchangesAreNamed() {
  Model model(2);
  const std::size_t bytes = IPUModel("ipu2").memoryBytesPerTile;
  model.variable(FLOAT, {bytes / sizeof(float)}, "large", 1);
  const Tensor in = model.variable(FLOAT, {300}, "in", 0), out = model.variable(FLOAT, {100}, "out", 1);
  Sequence program;
  program.add(model.one("Scale<float>", {{"in", in.slice(0, 100)}, {"out", out}}, 1, "whole"));
  program.add(
      model.one("Scale<float>",
                {{"in", concat({in.slice(0, 20), in.slice(100, 120), in.slice(200, 220)})}, {"out", out.slice(0, 60)}},
                1, "parts"));
  const std::string message = refusal(model, program);
  const std::string expected = "exchange code 48, 36 of it for `parts`, exchange buffers 400 for `whole`, stacks 6144;";
  check::that(message.find(expected) != message.npos, "names the phases", __FILE__, __LINE__, message);
}

// Six workers, on tiles that have vertices.
void stacksTakeMemory() {
  Model model(2);
  const Tensor in = model.variable(FLOAT, {4}, "in", 0), out = model.variable(FLOAT, {4}, "out", 0);
  const Program program = model.one("Scale<float>", {{"in", in}, {"out", out}}, 0, "scale");
  const auto stacks = [&](const OptionFlags& options) {
    model.engine(program, options);
    CHECK_EQUAL(model.profile().tiles[1].stacks, 0U);
    return model.profile().tiles[0].stacks;
  };
  constexpr const char* kOption = "target.workerStackSizeInBytes";
  CHECK_EQUAL(stacks({}), 6U * 1024);
  CHECK_EQUAL(stacks({{kOption, "0x180"}}), 6U * 384);
  CHECK_EQUAL(stacks({{kOption, "512"}}), 6U * 512);
  CHECK_THROWS(
      Engine(model.graph, Sequence(), {{kOption, "much"}}),
      "Engine: `target.workerStackSizeInBytes` must be a number of bytes, got \"much\". Leave it out for 1024.");
}

void hostAccessFits() {
  Model model(1);
  const Tensor in = model.variable(FLOAT, {4}, "in", 0);
  const DataStream stream = model.graph.addHostToDeviceFIFO("stream", FLOAT, 4);
  CHECK_THROWS(model.graph.addDeviceToHostFIFO("stream", FLOAT, 4), "`handle` must be new, got \"stream\" again");
  CHECK_THROWS(Copy(in, stream), "`stream` must go to the host");
  CHECK_THROWS(Copy(stream, in.slice(0, 3)), "fit float{3} of in, got \"stream\" of 4 x float");
  Engine& engine = model.engine(Copy(stream, in));
  float values[5] = {};
  CHECK_THROWS(engine.readTensor("in", values, values + 5), "`bufEnd` must lie 16 bytes after buf for \"in\", got 20");
  CHECK_THROWS(engine.writeTensor("out", values, values + 4), "`handle` must have been made by createHostWrite");
  CHECK_THROWS(engine.run(0), "`stream` must be connected");
  CHECK_THROWS(engine.run(1), "`prog` must be below 1, got 1");
  CHECK_THROWS(engine.connectStream("other", values), "`handle` must be a stream of the graph, got \"other\"");
  engine.connectStream("stream", values, values + 3);
  CHECK_THROWS(engine.run(0), "`end` must lie at least 16 bytes after begin, got 12");
  Engine unloaded(model.graph, Sequence());
  CHECK_THROWS(unloaded.run(0), "`engine` must be loaded");
  CHECK_THROWS(Engine(model.graph, Sequence(), {{"ipu_model.threads", "0"}}), "must be a number from 1 to 1024");
}

void devicesAreWhatTheChipsAre() {
  CHECK_THROWS(IPUModel("ipu9"), "ipu9");
  IPUModel model("mk1");
  CHECK_EQUAL(model.tilesPerIPU, 1216U);
  CHECK_EQUAL(model.memoryBytesPerTile, 256U * 1024);
  model.tileClockFrequency = 1;
  CHECK_THROWS(model.createDevice(), "must be those of mk1");
  CHECK_EQUAL(DeviceManager().getDevices(TargetType::IPU, 2).size(), 8U);
  CHECK_THROWS(DeviceManager().acquireAvailableDevice(3), "must be a power of 2 of at most 16, got 3");
  CHECK_THROWS(DeviceManager().getDevice(99), "`deviceManagerId` must be below 31, got 99");
  Model two(2);
  Engine engine(two.graph, Sequence());
  CHECK_THROWS(engine.load(on_model::device(1)), "`device` must have the 2 tiles");
}

}  // namespace

int main() {
  return on_model::result([] {
    everythingLiesOnTiles();
    oneWriterForEachElement();
    writesOnlyWhatCanBeWritten();
    edgesFitTheirFields();
    codeletsOfTheModelAreKnown();
    tilesHaveSoMuchMemory();
    largestExchangesAreNamed();
    stacksTakeMemory();
    hostAccessFits();
    devicesAreWhatTheChipsAre();
  });
}
