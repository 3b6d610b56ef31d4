// Vertices without an estimate and without a file of costs: the model counts what their compiled code would take. Each
// cost is compared with the instructions that an IPU needs, with a tolerance for other versions of the compiler.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <sstream>
#include <vector>

#include "check.hpp"
#include "ipu_model/profile.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

struct Result {
  std::vector<float> values;
  ipu_model::Profile profile;
  std::string summary;
};

struct Fields {
  const char* name;
  const Type& type;
  std::vector<const char*> vectors;
  const char* scalar = nullptr;
};

// Runs one vertex of a class, whose vectors hold the numbers from 1 on.
Result run(const Fields& fields, unsigned elements, int by = 0, std::uint64_t estimate = 0) {
  IPUModel model;
  model.tilesPerIPU = 1;
  const Device device = model.createDevice();
  Graph graph(device.getTarget());
  graph.addCodelets("programs/codelets/counted.cpp");
  const ComputeSet set = graph.addComputeSet("set");
  const VertexRef vertex = graph.addVertex(set, fields.name);
  graph.setTileMapping(vertex, 0);
  if (by != 0) graph.setInitialValue(vertex["by"], by);
  if (estimate != 0) graph.setPerfEstimate(vertex, estimate);
  std::vector<float> numbers(elements);
  std::vector<int> integers(elements);
  for (unsigned i = 0; i < elements; ++i) numbers[i] = static_cast<float>(integers[i] = static_cast<int>(i) + 1);
  Tensor last;
  for (const char* name : fields.vectors) {
    last = graph.addVariable(fields.type, {elements}, name);
    graph.setTileMapping(last, 0);
    fields.type == FLOAT ? graph.setInitialValue<float>(last, numbers) : graph.setInitialValue<int>(last, integers);
    graph.connect(vertex[name], last);
  }
  if (fields.scalar != nullptr) {
    last = graph.addVariable(fields.type, {}, fields.scalar);
    graph.setTileMapping(last, 0);
    graph.connect(vertex[fields.scalar], last);
  }
  graph.createHostRead("last", last);
  Engine engine(graph, Execute(set));
  engine.load(device);
  engine.run(0);
  std::vector<float> values(last.numElements());
  if (fields.type == FLOAT) engine.readTensor("last", values.data(), values.data() + values.size());
  std::ostringstream summary;
  engine.printProfileSummary(summary);
  return {values, ipu_model::profileOf(engine), summary.str()};
}

const Fields kDotProduct{"DotProduct", FLOAT, {"a", "b"}, "out"};

// Issue slots of one more element; a worker issues every sixth cycle.
double slotsOfElement(const Fields& fields, int by = 0) {
  constexpr unsigned kFew = 60, kMany = 1260;
  const auto cycles = [&](unsigned elements) {
    return static_cast<double>(run(fields, elements, by).profile.codelets.at(0).max);
  };
  return (cycles(kMany) - cycles(kFew)) / (kMany - kFew) / 6;
}

bool isBetween(double low, double number, double high) { return low <= number && number <= high; }

void countsWhatLoopsTake() {
  CHECK(isBetween(4, slotsOfElement(kDotProduct), 5));  // ld, ld, mul, add with brnzdec: as hardware shows
  CHECK(isBetween(7, slotsOfElement({"Exponential", FLOAT, {"values"}}), 10));       // ld, exp (6), st, branch
  CHECK(isBetween(43, slotsOfElement({"Divide", INT, {"values"}}, 3), 46));          // in software
  CHECK(isBetween(3.0 / 6, slotsOfElement({"Shift", FLOAT, {"values"}}), 6.0 / 6));  // each worker has a sixth
}

void countsTheSameInEveryRun() {
  const Result first = run(kDotProduct, 100), second = run(kDotProduct, 100);
  CHECK_EQUAL(first.values.at(0), 338350.0F);
  CHECK_EQUAL(first.profile.codelets.at(0).cycles, second.profile.codelets.at(0).cycles);
  CHECK(isBetween(6, static_cast<double>(run(kDotProduct, 0).profile.codelets.at(0).max) / 6, 25));  // the call alone
}

void saysThatItCounted() {
  const Result counted = run(kDotProduct, 100);
  CHECK((counted.profile.counted_codelets == std::vector<std::string>{"DotProduct"}));
  CHECK(counted.profile.unknown_codelets.empty());
  CHECK(counted.summary.find(", counted in its code") != std::string::npos);
  const Result estimated = run(kDotProduct, 100, 0, 7);
  CHECK(estimated.profile.counted_codelets.empty());
  CHECK_EQUAL(estimated.profile.codelets.at(0).cycles, 6 * 7U);
  const Result supervisor = run({"Copies", FLOAT, {"from", "to"}}, 100);
  CHECK((supervisor.profile.unknown_codelets == std::vector<std::string>{"Copies"}));
  CHECK_EQUAL(supervisor.values.back(), 100.0F);
}

}  // namespace

int main() {
  countsWhatLoopsTake();
  countsTheSameInEveryRun();
  saysThatItCounted();
  return check::failures;
}
