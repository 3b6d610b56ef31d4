// Products with the lists of all samples and steps at once.
#include <numeric>

#include "kernels/alone.hpp"
#include "kernels/lists/lists.hpp"

namespace {

using namespace kernels;

constexpr unsigned kRows = 20, kInputs = 40, kCapacity = 9, kStride = 20;

struct Problem {
  explicit Problem(unsigned neurons)
      : n(neurons),
        draw(neurons),
        lists(hostileLists<unsigned short>(draw, kRows, kStride, kCapacity, kInputs)),
        values(draw.row(kRows * kCapacity)),
        g(draw.row(kRows * neurons)) {}

  void set(Alone& vertex, bool valued) const {
    vertex.edge("lists", lists).state("rows", kRows).state("stride", kStride).state("capacity", kCapacity);
    vertex.state("neurons", n);
    if (valued) vertex.edge("values", values);
  }
  // Calls body(row, k, id, value) for the spikes that name an input.
  template <typename Body>
  void forEachSpike(bool valued, Body&& body) const {
    for (unsigned row = 0; row < kRows; ++row) {
      const auto ids = spikesOf(lists, row, kStride, kCapacity);
      for (unsigned k = 0; k < ids.size(); ++k) {
        if (ids[k] < kInputs) body(row, k, ids[k], valued ? values[row * kCapacity + k] : 1.0f);
      }
    }
  }

  unsigned n;
  Draw draw;
  std::vector<unsigned short> lists;
  std::vector<float> values, g;
};

std::string ofValued(bool valued) { return valued ? "true>" : "false>"; }

template <typename W>
void testCurrent(const ipu_model::CodeletLibrary& library, const std::string& w, unsigned n, bool valued) {
  Problem problem(n);
  for (auto& entry : problem.lists) entry = std::min<unsigned short>(entry, kInputs - 1);  // as a codelet made them
  for (unsigned row = 0; row < kRows; ++row) {
    auto& spikes = problem.lists[row * kStride];
    spikes = std::min<unsigned short>(spikes, kCapacity);
  }
  const auto weights = withZeroRow(problem.draw.row<W>(kInputs * n), n);
  Alone vertex(library, "snnjax::RowsCurrent<" + w + "," + ofValued(valued));
  problem.set(vertex, valued);
  vertex.edge("weights", weights).edge("current", std::vector<float>(kRows * n, 5.0f)).run(n % 4 == 0);
  std::vector<float> expected(kRows * n);
  problem.forEachSpike(valued, [&](unsigned row, unsigned, unsigned id, float value) {
    for (unsigned j = 0; j < n; ++j) expected[row * n + j] += value * static_cast<float>(weights[id * n + j]);
  });
  CHECK(vertex.get<float>("current") == expected);  // eighths: sums are exact in any order
}

void testDots(const ipu_model::CodeletLibrary& library, unsigned n) {
  Problem problem(n);
  const auto weights = withZeroRow(problem.draw.row<half>(kInputs * n), n);
  Alone vertex(library, "snnjax::RowsDots<half>");
  problem.set(vertex.state("num_inputs", kInputs), false);
  vertex.edge("weights", weights).edge("g_current", problem.g);
  vertex.edge("dots", std::vector<float>(kRows * kCapacity, 3.0f)).run();
  std::vector<float> expected(kRows * kCapacity, 3.0f);
  for (unsigned row = 0; row < kRows; ++row) {
    const auto ids = listedOf(problem.lists, row, kStride, kCapacity);
    for (unsigned k = 0; k < ids.size(); ++k) {
      expected[row * kCapacity + k] = 0;
      for (unsigned j = 0; ids[k] < kInputs && j < n; ++j) {
        expected[row * kCapacity + k] += static_cast<float>(weights[ids[k] * n + j]) * problem.g[row * n + j];
      }
    }
  }
  CHECK(vertex.get<float>("dots") == expected);
}

void testDense(const ipu_model::CodeletLibrary& library, bool valued) {
  Problem problem(2);
  Alone vertex(library, "snnjax::RowsDense<" + ofValued(valued));
  vertex.edge("lists", problem.lists).state("rows", kRows).state("stride", kStride).state("capacity", kCapacity);
  if (valued) vertex.edge("values", problem.values);
  vertex.edge("dense", std::vector<float>(kRows * kInputs, 5.0f)).state("num_inputs", kInputs).run();
  std::vector<float> expected(kRows * kInputs);
  problem.forEachSpike(
      valued, [&](unsigned row, unsigned, unsigned id, float value) { expected[row * kInputs + id] += value; });
  CHECK(vertex.get<float>("dense") == expected);
}

void testGradient(const ipu_model::CodeletLibrary& library, unsigned n, bool valued) {
  Problem problem(n);
  Alone vertex(library, "snnjax::RowsGradient<" + ofValued(valued));
  problem.set(vertex.state("num_inputs", kInputs), valued);
  vertex.edge("g_current", problem.g).edge("g_weights", std::vector<float>((kInputs + 1) * n, 7.0f)).run(n % 4 == 0);
  std::vector<float> expected((kInputs + 1) * n, 7.0f);
  problem.forEachSpike(valued, [&](unsigned row, unsigned, unsigned id, float value) {
    for (unsigned j = 0; j < n; ++j) expected[id * n + j] += value * problem.g[row * n + j];
  });
  auto g_weights = vertex.get<float>("g_weights");
  std::fill(g_weights.end() - n, g_weights.end(), 7.0f);  // scratch
  CHECK(g_weights == expected);
}

// Nothing outside is touched for ids in disorder (the guards of `Alone`).
void testDisorder(const ipu_model::CodeletLibrary& library) {
  for (unsigned n : {2U, 4U, 12U}) {
    Problem problem(n);
    for (auto& entry : problem.lists) entry = static_cast<unsigned short>(problem.draw.bits() >> 16);
    Alone vertex(library, "snnjax::RowsGradient<false>");
    problem.set(vertex.state("num_inputs", kInputs), false);
    vertex.edge("g_current", problem.g).edge("g_weights", std::vector<float>((kInputs + 1) * n)).run();
    vertex.get<float>("g_weights");
  }
}

// An entry more, for six pairs: its id and address 3, a load and a store for each pair, the last sum, the branch.
void testCost(const ipu_model::CodeletLibrary& library) {
  const auto cyclesOf = [&](unsigned spikes) {
    std::vector<unsigned short> record(16);
    std::iota(record.begin() + kHeader, record.end(), 0);  // all of the first worker
    record[0] = record[1] = static_cast<unsigned short>(spikes);
    Alone vertex(library, "snnjax::RowsGradient<false>");
    vertex.edge("lists", record).edge("g_current", std::vector<float>(12)).state("rows", 1U).state("stride", 16U);
    vertex.edge("g_weights", std::vector<float>((kInputs + 1) * 12)).state("capacity", 8U).state("neurons", 12U);
    return vertex.state("num_inputs", kInputs).run().cycles();
  };
  CHECK_EQUAL(cyclesOf(6) - cyclesOf(5), 3u + 12 + 2);
}

}  // namespace

int main(int argc, char** argv) {
  return runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (unsigned n : {2U, 4U, 6U, 10U, 12U, 16U}) {
      for (bool valued : {false, true}) {
        testCurrent<float>(library, "float", n, valued);
        testCurrent<half>(library, "half", n, valued);
        testGradient(library, n, valued);
      }
      testDots(library, n);
    }
    for (bool valued : {false, true}) testDense(library, valued);
    testDisorder(library);
    testCost(library);
  });
}
