// spike_matmul and its gradients, each vertex alone against loops over all ids.
#include "kernels/alone.hpp"
#include "kernels/lists/lists.hpp"

namespace {

using namespace kernels;

constexpr unsigned kRows = 9, kInputs = 30;

template <typename W, typename Id>
struct Problem {
  unsigned capacity, outputs;
  std::vector<Id> ids;  // in any order, some out of range
  std::vector<W> values, weights, g;

  Problem(unsigned k, unsigned n, Draw& draw)
      : capacity(k),
        outputs(n),
        ids(kRows * k),
        values(draw.row<W>(kRows * k)),
        weights(draw.row<W>(kInputs * n)),
        g(draw.row<W>(kRows * n)) {
    for (Id& id : ids) id = static_cast<Id>(draw.below(kInputs + 4));
    ids.front() = static_cast<Id>(-1);  // a negative int, or 65535
    if (k < 3) return;
    ids[1] = 0;
    values[1] = static_cast<W>(0.0f);  // a value of 0 beside weights that are NaN
    values[2] = static_cast<W>(0.0f);
    ids[2] = ids[1];
    for (unsigned i = 0; i < kRows * k; ++i) {
      if (i != 1 && i != 2 && ids[i] == 0) ids[i] = 1;
    }
    for (unsigned j = 0; j < n; ++j) weights[j] = static_cast<W>(NAN);
    weights = withZeroRow(weights, n);
  }

  bool uses(unsigned i) const { return static_cast<unsigned>(ids[i]) < kInputs; }
  double weight(unsigned i, unsigned j) const {
    return static_cast<double>(static_cast<float>(weights[static_cast<unsigned>(ids[i]) * outputs + j]));
  }
  double value(unsigned i) const { return static_cast<double>(static_cast<float>(values[i])); }
  double gradient(unsigned b, unsigned j) const { return static_cast<double>(static_cast<float>(g[b * outputs + j])); }
};

template <typename W, typename Id>
void testForward(const ipu_model::CodeletLibrary& library, const std::string& types, unsigned n) {
  Draw draw(n);
  const Problem<W, Id> p(8, n, draw);
  Alone vertex(library, "snnjax::SpikeMatmul<" + types + ">");
  vertex.edge("ids", p.ids).edge("values", p.values).edge("weights", p.weights).edge("out", std::vector<W>(kRows * n));
  vertex.state("rows", kRows).state("capacity", p.capacity).state("num_inputs", kInputs).state("outputs", n);
  vertex.run(n % 2 == 0);
  const auto out = vertex.template get<W>("out");
  for (unsigned b = 0; b < kRows; ++b) {
    for (unsigned j = 0; j < n; ++j) {
      double sum = 0.0;
      for (unsigned i = b * p.capacity; i < (b + 1) * p.capacity; ++i) {
        if (p.uses(i) && p.value(i) != 0.0) sum += p.value(i) * p.weight(i, j);
      }
      CHECK(out[b * n + j] == static_cast<W>(sum));
    }
  }
}

template <typename W, typename Id>
void testValuesGradient(const ipu_model::CodeletLibrary& library, const std::string& types, unsigned k, unsigned n) {
  Draw draw(n + k);
  const Problem<W, Id> p(k, n, draw);
  Alone vertex(library, "snnjax::SpikeMatmulValuesGradient<" + types + ">");
  vertex.edge("ids", p.ids).edge("weights", p.weights).edge("g", p.g).edge("d_values", std::vector<float>(kRows * k));
  vertex.state("rows", kRows).state("capacity", k).state("num_inputs", kInputs).state("outputs", n).run();
  const auto d_values = vertex.template get<float>("d_values");
  for (unsigned i = 0; i < kRows * k; ++i) {
    double dot = 0.0;
    for (unsigned j = 0; p.uses(i) && j < n; ++j) dot += p.weight(i, j) * p.gradient(i / k, j);
    CHECK(std::isnan(dot) ? d_values[i] != d_values[i] : d_values[i] == static_cast<float>(dot));
  }
}

template <typename W, typename Id>
void testWeightsGradient(const ipu_model::CodeletLibrary& library, const std::string& types, unsigned n) {
  Draw draw(n + 3);
  const Problem<W, Id> p(8, n, draw);
  auto expected = withZeroRow(draw.row(kInputs * n), n);
  Alone vertex(library, "snnjax::SpikeMatmulWeightsGradient<" + types + ">");
  vertex.edge("ids", p.ids).edge("values", p.values).edge("g", p.g).edge("d_weights", expected);
  vertex.state("rows", kRows).state("capacity", p.capacity).state("num_inputs", kInputs).state("outputs", n).run(true);
  for (unsigned i = 0; i < kRows * p.capacity; ++i) {
    for (unsigned j = 0; p.uses(i) && j < n; ++j) {
      float& at = expected[static_cast<unsigned>(p.ids[i]) * n + j];
      at += static_cast<float>(p.value(i) * p.gradient(i / p.capacity, j));
    }
  }
  CHECK(vertex.get<float>("d_weights") == expected);
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (unsigned n : {2U, 4U, 6U, 8U, 22U}) {
      testForward<float, int>(library, "float,int", n);
      testForward<half, unsigned short>(library, "half,unsigned short", n);
      testValuesGradient<float, unsigned short>(library, "float,unsigned short", 8, n);
      testValuesGradient<half, int>(library, "half,int", 7, n);
      testWeightsGradient<float, unsigned short>(library, "float,unsigned short", n);
      testWeightsGradient<half, int>(library, "half,int", n);
    }
  });
}
