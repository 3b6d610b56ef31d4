// A program as users of Poplar write them: a reflection of the rows of a matrix and products of its rows, fed by data
// streams, with vertices that bring vector types of their own and with names made by templateVertex.
#include <array>
#include <cmath>
#include <cstring>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/VertexTemplates.hpp>
#include <vector>

#include "check.hpp"

namespace {

using namespace poplar;
using namespace poplar::program;

constexpr unsigned kTiles = 4, kRows = 16, kWidth = 6;

Device modelOfFourTiles() {
  IPUModel model;
  model.tilesPerIPU = kTiles;
  return model.createDevice();
}

// Each tile reflects its own rows.
Program reflect(Graph& graph, const Tensor& x, const Tensor& v, const Tensor& scale, const Tensor& out) {
  ComputeSet cs = graph.addComputeSet("reflect");
  constexpr unsigned kRowsPerTile = kRows / kTiles;
  const std::vector<unsigned short> offsets = {0, 1, 2, 3, 4, 4, 4};
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    Tensor worker_offsets = graph.addConstant(UNSIGNED_SHORT, {7}, ArrayRef<unsigned short>(offsets), "offsets");
    graph.setTileMapping(worker_offsets, tile);
    const unsigned first = tile * kRowsPerTile, last = first + kRowsPerTile;
    VertexRef vertex = graph.addVertex(cs, "ReflectRows");
    graph.connect(vertex["x"], x.slice(first, last).flatten());
    graph.connect(vertex["v"], v);
    graph.connect(vertex["scale"], scale.reshape({1}));
    graph.connect(vertex["worker_offsets"], worker_offsets);
    graph.connect(vertex["out"], out.slice(first, last).flatten());
    graph.setInitialValue(vertex["width"], kWidth);
    graph.setTileMapping(vertex, tile);
    graph.setPerfEstimate(vertex, 1000);
  }
  return Execute(cs);
}

// out[i] = <a[i], a[i]> of the first rows, one vertex each, its operands in two pieces.
Program squares(Graph& graph, const Tensor& a, const Tensor& out) {
  ComputeSet cs = graph.addComputeSet("squares");
  for (unsigned i = 0; i < out.numElements(); ++i) {
    const std::vector<Tensor> pieces = {a[i].slice(0, 2), a[i].slice(2, kWidth)};
    const std::string name = poputil::templateVertex("DotProduct", FLOAT, FLOAT, false);
    VertexRef vertex = graph.addVertex(cs, name, {{"out", out[i]}});
    graph.connect(vertex["a"], pieces);
    graph.connect(vertex["b"], pieces);
    graph.setTileMapping(vertex, i % kTiles);
  }
  return Execute(cs);
}

void testReflection() {
  const Device device = modelOfFourTiles();
  Graph graph(device);
  graph.addCodelets("programs/codelets/linear_algebra.cpp");
  Tensor x = graph.addVariable(FLOAT, {kRows, kWidth}, "x"), out = graph.clone(FLOAT, x, "out");
  Tensor v = graph.addVariable(FLOAT, {kWidth}, "v"), scale = graph.addVariable(FLOAT, {}, "scale");
  Tensor lengths = graph.addVariable(FLOAT, {kRows}, "lengths");
  for (const Tensor& t : {x, out}) poputil::mapTensorLinearly(graph, t, kRows / kTiles * kWidth, kWidth);
  for (const Tensor& t : {v, scale, lengths}) graph.setTileMapping(t, 1);

  const DataStream in = graph.addHostToDeviceFIFO("in", FLOAT, kRows * kWidth);
  const DataStream back = graph.addDeviceToHostFIFO("back", FLOAT, kRows);
  graph.createHostWrite("v", v);
  graph.createHostWrite("scale", scale);
  graph.createHostRead("out", out);
  Engine engine(graph, Sequence(Copy(in, x), reflect(graph, x, v, scale, out), squares(graph, out, lengths),
                                Copy(lengths, back)));
  engine.load(device);

  std::vector<float> matrix(kRows * kWidth), reflected(matrix.size()), squared(kRows);
  for (unsigned i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 7) - 3;
  const std::array<float, kWidth> direction = {1, 2, 0, -1, 1, 1};
  const float two_over_square = 2.0f / 8;  // <v, v> = 8: a reflection, which keeps lengths and is its own inverse
  engine.writeTensor("v", direction.data(), direction.data() + kWidth);
  engine.writeTensor("scale", &two_over_square, &two_over_square + 1);
  engine.connectStream(in, matrix.data(), matrix.data() + matrix.size());
  engine.connectStream(back, squared.data(), squared.data() + kRows);
  engine.run(0);
  engine.readTensor("out", reflected.data(), reflected.data() + reflected.size());
  for (unsigned row = 0; row < kRows; ++row) {
    float dot = 0, square = 0;
    for (unsigned i = 0; i < kWidth; ++i) dot += matrix[row * kWidth + i] * direction[i];
    for (unsigned i = 0; i < kWidth; ++i) {
      square += matrix[row * kWidth + i] * matrix[row * kWidth + i];
      CHECK_NEAR(reflected[row * kWidth + i], matrix[row * kWidth + i] - dot * two_over_square * direction[i], 1e-6f);
    }
    CHECK_NEAR(squared[row], square, 1e-5f);
  }
  engine.connectStream(in, reflected.data(), reflected.data() + reflected.size());
  engine.run(0);
  std::vector<float> again(matrix.size());
  engine.readTensor("out", again.data(), again.data() + again.size());
  for (unsigned i = 0; i < matrix.size(); ++i) CHECK_NEAR(again[i], matrix[i], 1e-6f);
}

// The same product in half, accumulated in half and in float: 2048 + 1 is no half.
void testHalf() {
  const Device device = modelOfFourTiles();
  Graph graph(device);
  graph.addCodelets("programs/codelets/linear_algebra.cpp");
  constexpr std::uint16_t kOne = 0x3c00;
  Tensor ones = graph.addConstantHalf(HALF, {2049}, kOne), halves = graph.addVariable(HALF, {}, "halves");
  Tensor floats = graph.addVariable(FLOAT, {}, "floats");
  for (const Tensor& t : {ones, halves, floats}) graph.setTileMapping(t, 2);
  graph.createHostRead("halves", halves);
  graph.createHostRead("floats", floats);
  ComputeSet cs = graph.addComputeSet("dots");
  for (const auto& [out, type] : {std::pair{halves, HALF}, std::pair{floats, FLOAT}}) {
    VertexRef vertex = graph.addVertex(cs, poputil::templateVertex("DotProduct", HALF, type, false), {{"out", out}});
    graph.connect(vertex["a"], std::vector<Tensor>{ones});
    graph.connect(vertex["b"], std::vector<Tensor>{ones});
    graph.setTileMapping(vertex, 2);
  }
  Engine engine(graph, Execute(cs));
  engine.load(device);
  engine.run(0);
  std::uint16_t half_sum = 0;
  float float_sum = 0;
  engine.readTensor("halves", &half_sum, &half_sum + 1);
  engine.readTensor("floats", &float_sum, &float_sum + 1);
  CHECK_EQUAL(half_sum, 0x6800);  // 2048
  CHECK_EQUAL(float_sum, 2049.0f);
}

}  // namespace

int main() {
  testReflection();
  testHalf();
  return check::failures;
}
