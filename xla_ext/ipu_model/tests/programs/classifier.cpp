// One step of a small classifier with the libraries of a neural network: a layer, its non-linearity, a softmax with its
// loss, the gradients and the step. Numbers are those of the equations, evaluated on the host.
#include <cmath>
#include <cstdint>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/codelets.hpp>
#include <popnn/Loss.hpp>
#include <popnn/NonLinearity.hpp>
#include <popnn/codelets.hpp>
#include <popops/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <vector>

#include "check.hpp"

using namespace poplar;
using namespace poplar::program;
using popnn::NonLinearityType;

namespace {

constexpr std::size_t kBatch = 3, kClasses = 4;
const std::vector<float> kInputs = {0.5F, -1, 2, 0, 0.1F, 0.2F, 0.2F, -3, -0.7F, 1.5F, 1.5F, 0.3F};

using Function = double (*)(double);

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Tensor input(Graph& graph) {
  Tensor t = graph.addVariable(FLOAT, {kBatch, kClasses}, "input");
  poputil::mapTensorLinearly(graph, t);
  graph.setInitialValue(t.flatten(), ArrayRef<float>(kInputs));
  return t;
}

std::vector<float> read(Engine& engine, const char* handle, std::size_t count) {
  std::vector<float> values(count);
  engine.readTensor(handle, values.data(), values.data() + count);
  return values;
}

Device fewTiles() {
  IPUModel model;
  model.tilesPerIPU = 6;
  return model.createDevice();
}

// f, and its gradient beside a central difference; the gradient arrives as 2.
void checkFunction(NonLinearityType type, Function f, bool from_input) {
  Device device = fewTiles();
  Graph graph(device.getTarget());
  Sequence prog;
  Tensor x = input(graph), gradient = graph.clone(x);
  graph.setInitialValue(gradient.flatten(), ArrayRef<float>(std::vector<float>(kInputs.size(), 2)));
  Tensor y = popnn::nonLinearity(graph, type, x, prog, "f");
  Tensor back = popnn::nonLinearityInputGradient(graph, type, from_input ? x : y, gradient, prog, "df");
  graph.createHostRead("y", y);
  graph.createHostRead("back", back);
  Engine engine(graph, prog);
  engine.loadAndRun(device);
  const std::vector<float> values = read(engine, "y", kInputs.size()), backward = read(engine, "back", kInputs.size());
  for (std::size_t i = 0; i < kInputs.size(); ++i) {
    const double at = kInputs[i], step = 1e-5;
    CHECK_NEAR(values[i], f(at), 1e-5);
    if (at != 0) CHECK_NEAR(backward[i], 2 * (f(at + step) - f(at - step)) / (2 * step), 1e-4);
  }
}

std::vector<double> softmaxOfRow(std::size_t row) {
  std::vector<double> result(kClasses);
  double sum = 0;
  for (std::size_t c = 0; c < kClasses; ++c) sum += result[c] = std::exp(double{kInputs[row * kClasses + c]});
  for (double& value : result) value /= sum;
  return result;
}

// Softmax, cross-entropy and accuracy; the gradient of the loss is that of the softmax applied to -1 / y[label].
void checkCrossEntropy() {
  Device device = fewTiles();
  Graph graph(device.getTarget());
  popops::addCodelets(graph);
  poplin::addCodelets(graph);
  popnn::addCodelets(graph);
  Sequence prog;
  Tensor y = input(graph);
  popnn::softmaxInPlace(graph, y, prog, "softmax");
  const std::vector<unsigned> labels = {2, 0, popnn::MASKED_LABEL_CODE};
  Tensor expected = graph.addConstant<unsigned>(UNSIGNED_INT, {kBatch}, labels);
  Tensor loss = graph.addVariable(FLOAT, {kBatch}, "loss"), deltas = graph.clone(y, "deltas");
  Tensor correct = graph.addVariable(UNSIGNED_INT, {}, "correct");
  for (const Tensor& t : {expected, loss}) poputil::mapTensorLinearly(graph, t);
  graph.setTileMapping(correct, 0);
  prog.add(popnn::calcLoss(graph, y, expected, loss, deltas, correct, popnn::CROSS_ENTROPY_LOSS, "loss"));
  Tensor outer = graph.clone(y, "outer");
  graph.setInitialValue(outer.flatten(), ArrayRef<float>({1, 0, 2, 0, 0, 0, 1, 0, 1, 1, 1, 1}));
  Tensor through = popnn::nonLinearityInputGradient(graph, NonLinearityType::SOFTMAX, y, outer, prog);
  for (const auto& named : {std::make_pair("loss", loss), {"deltas", deltas}, {"through", through}}) {
    graph.createHostRead(named.first, named.second);
  }
  graph.createHostRead("correct", correct);
  Engine engine(graph, prog);
  engine.loadAndRun(device);

  const std::vector<float> losses = read(engine, "loss", kBatch), d = read(engine, "deltas", 12),
                           t = read(engine, "through", 12);
  for (std::size_t row = 0; row < kBatch; ++row) {
    const std::vector<double> p = softmaxOfRow(row);
    const bool counts = row < 2;
    CHECK_NEAR(losses[row], counts ? -std::log(p[labels[row]]) : 0, 1e-5);
    const std::vector<double> g = row == 0   ? std::vector<double>{1, 0, 2, 0}
                                  : row == 1 ? std::vector<double>{0, 0, 1, 0}
                                             : std::vector<double>{1, 1, 1, 1};
    double sum = 0;
    for (std::size_t c = 0; c < kClasses; ++c) sum += g[c] * p[c];
    for (std::size_t c = 0; c < kClasses; ++c) {
      CHECK_NEAR(d[row * kClasses + c], counts ? p[c] - (c == labels[row] ? 1 : 0) : 0, 1e-5);
      CHECK_NEAR(t[row * kClasses + c], p[c] * (g[c] - sum), 1e-5);
    }
  }
  std::uint32_t number = 0;
  engine.readTensor("correct", &number);
  CHECK_EQUAL(number, 1U);  // row 1 is largest at 1 and 2, of which 1 comes first, and its label is 0
}

void checkSquares() {
  Device device = fewTiles();
  Graph graph(device.getTarget());
  Tensor y = input(graph);
  Tensor expected = graph.addConstant<int>(INT, {kBatch}, {0, 3, 1});
  Tensor loss = graph.addVariable(FLOAT, {kBatch}, "loss"), deltas = graph.clone(y, "deltas");
  for (const Tensor& t : {expected, loss}) poputil::mapTensorLinearly(graph, t);
  graph.createHostRead("loss", loss);
  graph.createHostRead("deltas", deltas);
  Engine engine(graph, popnn::calcLoss(graph, y, expected, loss, deltas, popnn::SUM_SQUARED_LOSS));
  engine.loadAndRun(device);
  CHECK_NEAR(read(engine, "loss", kBatch)[0], (0.25 + 1 + 4) / 2, 1e-6);
  CHECK_NEAR(read(engine, "deltas", 12)[7], -4, 1e-6);
  CHECK_THROWS(popnn::calcLoss(graph, y, loss, loss, deltas, popnn::SUM_SQUARED_LOSS),
               "{batch} of labels, got float{3,4} of input and float{3} of loss");
}

// c += 2 a b, in two groups.
void checkGroups() {
  Device device = fewTiles();
  Graph graph(device.getTarget());
  Tensor a = graph.addConstant<float>(FLOAT, {2, 1, 2}, {1, 2, 3, 4});
  Tensor b = graph.addConstant<float>(FLOAT, {2, 2, 1}, {5, 6, 7, 8});
  Tensor c = graph.addVariable(FLOAT, {2, 1, 1}, "c");
  for (const Tensor& t : {a, b, c}) poputil::mapTensorLinearly(graph, t);
  graph.setInitialValue(c.flatten(), ArrayRef<float>({1, 2}));
  Sequence prog;
  poplin::matMulGroupedAcc(graph, c, 2.0F, a, b, prog);
  graph.createHostRead("c", c);
  Engine engine(graph, prog);
  engine.loadAndRun(device);
  CHECK(read(engine, "c", 2) == std::vector<float>({1 + 2 * 17, 2 + 2 * 53}));
}

}  // namespace

int main() {
  checkFunction(NonLinearityType::SIGMOID, sigmoid, false);
  checkFunction(
      NonLinearityType::HARD_SIGMOID, [](double x) { return std::min(std::max(0.2 * x + 0.5, 0.0), 1.0); }, false);
  checkFunction(NonLinearityType::RELU, [](double x) { return x > 0 ? x : 0; }, false);
  checkFunction(NonLinearityType::TANH, [](double x) { return std::tanh(x); }, false);
  checkFunction(NonLinearityType::GELU, gelu, true);
  checkFunction(NonLinearityType::SWISH, [](double x) { return x * sigmoid(x); }, true);
  checkCrossEntropy();
  checkSquares();
  checkGroups();
  return check::failures;
}
