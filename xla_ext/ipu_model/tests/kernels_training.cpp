// The other parts of a training step: Adam, the loss, sums over rows, histories.
#include <poplar/HalfFloat.hpp>

#include "kernels_alone.hpp"

namespace {

using namespace kernels;

template <typename W>
void testAdam(const ipu_model::CodeletLibrary& library, const std::string& w, unsigned n) {
  constexpr double kRate = 0.01, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
  Draw draw(n);
  const auto weights = draw.row<W>(n);
  const auto g = draw.row(n), m = draw.row(n);
  std::vector<float> v(n, 0.5f), powers(12);
  for (unsigned i = 0; i < 12; ++i) powers[i] = i % 2 == 0 ? 0.81f : 0.998001f;  // two updates were made
  Alone vertex(library, "snnjax::Adam<" + w + ">");
  vertex.edge("weights", weights).edge("g", g).edge("m", m).edge("v", v).edge("powers", powers);
  vertex.edge("learning_rate", std::vector<float>{static_cast<float>(kRate)}).state("n", n);
  vertex.state("beta1", static_cast<float>(kBeta1)).state("beta2", static_cast<float>(kBeta2));
  vertex.state("epsilon", static_cast<float>(kEpsilon)).run(true);
  const auto new_weights = vertex.template get<W>("weights");
  const auto new_m = vertex.get<float>("m"), new_v = vertex.get<float>("v");
  CHECK(vertex.get<float>("g") == std::vector<float>(n));
  for (float power : vertex.get<float>("powers"))
    CHECK(std::abs(power - 0.729) < 1e-6 || std::abs(power - 0.997003) < 1e-6);
  for (unsigned i = 0; i < n; ++i) {
    const double mean = kBeta1 * m[i] + (1 - kBeta1) * g[i], square = kBeta2 * v[i] + (1 - kBeta2) * g[i] * g[i];
    const double step = mean / (1 - 0.729) / (std::sqrt(square / (1 - 0.997002999)) + kEpsilon);
    CHECK_NEAR(new_m[i], mean, 1e-5);
    CHECK_NEAR(new_v[i], square, 1e-5);
    const double expected = static_cast<float>(weights[i]) - kRate * step;
    CHECK_NEAR(static_cast<double>(static_cast<float>(new_weights[i])), expected, sizeof(W) == 2 ? 2e-3 : 1e-4);
  }
}

// The loss of logits z and its gradient, in double.
struct Softmax {
  std::vector<double> gradient;
  double loss = 0.0;

  Softmax(const std::vector<double>& z, unsigned label) : gradient(z.size()) {
    double total = 0.0;
    for (double each : z) total += std::exp(each);
    for (unsigned c = 0; c < z.size(); ++c) gradient[c] = std::exp(z[c]) / total - (c == label ? 1.0 : 0.0);
    loss = std::log(total) - z[label];
  }
};

void testCrossEntropy(const ipu_model::CodeletLibrary& library, unsigned char over) {
  constexpr unsigned kSteps = 5, kRows = 8, kClasses = 3, kBatch = 16;
  Draw draw(over);
  const auto outputs = draw.row(kSteps * kRows * kClasses);
  std::vector<unsigned> labels(kRows), lengths(kRows);
  for (unsigned b = 0; b < kRows; ++b) {
    labels[b] = b % kClasses;
    lengths[b] = b % (kSteps + 1);
  }
  labels[7] = 99;
  Alone vertex(library, "snnjax::CrossEntropy");
  vertex.edge("outputs", outputs).edge("labels", labels).edge("lengths", lengths);
  vertex.edge("g_output", std::vector<float>(outputs.size(), 7.0f)).edge("loss", std::vector<float>(kRows));
  vertex.state("num_steps", kSteps).state("rows", kRows).state("classes", kClasses).state("batch", kBatch);
  vertex.state("over", over).run();
  const auto g = vertex.get<float>("g_output"), loss = vertex.get<float>("loss");
  CHECK(std::isnan(loss[7]));
  for (unsigned b = 0; b + 1 < kRows; ++b) {
    std::vector<double> z(kClasses), ties(kClasses);
    const auto at = [&](unsigned t, unsigned c) {
      return static_cast<double>(outputs[(t * kRows + b) * kClasses + c]);
    };
    for (unsigned c = 0; c < kClasses; ++c) {
      if (over == 2 && lengths[b] > 0) z[c] = -INFINITY;
      for (unsigned t = 0; t < lengths[b]; ++t) z[c] = over == 2 ? std::max(z[c], at(t, c)) : z[c] + at(t, c);
      if (over == 1) z[c] /= std::max(lengths[b], 1U);
      for (unsigned t = 0; t < lengths[b]; ++t) ties[c] += at(t, c) == z[c] ? 1.0 : 0.0;
    }
    const Softmax expected(z, labels[b]);
    CHECK_NEAR(loss[b], expected.loss / kBatch, 1e-5);
    for (unsigned t = 0; t < kSteps; ++t) {
      for (unsigned c = 0; c < kClasses; ++c) {
        double each = expected.gradient[c] / kBatch;
        if (over == 1) each /= std::max(lengths[b], 1U);
        if (over == 2) each = at(t, c) == z[c] ? each / ties[c] : 0.0;
        CHECK_NEAR(g[(t * kRows + b) * kClasses + c], t < lengths[b] ? each : 0.0, 1e-6);
      }
    }
  }
}

void testSumRows(const ipu_model::CodeletLibrary& library, unsigned rows, unsigned columns) {
  Draw draw(rows + columns);
  const auto in = draw.row(rows * columns);
  std::vector<float> expected(columns);
  for (unsigned i = 0; i < in.size(); ++i) expected[i % columns] += in[i];
  Alone vertex(library, "snnjax::SumRows");
  vertex.edge("in", in)
      .edge("out", std::vector<float>(columns, 1.0f))
      .state("rows", rows)
      .state("columns", columns)
      .run();
  CHECK(vertex.get<float>("out") == expected);
}

template <typename T>
void testSteps(const ipu_model::CodeletLibrary& library, const std::string& t, bool reverse) {
  constexpr unsigned kSteps = 3, kWidth = 22, kDelay = 2;
  Draw draw(kWidth);
  const auto history = draw.row<T>(kSteps * kWidth), row = draw.row<T>(kWidth);
  for (unsigned iteration = 0; iteration < 7; ++iteration) {
    const unsigned step = reverse ? kSteps - 1 - (iteration - kDelay) : iteration - kDelay;
    const bool runs = step < kSteps;
    Alone load(library, "snnjax::LoadStep<" + t + ">"), store(library, "snnjax::StoreStep<" + t + ">");
    for (Alone* vertex : {&load, &store}) {
      vertex->edge("history", history).edge("row", row).edge("iteration", std::vector<unsigned>{iteration});
      vertex->state("num_steps", kSteps).state("delay", kDelay).state("width", kWidth).state("reverse", reverse).run();
    }
    auto expected_row = row, expected_history = history;
    for (unsigned i = 0; runs && i < kWidth; ++i) {
      expected_row[i] = history[step * kWidth + i];
      expected_history[step * kWidth + i] = row[i];
    }
    CHECK(load.template get<T>("row") == expected_row);
    CHECK(store.template get<T>("history") == expected_history);
  }
  Alone copy(library, "snnjax::CopyRow<" + t + ">");
  copy.edge("in", row).edge("out", std::vector<T>(kWidth)).state("width", kWidth).run();
  CHECK(copy.template get<T>("out") == row);
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runForms(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (unsigned n : {1U, 2U, 13U, 24U}) {
      testAdam<float>(library, "float", n);
      testAdam<half>(library, "half", n);
    }
    for (int over : {0, 1, 2}) testCrossEntropy(library, static_cast<unsigned char>(over));
    testSumRows(library, 5, 1);
    testSumRows(library, 0, 4);
    testSumRows(library, 9, 30);
    for (bool reverse : {false, true}) {
      testSteps<float>(library, "float", reverse);
      testSteps<half>(library, "half", reverse);
      testSteps<int>(library, "int", reverse);
      testSteps<unsigned short>(library, "unsigned short", reverse);
    }
    Alone counter(library, "snnjax::AddOne");
    CHECK(counter.edge("iteration", std::vector<unsigned>{41}).run().get<unsigned>("iteration").front() == 42);
  });
}
