// A program as one in C++11 has to be written. It is built as C++11 and C++17 as well, and linked with the library,
// which is C++20: what crosses between them are strings, vectors, functions, streams and exceptions.
#include <iostream>
#include <ipu_model/profile.hpp>
#include <map>
#include <memory>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>
#include <sstream>
#include <string>
#include <vector>

using namespace poplar;
using namespace poplar::program;
namespace pe = popops::expr;

namespace {

constexpr unsigned kElements = 8;
int failures = 0;

void check(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::cerr << "failed: " << what << '\n';
}

class Count : public StreamCallback {
 public:
  explicit Count(unsigned& fetched) : fetched_(fetched) {}
  Result prefetch(void*) override { return Result::NotAvailable; }
  void fetch(void* data) override {
    for (unsigned i = 0; i < kElements; ++i) static_cast<float*>(data)[i] = static_cast<float>(i);
    ++fetched_;
  }
  void complete() override {}

 private:
  unsigned& fetched_;
};

// out = (2 x + i + 3) * 0.5 + 1, its sum and its maximum.
Sequence build(Graph& graph) {
  graph.addCodelets("programs/codelets/older_standard.cpp", CodeletFileType::Auto, "-std=c++11 -O1");
  const Tensor x = graph.addVariable(FLOAT, {kElements}, {"x"});
  const Tensor out = graph.addVariable(FLOAT, {kElements}, VariableMappingMethod::LINEAR, "out");
  const std::vector<int> numbers = {0, 1, 2, 3, 4, 5, 6, 7};
  const Tensor row = graph.addConstant<int>(INT, {1, kElements}, numbers);
  poputil::mapTensorLinearly(graph, x);
  graph.setTileMapping(row, 1);

  const ComputeSet doubles = graph.addComputeSet("doubles");
  const VertexRef vertex =
      graph.addVertex(doubles, "poplar::Doubled", {{"in", x}, {"out", out}, {"rows", row}, {"requires", 3}});
  graph.setTileMapping(vertex, 1);
  graph.setPerfEstimate(vertex, 100);

  Sequence program;
  const DataStream from = graph.addHostToDeviceFIFO("from", FLOAT, kElements);
  program.add(Sequence(Copy(from, x), Execute(doubles)));
  popops::mulInPlace(graph, out, 0.5F, program, "half");
  popops::mapInPlace(graph, pe::_1 + 1, {out}, program, {"one"});
  const Tensor sum = popops::reduce(graph, out, {0}, popops::Operation::ADD, program, DebugContext("sum"));

  const Tensor most = graph.addVariable(FLOAT, {}, "most");
  graph.setTileMapping(most, 0);
  const ComputeSet largest = graph.addComputeSet({"largest"});
  graph.setTileMapping(
      graph.addVertex(largest, poputil::templateVertex("Largest", FLOAT), {{"in", out}, {"out", most}}), 0);
  program.add(Execute(largest));
  program.add(PrintTensor("most", most));
  const std::map<std::string, Tensor> read = {{"out", out}, {"sum", sum}, {"most", most}};
  for (const auto& tensor : read) graph.createHostRead(tensor.first, tensor.second);
  return program;
}

std::vector<float> values(Engine& engine, const std::string& name, std::size_t elements) {
  std::vector<float> result(elements);
  engine.readTensor(name, result.data(), result.data() + elements);
  return result;
}

void testRun() {
  IPUModel model;
  model.tilesPerIPU = 4;
  const Device device = model.createDevice();
  Graph graph(device.getTarget());
  Engine engine(graph, build(graph), {{"debug.instrument", "true"}}, [](int, int) {});
  engine.load(device);
  unsigned fetched = 0;
  engine.connectStreamToCallback("from", std::unique_ptr<Count>(new Count(fetched)));
  std::ostringstream printed, summary;
  engine.setPrintStream(printed);
  engine.run(0);
  engine.printProfileSummary(summary);

  const std::vector<float> expected = {2.5F, 4, 5.5F, 7, 8.5F, 10, 11.5F, 13};
  check(values(engine, "out", kElements) == expected, "out");
  check(values(engine, "sum", 1)[0] == 62, "sum");
  check(values(engine, "most", 1)[0] == 13, "most");
  check(fetched == 1, "one fetch");
  check(printed.str().find("13") != std::string::npos, "print: " + printed.str());
  check(summary.str().find("poplar::Doubled") != std::string::npos, "summary: " + summary.str());
  const ipu_model::Profile profile = ipu_model::profileOf(engine);
  check(profile.tiles.size() == 4 && profile.cycles.total() > 0, "profile");
}

// What `body` throws must be an E, with a message that holds `part`.
template <typename E, typename Body>
void checkThrows(Body body, const std::string& part) {
  try {
    body();
  } catch (const E& error) {
    check(std::string(error.what()).find(part) != std::string::npos, error.what());
    return;
  } catch (const std::exception& error) {
    check(false, std::string("another type of exception: ") + error.what());
    return;
  }
  check(false, "nothing thrown for " + part);
}

void testErrors() {
  Graph graph(Target::createIPUTarget(1, "ipu2"));
  const ComputeSet set = graph.addComputeSet();
  checkThrows<unknown_vertex_type>([&] { graph.addVertex(set, "NoSuch"); }, "NoSuch");
  checkThrows<poplar_error>([&] { OptionFlags().at("none"); }, "none");
  checkThrows<graph_program_compilation_error>([&] { graph.addCodelets("programs/codelets/older_standard.cpp"); },
                                               "requires");
  Tensor a = graph.addVariable(FLOAT, {2}, "a");
  check(a != graph.addVariable(FLOAT, {2}, "b") && a == a && a.elementType() != HALF, "comparisons");
  checkThrows<poplar_error>([&] { a.slice(1, 3); }, "slice");
}

void testStrings() {
  const std::string text = "one";
  const StringRef ref = text;
  check(ref == "one" && ref != "two" && "a" < ref && ref == text && !(ref < ref), "comparisons of strings");
  check(text + StringRef("/two") == "one/two" && std::string(ref) == text && ref.cloneAsString() == text, "joins");
  std::ostringstream stream;
  stream << ref << Interval(1, 2) << FLOAT;
  check(stream.str() == "one[1,2)float", stream.str());
  check(DebugContext(DebugContext("outer"), "inner").getPathName() == "outer/inner", "names");
}

}  // namespace

int main() {
  testRun();
  testErrors();
  testStrings();
  return failures;
}
